"""Watches the rules file or folder of a region, and says what to go by whenever it changes.

It polls, so that every way of replacing a file is seen alike: written in place, renamed over, a folder's link swapped
(Kubernetes does that), files added and removed, on any file system. What it finds is taken once it looks the same twice
in a row: a file that is being written may be valid half-way. A bad file keeps its own last good text (design 4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from apportion.core.errors import ApportionError, InputError
from apportion.core.last_good import Merged, Texts, merge
from apportion.core.rule import RuleSet
from apportion.core.rules_file import digest_of, parse_rules
from apportion.rules_path import read_rule_files, signature

log = structlog.get_logger("apportion.rules")

POLL_S = 0.1
"""Between two looks at names, sizes and times: a change is taken after two of them."""

READ_EVERY = 10
"""Looks between two readings of everything: what the system's own marks do not show is found within a second."""

REASON_MAX = 4_000
"""Characters of the reason kept; the log and the status show the first problems."""

Adopt = Callable[[Merged], Awaitable[None]]
Parse = Callable[[Texts], RuleSet]


@dataclass(slots=True)
class Status:
    """What became of the files: `rejected` names those that are not in force as they are on disk, and `reason` says
    why; `rejections` counts rejected states of the files, `reloads` new versions.
    """

    rejected: tuple[str, ...] = ()
    reason: str = ""
    rejections: int = 0
    reloads: int = 0


class RulesWatch:
    """Calls `adopt` with every new state of the files at `path`; `texts` is in force at the start. `parse` reads
    them and says by RulesError what may not be.
    """

    def __init__(self, path: str | Path, texts: Texts, adopt: Adopt, parse: Parse = parse_rules) -> None:
        self.status = Status()
        self._path = path
        self._good = texts
        self._adopt = adopt
        self._parse = parse
        self._seen = signature(path)
        self._taken = digest_of(texts)
        self._looks = 0
        self._asked = asyncio.Event()

    def reload(self) -> None:
        """Read everything now (SIGHUP)."""
        self._asked.set()

    async def run(self) -> None:
        """Watch until cancelled. Nothing that is found there, or cannot be, ends it."""
        while True:
            try:
                async with asyncio.timeout(POLL_S):
                    await self._asked.wait()
            except TimeoutError:
                pass
            asked = self._asked.is_set()
            self._asked.clear()
            try:
                await self._look(asked)
            except ApportionError as error:  # the store did not number them: asked again at the next reading
                log.error("rules_not_adopted", reason=str(error))
            except Exception:
                log.exception("rules_watch_failed")

    async def _look(self, asked: bool) -> None:
        seen = await asyncio.to_thread(signature, self._path)
        settled, self._seen = seen == self._seen, seen
        self._looks += 1
        if asked or (settled and self._looks >= READ_EVERY):
            self._looks = 0
            await self._read(asked)
        elif not settled:
            self._looks = READ_EVERY  # read with the next look, if it is the same then

    async def _read(self, asked: bool) -> None:
        try:
            texts, unreadable = await asyncio.to_thread(read_rule_files, self._path)
        except InputError as error:  # nothing is there at all, for now or by mistake
            self._refuse("", (str(self._path),), str(error), asked)
            return
        digest = digest_of((*texts, *(("unreadable", str(problem)) for problem in unreadable)))
        if digest == self._taken and not asked:
            return
        good = dict(self._good)
        kept = tuple((each.place.file, good[each.place.file]) for each in unreadable if each.place.file in good)
        wanted = tuple(sorted((*texts, *kept)))
        try:
            merged = await asyncio.to_thread(merge, self._good, wanted, self._parse)
        except InputError as error:
            self._refuse(digest, tuple(name for name, _ in wanted), str(error), asked)
            return
        await self._take(merged, unreadable, digest, asked)

    async def _take(self, merged: Merged, unreadable: tuple[object, ...], digest: str, asked: bool) -> None:
        if digest_of(merged.texts) != digest_of(self._good):
            await self._adopt(merged)
            self._good = merged.texts
            self.status.reloads += 1
        rejected = {*merged.rejected, *(each.place.file for each in unreadable)}  # type: ignore[attr-defined]
        if rejected:
            reason = "\n".join((*map(str, unreadable), *([merged.reason] if merged.reason else [])))
            self._refuse(digest, tuple(sorted(rejected)), reason, asked)
            return
        if asked or self.status.rejected:
            log.info("rules_files_in_force", files=len(merged.texts))
        self._taken, self.status.rejected, self.status.reason = digest, (), ""

    def _refuse(self, digest: str, files: tuple[str, ...], reason: str, asked: bool) -> None:
        """Say once for each state of the files that it is not in force; what was stays so."""
        reason = reason[:REASON_MAX]
        if not asked and digest == self._taken and reason == self.status.reason:
            return
        self._taken, self.status.rejected, self.status.reason = digest, files, reason
        self.status.rejections += 1
        log.error("config_rejected", files=list(files), reason=reason)
