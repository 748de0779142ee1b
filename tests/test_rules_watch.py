"""Rules files are watched by looking: every way of replacing one is seen, and a half-written one is not taken."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from apportion.core.last_good import Merged
from apportion.rules_path import read_rule_texts
from apportion.rules_watch import RulesWatch

BOUND_S = 20.0


def text(name: str, rate: int = 10) -> str:
    """A file of one rule."""
    return (
        f"version: 1\ndomain: api\nrules:\n  - {{name: {name}, match: {{{name}: '*'}}, key: [{name}], "
        f"limit: {{rate: {rate}/s}}, enforce: region, when_unavailable: [deny]}}\n"
    )


class Watched:
    """A watch, and what it says as it comes."""

    def __init__(self, path: Path) -> None:
        self.news: asyncio.Queue[Merged] = asyncio.Queue()
        self.watch = RulesWatch(path, read_rule_texts(path), self._adopt)

    async def _adopt(self, merged: Merged) -> None:
        self.news.put_nowait(merged)

    async def next(self) -> dict[str, str]:
        """The next state that is taken."""
        async with asyncio.timeout(BOUND_S):
            return dict((await self.news.get()).texts)

    async def rejected(self, times: int, *files: str) -> None:
        """Wait until these are the files that are told of, after so many states that were rejected."""
        async with asyncio.timeout(BOUND_S):
            while (self.watch.status.rejections, self.watch.status.rejected) != (times, files):  # noqa: ASYNC110 (a status, no event)
                await asyncio.sleep(0.01)


@asynccontextmanager
async def watched(path: Path) -> AsyncIterator[Watched]:
    """A watch at work."""
    found = Watched(path)
    task = asyncio.create_task(found.watch.run())
    try:
        yield found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.asyncio
async def test_a_file_is_written_in_place_and_renamed_over(tmp_path: Path) -> None:
    """The two ways of editors."""
    file = tmp_path / "rules.yaml"
    file.write_text(text("a"))
    async with watched(file) as found:
        file.write_text(text("a", 20))
        assert await found.next() == {"rules.yaml": text("a", 20)}
        (tmp_path / "fresh").write_text(text("a", 30))
        (tmp_path / "fresh").rename(file)
        assert await found.next() == {"rules.yaml": text("a", 30)}


@pytest.mark.asyncio
async def test_files_come_and_go_in_a_folder(tmp_path: Path) -> None:
    """Each is its own."""
    (tmp_path / "a.yaml").write_text(text("a"))
    async with watched(tmp_path) as found:
        (tmp_path / "b.yaml").write_text(text("b"))
        assert sorted(await found.next()) == ["a.yaml", "b.yaml"]
        (tmp_path / "a.yaml").unlink()
        assert sorted(await found.next()) == ["b.yaml"]


@pytest.mark.asyncio
async def test_a_file_that_is_gone_or_bad_leaves_the_last_good_rules(tmp_path: Path) -> None:
    """It is told of until it is mended, and nothing new is taken meanwhile."""
    file = tmp_path / "rules.yaml"
    file.write_text(text("a"))
    async with watched(file) as found:
        file.unlink()
        await found.rejected(1, str(file))
        file.write_bytes(b"\xff\xfe")
        await found.rejected(2, "rules.yaml")
        file.write_text(text("a")[:60])
        await found.rejected(3, "rules.yaml")
        file.write_text(text("a"))
        await found.rejected(3)
        assert found.news.empty()


@pytest.mark.asyncio
async def test_the_same_time_and_length_hide_nothing_for_long(tmp_path: Path) -> None:
    """Once a second the contents are read, whatever the file system says of them."""
    file = tmp_path / "rules.yaml"
    file.write_text(text("a", 10))
    before = file.stat()
    async with watched(file) as found:
        file.write_text(text("a", 99))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert await found.next() == {"rules.yaml": text("a", 99)}
