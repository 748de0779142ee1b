"""Several allocators under random faults: no epoch has two divisions, and no plan gives away more than Q_k (S1, S2)."""

from random import Random

from apportion.allocator.events import Command, Send
from apportion.allocator.leader import Leader
from apportion.core.allocator_messages import Claim, Lead, Plan, RegisterAnswer
from apportion.core.limit import EPOCH_NS
from tests.allocator.world import E1, MS, World, content, leader, quota

SEEDS = 400
STEPS = 150
ACTIONS = ["poll"] * 5 + ["governance"] * 6 + ["answer"] * 6 + ["report", "report", "reconnect", "restart"]


class Faulty(World):
    """A world whose register answers late, or never; an answer on its way is lost with its link."""

    def __init__(self) -> None:
        super().__init__()
        self.late: dict[int, list[RegisterAnswer]] = {}
        self.lossy = False

    def perform(self, allocator: Leader, commands: list[Command]) -> None:
        """Apply questions that arrive and put their answers on the way; keep plans whether they arrive or not."""
        for command in commands:
            match command:
                case Send(link, Plan() as plan):
                    self.plans.append((link, plan))
                case Send(_, (Lead() | Claim()) as question) if not self.lossy:
                    done = self.change(question)
                    self.late.setdefault(allocator.incarnation, []).append(RegisterAnswer(done, self.register))


def faulty_run(seed: int) -> Faulty:
    """Three allocators, of which any may be paused, cut off or restarted at any instant."""
    random = Random(seed)
    world = Faulty()
    world.edges = {E1: 900}
    allocators = [leader(str(who), who) for who in range(3)]
    links = [1, 1, 1]
    for each in allocators:
        world.connect(each)
    for number in range(STEPS):
        who, what = random.randrange(3), random.choice(ACTIONS)
        world.now_ns += random.choice([0, 1, 50, 100, 250]) * MS
        if world.register.mark(world.epoch) is None and random.random() < 0.5:
            world.roll()
        world.lossy = random.random() < 0.1
        if what == "restart":
            allocators[who] = leader(str(who), 100 + number)
            links[who] += 1
            world.connect(allocators[who], links[who])
        else:
            links[who] = act(world, allocators[who], links[who], what, random)
    return world


def act(world: Faulty, each: Leader, link: int, what: str, random: Random) -> int:
    """One thing happens to one allocator; returns its link."""
    answers = world.late.setdefault(each.incarnation, [])
    match what:
        case "poll":
            world.poll(each)
        case "governance":
            world.receive(each, world.governance(), link)
        case "answer" if answers:
            world.receive(each, answers.pop(0), link)
        case "reconnect":
            answers.clear()
            world.lose(each, link)
            world.connect(each, link + 1)
            return link + 1
        case "report" if world.epoch > 1:
            world.report(each, E1, {quota(): random.randrange(2000)}, link=link)
    return link


def test_no_epoch_is_ever_divided_twice() -> None:
    """Crashes, pauses, late and lost answers: one content for each epoch, by its claimant, of all or nothing of Q_k."""
    planned = 0
    for seed in range(SEEDS):
        world = faulty_run(seed)
        contents: dict[int, set[str]] = {}
        for _, plan in world.plans:
            mark = world.register.mark(plan.epoch)
            assert mark is None or mark.generation == plan.generation, f"seed {seed}"
            contents.setdefault(plan.epoch, set()).add(str(content(plan)))
            assert sum(int(column.units.sum()) for column in plan.columns) in {0, 1000}, f"seed {seed}"
        assert all(len(found) == 1 for found in contents.values()), f"seed {seed}"
        planned += len(contents)
    assert planned > SEEDS, "the check is not empty"


def test_the_world_of_this_test_does_divide() -> None:
    """Without faults the same three allocators plan every epoch: the check above is not empty."""
    world = World()
    allocators = [leader(str(who), who) for who in range(3)]
    for each in allocators:
        world.connect(each)
    world.run(10 * EPOCH_NS, *allocators)
    assert sorted({plan.epoch for _, plan in world.plans}) == list(range(3, 11))
