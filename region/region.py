"""The region's shell: it owns the store and the authority, performs the authority's commands and brings answers back.

One event is handled at a time, in the event loop; store calls are tasks whose answers come back as events.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from dataclasses import replace
from typing import Protocol

import structlog

from apportion.core.allocator_messages import ToAllocator
from apportion.core.errors import StoreError
from apportion.core.messages import Register, Rules, ToEdge
from apportion.core.rule import RuleSet
from apportion.region import register as registers
from apportion.region.authority import Authority
from apportion.region.events import (
    AllocatorSpoke,
    Close,
    Closed,
    Command,
    Consume,
    Consumed,
    EdgeSpoke,
    Event,
    Note,
    Polled,
    RolledUp,
    RollUp,
    RulesChanged,
    Send,
    Swapped,
    SwapRegister,
)
from apportion.region.keeping import check_kept
from apportion.region.operator import Operator
from apportion.region.periods import closed_notes
from apportion.region.store import Store
from apportion.region.sums import LABELS_BACK, Sums
from apportion.region.trouble import Trouble

log = structlog.get_logger("apportion.region")

OUTBOX_MAX = 4_096
"""Messages waiting for one stream's peer; a peer that reads slower than that is cut off and attaches anew."""

POLL_MAX_S = 0.25
"""The authority is polled at least this often, so that a clock that was adjusted is noticed soon."""

SUM_S = 0.5
"""Labels are judged this often, so that each is judged, and none long after its reports are due."""

LABELS_MAX = 8
"""Labels judged at a time, after the process was held up."""

Message = ToEdge | ToAllocator


