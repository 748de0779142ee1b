"""The load process of `apportion demo`: asks through the edges' RLS doors, and referees by the answers it gets.

Run as a process of its own: an order on standard input, accounts on standard output, one JSON line each. It ends when
its standard input does, so that it never outlives the demo. Open loop: what is offered does not wait for answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import count

import grpc
import grpc.aio
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from envoy.service.ratelimit.v3 import rls_pb2

from apportion.commands.demonstration.accounts import STOP, Account, Ask, EdgeAccount, Order, RuleAccount
from apportion.commands.demonstration.referee import Referee, Tally
from apportion.commands.demonstration.traffic import arrivals

METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

WAITING_MAX = 1_000
"""Requests without an answer; above it arrivals are left out and counted, or a dead edge would fill the memory."""

BREATHE_EVERY = 32
"""Requests sent in a row before answers get a turn, when this process is behind its own timetable."""

ACCOUNT_S = 1.0

CHANNEL_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 200))
"""An edge that was killed and is back is asked again at once; gRPC's own backoff would grow to two minutes."""

LINE_MAX = 1 << 20

now_ns = time.monotonic_ns


class EdgeTally:
    """Requests to one edge."""

    __slots__ = ("answered", "failures", "sent", "slowest_ns")

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self.slowest_ns = 0
        self.failures: Counter[str] = Counter()

    def account(self) -> EdgeAccount:
        """As it is told."""
        return EdgeAccount(self.sent, self.answered, dict(self.failures), self.slowest_ns // 1_000_000)


class Load:
    """Offers one order's traffic and keeps account of it."""

    def __init__(self, order: Order, tell: Callable[[Account], None]) -> None:
        self.order = order
        self.referee = Referee([(ask.limit, ask.divided) for ask in order.asks])
        self._tell = tell
        self._requests = [request_bytes(ask) for ask in order.asks]
        self._edges = [EdgeTally() for _ in order.edges]
        self._calls: list[grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = []
        self._waiting: dict[int, int] = {}  # number -> sent, in the order of sending
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = count()
        self._late_ns = 0
        self._stopping = False
        self._not_sent = 0
        self._started_ns = 0
        self._cpu_started = 0.0
        self._ended_label: int | None = None
        self._told: list[dict[int, int]] = [{} for _ in order.asks]

    def stop(self) -> None:
        """Offer no more; `run` goes on to its end."""
        self._stopping = True

    async def run(self) -> None:
        """Offer the traffic, wait for its answers, give the last account."""
        async with contextlib.AsyncExitStack() as stack:
            for address in self.order.edges:
                channel = await stack.enter_async_context(grpc.aio.insecure_channel(address, CHANNEL_OPTIONS))
                self._calls.append(channel.unary_unary(METHOD))  # bytes in, bytes out
            self._started_ns, self._cpu_started = now_ns(), time.process_time()
            teller = asyncio.create_task(self._tell_each_second())
            await self._offer()
            self._ended_label = self.referee.label_at(now_ns())
            if self._tasks:
                await asyncio.wait(self._tasks)
            teller.cancel()
            self._tell(self._account(done=True))

    async def _offer(self) -> None:
        rates = [ask.requests_per_second for ask in self.order.asks]
        in_a_row = 0
        order = self.order
        for arrival in arrivals(rates, len(self._calls), order.seed, int(order.seconds * 1e9), order.dwell_ns):
            wait_ns = self._started_ns + arrival.at_ns - now_ns()
            self._late_ns = max(self._late_ns, -wait_ns)
            in_a_row = 0 if wait_ns > 0 else in_a_row + 1
            if wait_ns > 0 or in_a_row % BREATHE_EVERY == 0:
                await asyncio.sleep(max(wait_ns, 0) / 1e9)
            if self._stopping:
                return
            if len(self._waiting) >= WAITING_MAX:
                self._not_sent += 1
                continue
            task = asyncio.create_task(self._ask(arrival.question, arrival.edge))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, question: int, edge: int) -> None:
        cost, tally = self.order.asks[question].cost, self._edges[edge]
        number, sent = next(self._numbers), now_ns()
        self.referee.sent(question, cost, sent)
        tally.sent += 1
        self._waiting[number] = sent
        try:
            answer = await self._calls[edge](self._requests[question], timeout=self.order.answer_s)
            self._take(question, rls_pb2.RateLimitResponse.FromString(answer), sent)
            tally.answered += 1
            tally.slowest_ns = max(tally.slowest_ns, now_ns() - sent)
        except grpc.aio.AioRpcError as error:
            self.referee.unanswered(question, cost)
            tally.failures[error.code().name] += 1
        finally:
            del self._waiting[number]

    def _take(self, question: int, answer: rls_pb2.RateLimitResponse, sent_ns: int) -> None:
        fields = answer.dynamic_metadata.fields
        degraded = fields["degraded"].bool_value
        if answer.overall_code != rls_pb2.RateLimitResponse.OK:
            self.referee.refused(question, degraded)
            return
        ask = self.order.asks[question]
        charges = []
        for value in fields["charged"].list_value.values:
            charge = value.struct_value.fields
            key = tuple(part.string_value for part in charge["key"].list_value.values)
            if (charge["rule"].string_value, key) == (ask.rule, ask.key):
                label = int(charge["epoch"].number_value) if "epoch" in charge else None
                charges.append((label, int(charge["cost"].number_value)))
        self.referee.admitted(question, charges, degraded, sent_ns, now_ns())

    # --- accounts

    async def _tell_each_second(self) -> None:
        for second in count(1):
            await asyncio.sleep(max(0.0, second * ACCOUNT_S - (now_ns() - self._started_ns) / 1e9))
            self._tell(self._account(done=False))

    def _account(self, done: bool) -> Account:
        now = now_ns()
        late_ns, self._late_ns = self._late_ns, 0
        oldest = next(iter(self._waiting.values()), None)
        settled = self._ended_label if done else self.referee.settled_through(now, oldest)
        first, last = self._whole_epochs(settled)
        usage = self.referee.tallies[0].utilisation(first, last)
        return Account(
            seconds=(now - self._started_ns) / 1e9,
            done=done,
            requests=sum(tally.sent for tally in self._edges),
            waiting=len(self._waiting),
            not_sent=self._not_sent,
            late_ms=late_ns // 1_000_000,
            cpu_seconds=time.process_time() - self._cpu_started,
            warm_up_epochs=usage.warm_up,
            measured_epochs=usage.epochs,
            rules=tuple(
                self._rule(tally, told, settled, first, last, done)
                for tally, told in zip(self.referee.tallies, self._told, strict=True)
            ),
            edges=tuple(tally.account() for tally in self._edges),
        )

    def _whole_epochs(self, settled: int | None) -> tuple[int, int]:
        """First and last epoch that were offered traffic from their start to their end, and whose answers are in."""
        if self.referee.first_label is None or settled is None:
            return 1, 0
        last = settled if self._ended_label is None else min(settled, self._ended_label - 1)
        return self.referee.first_label + 1, last

    def _rule(
        self, tally: Tally, told: dict[int, int], settled: int | None, first: int, last: int, done: bool
    ) -> RuleAccount:
        verdict = tally.verdict(max(tally.by_label, default=None) if done else settled)
        changed = {label: units for label, units in tally.by_label.items() if done or told.get(label) != units}
        told.update(changed)
        return RuleAccount(
            offered=tally.offered,
            admitted=tally.admitted,
            refused=tally.refused,
            unanswered=tally.unanswered,
            unlabelled=tally.unlabelled,
            degraded=tally.degraded,
            overshoot=verdict.overshoot,
            above_quota=verdict.above_quota,
            overshoot_true_second=tally.overshoot_true_second,
            overshoot_true_second_certain=tally.overshoot_true_second_certain,
            last_label=settled,
            last_offered=tally.offered_by_epoch.get(settled, 0) if settled is not None else 0,
            last_admitted=tally.by_label.get(settled, 0) if settled is not None else 0,
            utilisation=tally.utilisation(first, last).value,
            labels=changed,
            offered_labels=dict(tally.offered_by_epoch) if done else {},
        )


def request_bytes(ask: Ask) -> bytes:
    """The RLS request that asks for the rule; the cost is left to the rule's default."""
    entries = [ratelimit_pb2.RateLimitDescriptor.Entry(key=name, value=value) for name, value in ask.dimensions]
    request = rls_pb2.RateLimitRequest(
        domain=ask.domain, descriptors=[ratelimit_pb2.RateLimitDescriptor(entries=entries)]
    )
    raw: bytes = request.SerializeToString()
    return raw


def _tell(account: Account) -> None:
    sys.stdout.buffer.write(account.line())
    sys.stdout.buffer.flush()


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LINE_MAX)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return reader


async def serve() -> None:
    """Take an order, carry it out; stop early when told so; end at once when standard input ends."""
    orders = await _standard_input()
    line = await orders.readline()
    if not line:
        return
    load = Load(Order.read(line), _tell)
    work = asyncio.create_task(load.run())
    ended = asyncio.create_task(_listen(orders, load))
    await asyncio.wait([work, ended], return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        ended.cancel()
        work.result()


async def _listen(orders: asyncio.StreamReader, load: Load) -> None:
    """Take what is said after the order, until standard input ends."""
    while line := await orders.readline():
        if line == STOP:
            load.stop()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        asyncio.run(serve())
