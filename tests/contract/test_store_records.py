"""What every store promises of reports, register, rules, time and closing, held by each of them."""

import asyncio
from dataclasses import replace

import pytest

from apportion.core.errors import StoreError
from apportion.core.messages import EpochKind, EpochMark
from apportion.region.store import RollupRow
from tests.contract.worlds import ANCHOR, FAST, HOUR, WALL, World, ask, one

pytestmark = pytest.mark.asyncio


class TestReports:
    async def test_a_report_is_added_once(self, world: World) -> None:
        """By source and number, in any order, also an hour later; beside what the store decided."""
        rows = (RollupRow(b"k", 100, 5), RollupRow(b"l", 99, 1))
        async with world.store() as store:
            await ask(store, one(b"k", FAST, cost=2))
            assert await store.roll_up(7, 2, rows)
            assert await store.roll_up(7, 1, rows)
            assert await store.roll_up(2**64 - 1, 2, rows)
            assert not await store.roll_up(7, 2, rows)
            world.clock.advance(HOUR)
            assert not await store.roll_up(7, 1, rows)
            assert not await store.roll_up(2**64 - 1, 2, rows)
            assert await store.rolled_up(0) == (RollupRow(b"l", 99, 3), RollupRow(b"k", 100, 17))

    async def test_doubled_reports_at_once_are_added_once(self, world: World) -> None:
        """Two copies in flight together."""
        async with world.store() as store:
            row = (RollupRow(b"k", 100, 5),)
            done = await asyncio.gather(*(store.roll_up(7, 2**63 + 5, row) for _ in range(4)))
            assert sorted(done) == [False, False, False, True]
            assert await store.rolled_up(0) == row

    async def test_forged_units_saturate(self, world: World) -> None:
        """Sums stay readable at 2^63-1."""
        async with world.store() as store:
            await store.roll_up(1, 1, (RollupRow(b"k", 100, 2**64 - 1),))
            await store.roll_up(1, 2, (RollupRow(b"k", 100, 2**64 - 1),))
            assert await store.rolled_up(0) == (RollupRow(b"k", 100, 2**63 - 1),)


class TestRegister:
    async def test_a_new_store_has_an_empty_register_with_a_run_id(self, world: World) -> None:
        """Generation 0, and a run id that is the store's own."""
        async with world.store() as store:
            register = await store.register()
            assert len(register.run_id) == 32
            assert (register.generation, register.highest, register.marks) == (0, 0, ())

    async def test_swap_takes_effect_only_from_the_whole_old_record(self, world: World) -> None:
        """Any field that differs refuses it."""
        async with world.store() as store:
            old = await store.register()
            marks = (EpochMark(9, EpochKind.PLANNED, 3), EpochMark(10, EpochKind.DIRECT))
            new = replace(old, generation=2**63 + 1, highest=10, marks=marks, anchor_epoch=1, anchor_ns=5, last_ns=6)
            assert not await store.swap_register(replace(old, last_ns=1), new)
            assert await store.register() == old
            assert await store.swap_register(old, new)
            assert await store.register() == new
            assert not await store.swap_register(old, new)
            assert await store.swap_register(new, replace(new, highest=11))

    async def test_of_two_swaps_at_once_one_wins(self, world: World) -> None:
        """Compare-and-set, not last-writer-wins."""
        async with world.store() as store:
            old = await store.register()
            swaps = (store.swap_register(old, replace(old, generation=each)) for each in (1, 2, 3))
            assert await asyncio.gather(*swaps) == [True, False, False]
            assert (await store.register()).generation == 1

    async def test_rules_versions_rise_by_one_for_each_change(self, world: World) -> None:
        """The same digest keeps its version; going back to former rules is a change."""
        async with world.store() as store:
            digests = ("a" * 64, "a" * 64, "b" * 64, "a" * 64)
            assert [await store.rules_version(digest) for digest in digests] == [1, 1, 2, 3]


class TestOverrides:
    async def test_the_last_ones_kept_are_there_also_after_a_restart(self, world: World) -> None:
        """None at first; on a file they outlive the process."""
        async with world.store() as store:
            assert await store.overrides() == ""
            await store.keep_overrides("[1]")
            await store.keep_overrides('["ß"]')
            assert await store.overrides() == '["ß"]'
        async with world.store() as store:
            assert await store.overrides() == ('["ß"]' if world.kind == "sqlite" else "")


class TestTime:
    async def test_time_starts_at_the_wall_clock_and_follows_the_monotonic_one(self, world: World) -> None:
        """A wall clock that steps does not move it."""
        async with world.store() as store:
            assert store.now_ns() == WALL
            world.clock.wall -= HOUR
            world.clock.monotonic += 5
            assert store.now_ns() == WALL + 5


class TestClosing:
    async def test_close_is_idempotent_and_final(self, world: World) -> None:
        """Whatever is asked afterwards says so."""
        store = world.make()
        await store.open()
        await store.close()
        await store.close()
        for call in (store.consume((one(b"k", FAST),), ANCHOR), store.register(), store.rolled_up(0)):
            with pytest.raises(StoreError, match="closed"):
                await call

    async def test_a_store_that_was_never_opened_closes(self, world: World) -> None:
        """So that a failed start can clean up."""
        await world.make().close()