class Outbox:
    """What waits to be sent on one stream; ends with None."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()
        self._ended = False

    def put(self, message: Message) -> None:
        """Queue a message, or end the stream when the peer has fallen too far behind."""
        if self._ended:
            return
        if self._queue.qsize() >= OUTBOX_MAX:
            self.end()
            return
        self._queue.put_nowait(message)

    def end(self) -> None:
        """Let the stream end after what is queued."""
        if not self._ended:
            self._ended = True
            self._queue.put_nowait(None)

    async def get(self) -> Message | None:
        """The next message; None at the end."""
        return await self._queue.get()


class RulesStatus(Protocol):
    """Which rules files are not in force as they are on disk, and why; how often that was so, and new versions."""

    rejected: tuple[str, ...]
    reason: str
    rejections: int
    reloads: int


class Region:
    """One running region replica."""

    def __init__(self, store: Store, ruleset: RuleSet, texts: tuple[tuple[str, str], ...]) -> None:
        self.store = store
        self.rules_status: RulesStatus | None = None
        self.operator = Operator(store, texts, ruleset, self._adopt)
        self._authority: Authority | None = None
        self._outboxes: dict[int, Outbox] = {}
        self._sessions = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._summer: asyncio.Task[None] | None = None
        self._trouble = Trouble()
        self.sums: Sums

    @property
    def authority(self) -> Authority:
        """The pure core; there is one from `start` on."""
        assert self._authority is not None, "the region is not started"
        return self._authority

    async def start(self) -> None:
        """Open the store and take up work. InputError and StoreError as `Store.open`; RulesError: what a rule counts
        cannot be kept there.
        """
        check_kept(self.operator.ruleset, self.store)
        await self.store.open()
        register = await self._first_register()
        rules, ruleset = await self.operator.begin()
        self._authority = Authority(rules, ruleset, register, secrets.randbits(63))
        self.sums = Sums(self._authority.table)
        self.feed(Polled())
        self._summer = asyncio.create_task(self._add_up())
        self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """End every stream after what is queued, let store calls under way finish, close the store."""
        for outbox in self._outboxes.values():
            outbox.end()
        for task in (self._poller, self._summer):
            if task is not None:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.close()

    async def change_rules(self, texts: tuple[tuple[str, str], ...], ruleset: RuleSet) -> int:
        """Let other rules files be in force, and tell everybody; returns their version. StoreError: they are not."""
        return await self.operator.change_files(texts, ruleset)

    def _adopt(self, rules: Rules, ruleset: RuleSet) -> None:
        self.feed(RulesChanged(rules, ruleset))

    def open_session(self) -> tuple[int, Outbox]:
        """Number a new stream and give it an outbox."""
        self._sessions += 1
        outbox = self._outboxes[self._sessions] = Outbox()
        return self._sessions, outbox

    def close_session(self, session: int) -> None:
        """The stream is gone."""
        self._outboxes.pop(session, None)
        self.feed(Closed(session))

    def feed(self, event: Event) -> None:
        """Hand an event to the authority and perform what it wants. A fault of our own ends the stream whose message
        met it, if any, and no other.
        """
        try:
            for command in self.authority.step(event, self.store.now_ns()):
                self._perform(command)
        except Exception:
            log.exception("authority_failed", met_by=type(event).__name__)
            if isinstance(event, EdgeSpoke | AllocatorSpoke) and event.session in self._outboxes:
                self._outboxes[event.session].end()

    def _perform(self, command: Command) -> None:
        match command:
            case Send(session, message):
                if session in self._outboxes:
                    self._outboxes[session].put(message)
            case Close(session):
                if session in self._outboxes:
                    self._outboxes[session].end()
            case Consume():
                self._start(self._consume(command))
            case SwapRegister():
                self._start(self._swap(command))
            case RollUp():
                self._start(self._roll_up(command))
            case Note(level, event, fields):
                getattr(log, level)(event, **dict(fields))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _consume(self, command: Consume) -> None:
        try:
            answers = await self.store.consume(command.groups, command.anchor)
        except StoreError as error:
            self._failed("consume", error)
            self.feed(Consumed(command.request, None))
        except Exception:
            log.exception("store_failed", operation="consume")  # a fault of ours: the authority waits
            self.feed(Consumed(command.request, None))
        else:
            self.feed(Consumed(command.request, answers))

    async def _swap(self, command: SwapRegister) -> None:
        done, register = False, None
        try:
            done = await self.store.swap_register(command.old, command.new)
            register = command.new if done else await self.store.register()
        except StoreError as error:
            done, register = False, None
            self._failed("swap_register", error)
        except Exception:
            done, register = False, None
            log.exception("store_failed", operation="swap_register")  # a fault of ours: the authority waits
        self.feed(Swapped(command.request, done, register))

    async def _roll_up(self, command: RollUp) -> None:
        try:
            new = await self.store.roll_up(command.source, command.number, command.rows, command.given_back)
        except StoreError as error:
            self._failed("roll_up", error)
            self.feed(RolledUp(command.request, done=False))
        except Exception:
            log.exception("store_failed", operation="roll_up")  # a fault of ours: the authority waits
            self.feed(RolledUp(command.request, done=False))
        else:
            self.feed(RolledUp(command.request, done=True, new=new))

    def _failed(self, operation: str, error: StoreError) -> None:
        """Log that the store did not do it, but not each time."""
        times = self._trouble.tell(operation, str(error), self.store.now_ns())
        if times is not None:
            log.error("store_failed", operation=operation, reason=str(error), times=times)

    async def _first_register(self) -> Register:
        register = await self.store.register()
        if register.anchor_epoch == 0:
            created = replace(registers.created(self.store.now_ns(), register.run_id))
            if not await self.store.swap_register(register, created):
                return await self._first_register()
            return created
        return register

    async def _add_up(self) -> None:
        """Each half second, compare what all edges and replicas admitted with what the limits entitle to; let the store
        tidy up, and tell of periods that have ended.
        """
        while True:
            await asyncio.sleep(SUM_S)
            self.store.tidy()
            for note in closed_notes(self.authority.versions.effective, self.store.take_closed()):
                self._perform(note)
            label = self.authority.tick(self.store.now_ns()).epoch - LABELS_BACK
            first = max(self.sums.judged + 1, label - LABELS_MAX + 1)
            try:
                rows = await self.store.rolled_up(first) if first <= label else ()
            except StoreError as error:
                self._failed("rolled_up", error)
                continue
            for each in range(first, label + 1):
                refused = self.authority.over_threshold.under(each)
                for note in self.sums.judge(each, rows, len(self.authority.edges), refused):
                    self._perform(note)

    async def _poll(self) -> None:
        while True:
            wait = (self.authority.wake_ns() - self.store.now_ns()) / 1e9
            await asyncio.sleep(min(max(wait, 0.001), POLL_MAX_S))
            self.feed(Polled())
            if self.operator.due(self.store.now_ns()):
                self._start(self.operator.end())
