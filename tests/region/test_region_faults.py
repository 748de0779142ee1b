"""A store that fails in a way nobody foresaw: the region answers its own waiting authority all the same."""

from __future__ import annotations

import pytest

from apportion.core.messages import Register
from apportion.core.rules_file import parse_rules
from apportion.region.events import Consume, Consumed, Event, RolledUp, RollUp, Swapped, SwapRegister
from apportion.region.memory_store import MemoryStore
from apportion.region.region import Region
from apportion.region.store import Anchor, Charges, ChargesAnswer, GivenBack, RollupRow

pytestmark = pytest.mark.asyncio

RULES = (
    'version: 1\ndomain: api\nrules:\n  - {name: x, match: {x: "*"}, key: [x], limit: {rate: 1/s}, '
    "enforce: region, when_unavailable: [deny]}\n"
)


class Faulty(MemoryStore):
    """Every write meets a fault of the store's own code."""

    async def consume(self, groups: tuple[Charges, ...], anchor: Anchor) -> tuple[ChargesAnswer, ...]:
        raise KeyError("consume")

    async def swap_register(self, old: Register, new: Register) -> bool:
        raise TypeError("swap")

    async def roll_up(
        self, source: int, number: int, rows: tuple[RollupRow, ...], given_back: tuple[GivenBack, ...] = ()
    ) -> bool:
        raise ValueError("roll up")


class Heard(Region):
    """Keeps the events."""

    heard: list[Event]

    def feed(self, event: Event) -> None:
        self.heard.append(event)


async def test_a_fault_in_the_store_is_an_answer_that_says_failed() -> None:
    """Of each operation; else what waits for it would wait for ever."""
    texts = (("api.yaml", RULES),)
    region = Heard(Faulty(lambda: 1, lambda: 1), parse_rules(texts), texts)
    region.heard = []
    await region._consume(Consume(1, (), Anchor(1, 0)))
    await region._swap(SwapRegister(2, Register(), Register()))
    await region._roll_up(RollUp(3, 1, 1, ()))
    assert region.heard == [Consumed(1, None), Swapped(2, False, None), RolledUp(3, done=False)]
