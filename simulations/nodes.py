"""The three kinds of process, each a product core with a shell that stands in for sockets and timers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from apportion.allocator import events as allocating
from apportion.core.decision import Decision
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import AcquireAnswer, Return, Rules, Slices
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.core.rules_file import parse_rules
from apportion.edge import events as edging
from apportion.edge.agent import Agent
from apportion.region import events as regional
from apportion.region.counters import PeriodCounters
from apportion.region.register import epoch_at, start_ns
from apportion.simulations.disk import Disk, DiskStore, Lifetimes
from apportion.simulations.network import MS, Stream
from apportion.simulations.node import Clock, Node
from apportion.simulations.rows import Clocked

if TYPE_CHECKING:
    from apportion.simulations.world import World


@cache
def parsed(rules: Rules) -> RuleSet:
    """Parse once for all worlds and lives."""
    return parse_rules(rules.texts)


class Client(Node):
    """A node that keeps one stream to the region."""

    kind = ""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.stream: Stream | None = None

    def start(self) -> None:
        """Begin a life."""
        self.up = True
        self._connect_soon()

    def crash(self) -> None:
        """Die; the kernel closes the stream."""
        super().crash()
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.cut()

    def heard(self, stream: Stream, message: Any) -> None:
        """A message of the region arrives."""
        self._soon(partial(self._heard, stream, message))

    def lost(self, stream: Stream) -> None:
        """The stream has ended."""
        self._soon(partial(self._lost, stream))

    def _heard(self, stream: Stream, message: Any) -> None:
        if stream is self.stream:
            self._handle(self.received(message))

    def _lost(self, stream: Stream) -> None:
        if stream is self.stream:
            self.stream = None
            self._handle(self.stream_lost())
            self._connect_soon()

    def _connect_soon(self) -> None:
        pause = self.world.random.randrange(5 * MS, 300 * MS)
        self.world.at(self.world.now_ns + pause, partial(self._connect, self.life))

    def _connect(self, life: int) -> None:
        if life != self.life or self.stream is not None:
            return
        region = self.world.region
        if not region.up or self.blocked_ns > self.world.now_ns or self.paused_ns > self.world.now_ns:
            self._connect_soon()
            return
        self.stream = region.accept(self)
        self._handle(self.connected())

    def received(self, message: Any) -> Any:
        """The event of a message."""
        raise NotImplementedError

    def connected(self) -> Any:
        """The event of a fresh stream."""
        raise NotImplementedError

    def stream_lost(self) -> Any:
        """The event of a stream's end."""
        raise NotImplementedError


class EdgeNode(Client):
    """An edge."""

    kind = "edge"
    agent: Agent

    def start(self) -> None:
        """Begin a life with an incarnation of its own."""
        self.incarnation = self.world.incarnation(self.name)
        self.process = self.world.journal.started(self.name, self.incarnation)
        self.agent = self.world.options.make_agent(self.name, "here", self.incarnation, parsed)
        self._waiting: dict[int, tuple[int, int]] = {}
        self._flushing = False
        super().start()

    def ask(self, applications: tuple[Application, ...], peek: bool = False) -> None:
        """A request arrives."""
        if not self.up:
            return
        journal, now_ns = self.world.journal, self.world.now_ns
        journal.offered(now_ns, self.process, applications, peek)
        answer = self.agent.ask(applications, self.clock.read(now_ns), peek)
        if isinstance(answer, Decision):
            journal.decided(now_ns, self.process, answer)
            return
        assert answer.number not in self._waiting
        self._waiting[answer.number] = (now_ns, min([each.rule.deadline_ns for each in applications]))
        if not self._flushing and self.agent.pressing:
            self._flushing = True
            self.world.at(now_ns, partial(self._flush, self.life))

    def _flush(self, life: int) -> None:
        if life == self.life:
            self._flushing = False
            self.feed(edging.Polled())

    @property
    def waiting(self) -> dict[int, tuple[int, int]]:
        """Requests without a decision, by ticket: when they came, and the shortest deadline of their rules."""
        return self._waiting

    def core(self, event: Any, now_ns: int) -> Sequence[Any]:
        return self.agent.step(event, now_ns)

    def wake_ns(self, now_ns: int) -> int:
        return self.agent.wake_ns(now_ns)

    def poll(self) -> Any:
        return edging.Polled()

    def received(self, message: Any) -> Any:
        return edging.Received(message)

    def connected(self) -> Any:
        return edging.Connected()

    def stream_lost(self) -> Any:
        return edging.Lost()

    def act(self, command: Any) -> None:
        match command:
            case edging.Settled(ticket, decision):
                came_ns, deadline_ns = self._waiting.pop(ticket)
                self.world.journal.settled(self.world.now_ns, came_ns, deadline_ns)
                self.world.journal.decided(self.world.now_ns, self.process, decision)
            case edging.Send(message):
                self.world.journal.edge_sent(self.world.now_ns, self.name, message)
                if isinstance(message, Return):
                    self._returned(message)
                if self.stream is not None:
                    self.stream.up.send(message)
            case edging.Shadowed(verdict):
                self.world.journal.shadowed(self.world.now_ns, self.process, verdict)
            case edging.Reconnect():
                if self.stream is not None:
                    self.stream.cut(1500 * MS)
            case edging.Note("error", event, fields):
                self.world.journal.error(self.name, event, fields)

    def _returned(self, message: Return) -> None:
        names = {holding.id: holding.quota for holding in self.agent._holdings}  # noqa: SLF001  # what only it knows
        rows = zip(message.ids.tolist(), message.units.tolist(), strict=True)
        self.world.journal.returned(self.incarnation, message.epoch, {names[at]: units for at, units in rows})


