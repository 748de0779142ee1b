"""C55: reports that fail before or after they are in the store, or half-way, or whose answer is lost, lose and double
nothing: in the end the store has used what was admitted, of each key, exactly.

An edge and a region with a store of each kind, whose clock is turned by hand. What is flushed are reports: of what
was spent of chunks, and what of them goes back.
"""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apportion.core.decision import Decision
from apportion.core.errors import StoreError
from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import PeriodLimit
from apportion.core.match import apply_rules
from apportion.core.messages import ReportAck, Rules
from apportion.core.request import Descriptor
from apportion.core.rule import RuleSet
from apportion.core.rules_file import parse_rules
from apportion.edge import events as edging
from apportion.edge.agent import Agent
from apportion.region.events import EdgeSpoke, Polled
from apportion.region.region import Region
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Charge, ChargedPeriod, Charges, GivenBack, RollupRow
from tests.contract.worlds import ANCHOR, SECOND, World
from tests.in_process import rule_text, rules_text

TEXTS = (
    ("api.yaml", rules_text(rule_text("calls", "quota: 5000/30min, anchor: calendar").replace("region", "lease"))),
)
KEYS = 5000
STEPS_A_SECOND = 2


def load(rules: Rules) -> RuleSet:
    """What the shell gives an agent."""
    return parse_rules(rules.texts)


class Failing:
    """A store of which the next report that gives something back fails `before` it is written, or `after`, which
    nobody hears of.
    """

    def __init__(self, store: Any) -> None:
        self.store = store
        self.fails = ""
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def roll_up(
        self, source: int, number: int, rows: tuple[RollupRow, ...], given_back: tuple[GivenBack, ...] = ()
    ) -> bool:
        """As a store's."""
        fails = self.fails if given_back else ""
        self.fails = "" if given_back else self.fails
        try:
            if fails == "before":
                raise StoreError("the disk did not answer")
            new: bool = await self.store.roll_up(source, number, rows, given_back)
            if fails == "after":
                raise StoreError("the disk's answer was lost")
        except StoreError:
            self.failures += 1
            raise
        return new


class Link:
    """One edge at a region. `lose_acks`: so many of the region's next acknowledgements do not arrive."""

    def __init__(self, world: World) -> None:
        self.clock = world.clock
        self.store = Failing(world.make(buckets_max=20_000))
        self.region = Region(self.store, parse_rules(TEXTS), TEXTS)
        self.agent = Agent("edge-1", "here", 11, load)
        self.admitted: Counter[str] = Counter()
        self.refused = 0
        self.lose_acks = 0
        self._waiting: dict[int, str] = {}

    async def start(self) -> None:
        """The edge attaches."""
        await self.region.start()
        self.session, self._outbox = self.region.open_session()
        await self._step(edging.Connected())

    def ask(self, tenant: str) -> None:
        """A request, decided now or by the next step."""
        applications = apply_rules(self.agent.matchers["api"], [Descriptor({"tenant": tenant})], whole=False)
        answer = self.agent.ask(applications, self.clock.monotonic)
        if isinstance(answer, Decision):
            self._decided(tenant, answer)
        else:
            self._waiting[answer.number] = tenant

    def _decided(self, tenant: str, decision: Decision) -> None:
        self.admitted[tenant] += decision.allowed
        self.refused += not decision.allowed

    async def settle(self) -> None:
        """Whatever is under way arrives, and what that sends."""
        await self._step(edging.Polled())

    async def passes(self) -> None:
        """A step of time."""
        self.clock.advance(SECOND // STEPS_A_SECOND)
        self.region.feed(Polled())
        await self.settle()

    async def _step(self, event: edging.Event) -> None:
        events = [event]
        while events:
            for command in [each for event in events for each in self.agent.step(event, self.clock.monotonic)]:
                self._perform(command)
            while self.region._tasks:
                await asyncio.gather(*self.region._tasks)
            events = []
            while not self._outbox._queue.empty():
                message: Any = await self._outbox.get()
                if isinstance(message, ReportAck) and self.lose_acks:
                    self.lose_acks -= 1
                else:
                    events.append(edging.Received(message))

    def _perform(self, command: edging.Command) -> None:
        match command:
            case edging.Send(message):
                self.region.feed(EdgeSpoke(self.session, message))
            case edging.Settled(ticket, decision):
                self._decided(self._waiting.pop(ticket), decision)

    async def used(self, tenants: list[str]) -> dict[str, int]:
        """What the store has used of each tenant's allowance."""
        (rule,) = self.region.authority.ruleset.rules
        assert isinstance(rule.limit, PeriodLimit)
        keys = [encode_quota("api", "calls", encode_key((tenant,))) for tenant in tenants]
        peeks = tuple(Charges(1, (Charge(key, rule.limit, 1),), peek=True) for key in keys)
        found = {}
        for tenant, answer in zip(tenants, await self.store.consume(peeks, ANCHOR), strict=True):
            (state,) = answer.members
            assert isinstance(state, ChargedPeriod)
            found[tenant] = state.used
        return found


def half_way(store: Any, fails: bool) -> None:
    """Let giving back fail for half of the keys, in the middle of its transaction; or no more."""
    if isinstance(store, SqliteStore):
        assert store._file._connection is not None
        middle = encode_quota("api", "calls", encode_key(("2500",))).hex()
        trigger = f"""CREATE TRIGGER half BEFORE UPDATE ON counter WHEN new.key > x'{middle}'
            BEGIN SELECT RAISE(ABORT, 'half of it'); END"""
        store._file._connection.execute(trigger if fails else "DROP TRIGGER half")


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world of each kind of store."""
    return World(request.param, tmp_path)


@pytest.mark.asyncio
async def test_the_store_has_used_what_was_admitted(world: World) -> None:
    """Ten requests a second for a minute, five thousand other keys at once, and reports that fail in each way."""
    link = Link(world)
    await link.start()
    for step in range(75 * STEPS_A_SECOND):
        match step / STEPS_A_SECOND:
            case 2 | 8 | 14:  # what these are lent and do not use goes back ten seconds later
                for key in range(100):
                    link.ask(f"few-{key}")
            case 5:
                link.store.fails = "before"
            case 15:
                link.store.fails = "after"
            case 23:
                link.lose_acks = 4
            case 30:
                for key in range(KEYS):
                    link.ask(str(key))
            case 39:
                half_way(link.store.store, fails=True)
            case 43:
                half_way(link.store.store, fails=False)
        for _ in range(10 // STEPS_A_SECOND if step < 60 * STEPS_A_SECOND else 0):
            link.ask("steady")
        await link.settle()
        await link.passes()
    few = [f"few-{key}" for key in range(100)]
    tenants = ["steady", *few, *map(str, range(KEYS))]
    assert (link.admitted["steady"], link.refused) == (600, 0)
    assert link.store.failures >= (3 if world.kind == "sqlite" else 2)
    assert await link.used(tenants) == {tenant: link.admitted[tenant] for tenant in tenants}
    rolled: Counter[bytes] = Counter()
    for row in await link.store.rolled_up(0):
        rolled[row.store_key] += row.units
    assert rolled[encode_quota("api", "calls", encode_key(("steady",)))] == 600
    assert (sum(rolled.values()), len(rolled)) == (600 + 300 + KEYS, 1 + 100 + KEYS)
    totals = link.region.authority.desk.totals["api", "calls"]
    assert totals.given_back > KEYS, "each key had more lent than it used"
    await link.region.stop()
