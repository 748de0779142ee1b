"""Several allocators under random faults: no epoch has two divisions, and no plan gives away more than Q_k (S1, S2)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.allocator.events import Command, Polled, Send
from apportion.allocator.leader import Leader
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Claim, Lead, Plan, RegisterAnswer
from tests.allocator.world import E1, MS, World, content, leader, quota

STEPS = st.tuples(
    st.integers(0, 2),  # who
    st.sampled_from(["poll", "poll", "poll", "governance", "answer", "reconnect", "restart", "report"]),
    st.sampled_from([0, 1, 100, 250, 500, 900]),  # milliseconds that pass before
    st.booleans(),  # whether what is sent arrives
)


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
                    self.late.setdefault(id(allocator), []).append(RegisterAnswer(done, self.register))


@settings(max_examples=400)
@given(st.lists(STEPS, min_size=10, max_size=80))
def test_no_epoch_is_ever_divided_twice(steps: list[tuple[int, str, int, bool]]) -> None:
    """Crashes, pauses, late and lost answers, any number of would-be leaders: one content for each epoch, all Q_k."""
    world = Faulty()
    world.edges = {E1: 900}
    links = [1, 1, 1]
    allocators = [leader(str(who), who) for who in range(3)]
    for each in allocators:
        world.connect(each)
    for who, what, passed, arrives in steps:
        world.now_ns += passed * MS
        if world.register.mark(world.epoch) is None:
            world.roll()
        world.lossy = not arrives
        each = allocators[who]
        answers = world.late.setdefault(id(each), [])
        match what:
            case "poll":
                world.perform(each, each.step(Polled(), world.now_ns))
            case "governance":
                world.receive(each, world.governance(), links[who])
            case "answer" if answers and arrives:
                world.receive(each, answers.pop(0), links[who])
            case "reconnect":
                world.lose(each, links[who])
                links[who] += 1
                answers.clear()
                world.connect(each, links[who])
            case "restart":
                world.late.pop(id(each))
                allocators[who] = leader(str(who), 100 + links[who])
                links[who] += 1
                world.connect(allocators[who], links[who])
            case "report" if world.epoch > 1:
                world.report(each, E1, {quota(): 700}, link=links[who])
    contents: dict[int, set[str]] = {}
    for _, plan in world.plans:
        mark = world.register.mark(plan.epoch)
        assert mark is None or mark.generation == plan.generation
        contents.setdefault(plan.epoch, set()).add(str(content(plan)))
        total = sum(int(column.units.sum()) for column in plan.columns)
        assert total in {0, 1000}
    assert all(len(found) == 1 for found in contents.values())


def test_the_world_of_this_test_does_divide() -> None:
    """Without faults the same three allocators plan every epoch: the check above is not empty."""
    world = World()
    allocators = [leader(str(who), who) for who in range(3)]
    for each in allocators:
        world.connect(each)
    world.run(10 * EPOCH_NS, *allocators)
    assert sorted({plan.epoch for _, plan in world.plans}) == list(range(3, 11))