class AllocatorNode(Client):
    """An allocator."""

    kind = "allocator"

    def start(self) -> None:
        """Begin a life that knows nothing."""
        incarnation = self.world.incarnation(self.name)
        self.leader = self.world.options.make_leader(self.name, incarnation)
        self._link = 0
        super().start()

    def core(self, event: Any, now_ns: int) -> Sequence[Any]:
        return self.leader.step(event, now_ns)

    def wake_ns(self, now_ns: int) -> int:
        wake = self.leader.wake_ns(now_ns)
        return now_ns + 100 * MS if wake is None else wake

    def poll(self) -> Any:
        return allocating.Polled()

    def received(self, message: Any) -> Any:
        return allocating.Received(self._link, message)

    def connected(self) -> Any:
        self._link += 1
        return allocating.Connected(self._link)

    def stream_lost(self) -> Any:
        return allocating.Lost(self._link)

    def act(self, command: Any) -> None:
        match command:
            case allocating.Send(link, message):
                if self.stream is not None and link == self._link:
                    self.stream.up.send(message)
            case allocating.Event(name, fields, "error"):
                self.world.journal.error(self.name, name, fields)


class RegionNode(Node):
    """The region, with a store that outlives it."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.disk = Disk()
        self.clock = Clock(10**18, self.clock.millionths)
        self.wall = self.clock
        self.lifetimes = Lifetimes()
        self.spread_reclaim = True
        self._sessions = 0
        self._streams: dict[int, Stream] = {}
        self._under_way: list[Callable[[], None]] = []

    def start(self) -> None:
        """Begin a life on the disk of the former one."""
        self.up = True
        self.store = DiskStore(self.disk, self.now_ns, self._make_periods)
        self.authority = self.world.options.make_authority(
            self.world.rules, parsed(self.world.rules), self.store.register, self.world.incarnation(self.name)
        )
        register, length_ns = self.store.register, self.clock.lasting(EPOCH_NS)
        epoch = epoch_at(register, self.now_ns)
        began_ns = self.clock.when(start_ns(register, epoch))
        self.world.journal.anchored(self.world.now_ns, epoch, began_ns, length_ns)
        if self.world.has_periods:
            self.tell_clocks()
            self._tidy(self.life)
        self.feed(regional.Polled())

    def _make_periods(self, durable: bool) -> PeriodCounters:
        periods = self.world.options.make_periods(durable)
        periods.spread_reclaim = self.spread_reclaim
        return periods

    def crash(self) -> None:
        """Die; of what the store was asked, some has happened and some has not."""
        super().crash()
        for work in self._under_way:
            if self.world.chance(0.5):
                work()
        self._under_way.clear()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.cut(50 * MS)

    def accept(self, client: Client) -> Stream:
        """A client connects."""
        self._sessions += 1
        stream = Stream(self.world, client.kind, client, self, self._sessions)
        self._streams[self._sessions] = stream
        return stream

    def spoke(self, stream: Stream, message: Any) -> None:
        """A message of a client arrives."""
        spoke = regional.EdgeSpoke if stream.client.kind == "edge" else regional.AllocatorSpoke
        if stream.session in self._streams:
            self.feed(spoke(stream.session, message))

    def closed(self, stream: Stream) -> None:
        """A client's stream has ended."""
        if self._streams.pop(stream.session, None) is not None:
            self.feed(regional.Closed(stream.session))

    def core(self, event: Any, now_ns: int) -> Sequence[Any]:
        return self.authority.step(event, now_ns)

    def wake_ns(self, now_ns: int) -> int:
        return min(self.authority.wake_ns(), now_ns + 250 * MS)

    def poll(self) -> Any:
        return regional.Polled()

    def act(self, command: Any) -> None:
        match command:
            case regional.Send(session, message):
                self._send(session, message)
            case regional.Close(session):
                if session in self._streams:
                    self._streams[session].finish()
            case regional.Consume(request):
                self._ask_store(lambda: self._consume(command), partial(regional.Consumed, request))
            case regional.SwapRegister(request):
                self._ask_store(lambda: self._swap(command), lambda done: regional.Swapped(request, done, self._read()))
            case regional.RollUp(request):
                self._ask_store(lambda: self._roll_up(command), lambda _: regional.RolledUp(request, done=True))
            case regional.Note("error", event, fields):
                self.world.journal.error(self.name, event, fields)

    def _send(self, session: int, message: Any) -> None:
        stream = self._streams.get(session)
        if stream is None:
            return
        if isinstance(message, Slices | AcquireAnswer):
            self.world.journal.region_sent(self.world.now_ns, self.authority, session, message)
        stream.down.send(message)
        if isinstance(message, AcquireAnswer) and self.world.chance(self.world.options.lost_answers):
            stream.cut(50 * MS)

    def _ask_store(self, work: Callable[[], Any], answer: Callable[[Any], Any]) -> None:
        random, now_ns = self.world.random, self.world.now_ns
        self._under_way.append(work)
        self.world.at(now_ns + random.randrange(1, 3 * MS), partial(self._in_store, self.life, work, answer))

    def _in_store(self, life: int, work: Callable[[], Any], answer: Callable[[Any], Any]) -> None:
        if life != self.life:
            return
        self._under_way.remove(work)
        event = answer(work())
        later = self.world.now_ns + self.world.random.randrange(1, 2 * MS)
        self.world.at(later, lambda: self.feed(event) if life == self.life else None)

    def _read(self) -> Any:
        return self.store.register

    def _swap(self, command: regional.SwapRegister) -> bool:
        return self.store.swap(command)

    def _consume(self, command: regional.Consume) -> Any:
        if self.world.has_periods:
            return self._tally(command)
        answers = self.store.consume(command, self.now_ns)
        self.world.journal.consumed(self.now_ns, command, answers)
        return answers

    def _tally(self, command: regional.Consume) -> Any:
        """The same where calendars count, and lifetimes may be wrong."""
        world, journal = self.world, self.world.journal
        store_ns, wall_ns = self.now_ns, self.wall_ns
        if self.lifetimes.wrong:
            self.lifetimes.spoil(self.store.asked(command, wall_ns))
        answers = self.store.consume(command, store_ns, wall_ns)
        self.store.count_missing()
        journal.consumed(store_ns, command, answers)
        journal.tallied(world.now_ns, store_ns, wall_ns, command, answers)
        self._tell_filed()
        return answers

    @property
    def wall_ns(self) -> int:
        """What calendars are read from."""
        return self.wall.read(self.world.now_ns)

    def set_wall(self, begins_ns: int, at_ns: int, fast: int) -> None:
        """Before the start: let both clocks of the store show `begins_ns` at the instant `at_ns`, and the wall clock
        run `fast` millionths too fast.
        """
        self.clock = Clock(begins_ns - self.clock.read(at_ns) + self.clock.offset_ns, self.clock.millionths)
        self.wall = Clock(begins_ns - at_ns, fast)

    def tell_clocks(self) -> None:
        """Tell what the clocks show from now on."""
        now_ns = self.world.now_ns
        fast = self.clock.millionths, self.wall.millionths
        self.world.journal.clocked(Clocked(now_ns, self.clock.read(now_ns), self.wall.read(now_ns), *fast))

    def _tidy(self, life: int) -> None:
        if life == self.life:
            self.store.tidy(self.now_ns, self.wall_ns)
            self._tell_filed()
            self.world.after(0.5, partial(self._tidy, life))

    def _tell_filed(self) -> None:
        store = self.store
        if store.made or store.reclaimed:
            self.world.journal.filed(self.world.now_ns, store.made, store.reclaimed)
            store.made, store.reclaimed = [], []

    def _roll_up(self, command: regional.RollUp) -> None:
        new = self.store.roll_up(command, self.now_ns)
        self.world.journal.rolled_up(self.now_ns, command, new)
        if new and command.given_back:
            self.world.journal.gave_back(self.world.now_ns, command)
