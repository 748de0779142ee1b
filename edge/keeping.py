"""What an edge boots with while the region is away, and keeping it up to date: its state on disk, or a copy of rules.

A shell: it reads and writes, logs, and hands the agent values. The region's own word replaces all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from apportion.core.errors import InputError, RulesError
from apportion.core.messages import Rules
from apportion.core.rule import RuleSet
from apportion.core.stages import admits, kept
from apportion.edge.agent import Agent
from apportion.edge.kept import Kept
from apportion.edge.state import StateFile

log = structlog.get_logger("apportion.edge")

EVERY_S = 1.0
"""Slices change each second; what is on disk is at most this and one write old."""

Load = Callable[[Rules], RuleSet]


class Keeping:
    """Boots `agent` and keeps its state. `state` None: nothing is kept; `copy` None: there is no boot copy."""

    def __init__(
        self, agent: Agent, load: Load, clock: Callable[[], int], state: StateFile | None, copy: Rules | None
    ) -> None:
        self._agent = agent
        self._load = load
        self._clock = clock
        self._state = state
        self._copy = copy
        self._written: Kept | None = None
        self._rules: tuple[Rules, RuleSet] | None = None
        self._failed = False

    def boot(self) -> None:
        """Give the agent what there is: the state, else the copy."""
        found = self._read()
        copy = Kept(self._agent.edge, self._copy) if self._copy is not None else None
        for source, record in (("state", found), ("rules", copy)):
            if record is None:
                continue
            try:
                ruleset = self._load(record.rules)
            except RulesError as error:
                problem = str(error).partition("\n")[0]
                log.error("boot_rules_refused", edge=self._agent.edge, source=source, reason=problem)
                continue
            self._agent.boot(record, ruleset, self._clock())
            log.info("edge_booted", edge=self._agent.edge, source=source, rules_version=record.rules.version)
            return

    async def run(self) -> None:
        """Write what changes, until cancelled."""
        while self._state is not None:
            await asyncio.sleep(EVERY_S)
            if self._agent.attached:
                await self._write(self._agent.keep(self._clock()))

    async def stop(self, left: bool) -> None:
        """The edge has stopped; `left`: in good order, so its slices went back and are nobody's any more."""
        record = self._agent.keep(self._clock())
        if left and record is not None:
            record = replace(record, slices=())
        await self._write(record)

    def _read(self) -> Kept | None:
        if self._state is None:
            return None
        try:
            return self._state.read()
        except InputError as error:
            log.error("state_refused", edge=self._agent.edge, reason=str(error))
            return None

    async def _write(self, record: Kept | None) -> None:
        if self._state is None or record is None:
            return
        if self._rules is None or self._rules[0] is not record.rules:
            self._rules = (record.rules, self._load(record.rules))
        rules = self._rules[1].rules
        keeping = {(rule.domain, rule.name) for rule in rules if kept(rule)}
        slices = tuple(row for row in record.slices if (row[0].domain, row[0].rule) in keeping)
        record = replace(record, slices=slices)
        if self._written is not None and not any(map(admits, rules)) and record.rules == self._written.rules:
            return
        try:
            await asyncio.to_thread(self._state.write, record)
        except OSError as error:
            if not self._failed:
                log.error("state_not_written", edge=self._agent.edge, reason=error.strerror or str(error))
            self._failed = True
        else:
            self._written, self._failed = record, False
