"""A limiter that asks an edge agent over gRPC: one agent for all workers of a host. It knows no rules itself.

Where no answer comes in time it answers by `when_unreachable`, marked degraded; only wrong input raises.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable, Mapping
from typing import Literal
from weakref import WeakKeyDictionary

import grpc
import grpc.aio
import structlog

from apportion.core.decision import Decision, Reason
from apportion.core.errors import InputError, ProtocolError
from apportion.core.plans import shown_value
from apportion.core.request import Cost
from apportion.edge.asking import MESSAGE_BYTES_MAX
from apportion.edge.limiter import Limiter, checked_costs
from apportion.edge.limiter_answer import from_response
from apportion.listening import check_address
from apportion.proto.v1 import limiter_pb2, limiter_pb2_grpc
from apportion.proto.wire import CHANNEL_OPTIONS

log = structlog.get_logger("apportion.limiter")

TIMEOUT_S_MAX = 60.0
"""A caller that would wait longer for a limiter has another problem."""

RETRY_S = 1.0
"""What a caller refused because the agent is away is told to wait."""

_OPTIONS = [
    *CHANNEL_OPTIONS,
    # Else gRPC's pause before it tries again grows to two minutes (design 5.10).
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Whatever its name, this is what connecting may take. The pause's length is too short for it on a busy machine.
    ("grpc.min_reconnect_backoff_ms", 1_000),
]
_WRONG = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


class UnreachableDecision(Decision):
    """The answer in place of an agent's that did not come: no rule, no numbers, degraded."""

    __slots__ = ()

    def __init__(self, allowed: bool) -> None:
        super().__init__(allowed, ())

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before asking again; 0.0 when allowed."""
        return 0.0 if self.allowed else RETRY_S

    @property
    def reason(self) -> str | None:
        """As of every refusal that nobody decided; None when allowed."""
        return None if self.allowed else Reason.UNAVAILABLE.value

    @property
    def degraded(self) -> bool:
        """Always: nobody was asked."""
        return True


class ConnectedLimiter(Limiter):
    """Asks an edge agent. Made by `Limiter.connect`; safe for threads, and for coroutines of any event loop.

    Each process makes a connection of its own with its first decision, for gRPC's do not survive a fork. gRPC asks that
    a process that forks has not used it before: connect in the parent, decide in the workers.
    """

    def __init__(self, address: str, when_unreachable: Literal["allow", "deny"] | None, timeout_s: float) -> None:
        if when_unreachable not in ("allow", "deny"):
            raise InputError(
                f"when_unreachable is 'allow' or 'deny', not {shown_value(when_unreachable)}: say what is answered "
                "while the agent is away. Protecting something fragile usually wants 'deny', a courtesy 'allow'"
            )
        given: object = timeout_s
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if not number or not math.isfinite(timeout_s) or not 0 < timeout_s <= TIMEOUT_S_MAX:
            raise InputError(
                f"timeout_s is above 0 and at most {TIMEOUT_S_MAX:g} seconds, not {shown_value(timeout_s)}"
            )
        self._address = check_address(address)
        self._away = UnreachableDecision(when_unreachable == "allow")
        self._timeout_s = float(timeout_s)
        self._process = 0
        self._channel: grpc.Channel | None = None
        self._calls: dict[bool, grpc.UnaryUnaryMultiCallable[limiter_pb2.DecideRequest, limiter_pb2.DecideResponse]]
        self._calls = {}
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, grpc.aio.Channel] = WeakKeyDictionary()
        self._reached = True
        self._closed = False

    def decide(
        self, request: Mapping[str, str], cost: Cost = None, domain: str | None = None, peek: bool = False
    ) -> Decision:
        """Whether `request` may pass, by the agent's rules; charged if it may. Arguments are those of `Limiter.decide`.

        Blocks for at most `timeout_s`. A request without an answer may have been charged.
        """
        message = _message(request, cost, domain)
        try:
            response = self._call(bool(peek))(message, timeout=self._timeout_s)
        except grpc.RpcError as error:
            return self._failed(error)
        return self._told(response, domain)

    async def decide_async(
        self, request: Mapping[str, str], cost: Cost = None, domain: str | None = None, peek: bool = False
    ) -> Decision:
        """As `decide`, without blocking the event loop."""
        message = _message(request, cost, domain)
        stub = limiter_pb2_grpc.LimiterStub(self._loop_channel())
        call = stub.Peek if peek else stub.Decide
        try:
            response = await call(message, timeout=self._timeout_s)
        except grpc.RpcError as error:
            return self._failed(error)
        return self._told(response, domain)

    def close(self) -> None:
        """Close the connections; nothing may be decided afterwards."""
        self._closed = True
        if self._channel is not None and self._process == os.getpid():
            self._channel.close()
        self._channel = None
        self._calls = {}

    async def close_async(self) -> None:
        """As `close`, and with it the connection of the running event loop."""
        channel = self._by_loop.pop(asyncio.get_running_loop(), None)
        if channel is not None:
            await channel.close()
        self.close()

    def _call(self, peek: bool) -> grpc.UnaryUnaryMultiCallable[limiter_pb2.DecideRequest, limiter_pb2.DecideResponse]:
        """The method to call, on this process's channel."""
        if self._process != os.getpid():
            self._check_open()
            self._channel = grpc.insecure_channel(self._address, options=_OPTIONS)
            stub = limiter_pb2_grpc.LimiterStub(self._channel)
            self._calls = {False: stub.Decide, True: stub.Peek}
            self._process = os.getpid()
        call = self._calls.get(peek)
        if call is None:
            self._check_open()
        assert call is not None
        return call

    def _loop_channel(self) -> grpc.aio.Channel:
        self._check_open()
        loop = asyncio.get_running_loop()
        channel = self._by_loop.get(loop)
        if channel is None:
            channel = self._by_loop[loop] = grpc.aio.insecure_channel(self._address, options=_OPTIONS)
        return channel

    def _check_open(self) -> None:
        if self._closed:
            raise InputError("this limiter is closed; make another with Limiter.connect")

    def _told(self, response: limiter_pb2.DecideResponse, domain: str | None) -> Decision:
        if not self._reached:
            self._reached = True
            log.info("edge_reached", edge=self._address)
        try:
            return from_response(response, domain or "")
        except ProtocolError as error:
            return self._unanswered(str(error))

    def _failed(self, error: grpc.RpcError) -> Decision:
        """The answer where a call failed. InputError where that is the caller's doing: an outage it is not."""
        code, details = error.code(), error.details()
        if code in _WRONG:
            raise InputError(str(details)) from error
        return self._unanswered(f"{code.name}: {details}")

    def _unanswered(self, reason: str) -> Decision:
        if self._reached:  # logged once, however many requests meet it
            self._reached = False
            log.warning("edge_unreachable", edge=self._address, reason=reason, allowed=self._away.allowed)
        return self._away


def _message(request: Mapping[str, str], cost: Cost, domain: str | None) -> limiter_pb2.DecideRequest:
    """A question as a message. InputError names what is wrong with it."""
    if cost is not None:
        cost = checked_costs(cost)
    if not isinstance(request, Mapping):
        raise InputError(f"a request is a mapping of dimensions to texts, not {shown_value(request)}")
    pairs: Iterable[tuple[object, object]] = request.items()
    for name, value in pairs:
        if not isinstance(name, str) or not isinstance(value, str):
            raise InputError(f"dimension {shown_value(name)} has the value {shown_value(value)}; both are texts")
    if domain is not None and not isinstance(domain, str):
        raise InputError(f"domain is a text, not {shown_value(domain)}")
    try:
        if cost is None or isinstance(cost, int):
            descriptor = limiter_pb2.Descriptor(dimensions=dict(request), cost=cost)
        else:
            descriptor = limiter_pb2.Descriptor(dimensions=dict(request), costs=cost)
        message = limiter_pb2.DecideRequest(domain=domain or "", descriptors=[descriptor])
    except (ValueError, UnicodeError) as error:
        raise InputError(f"a dimension or the domain is not UTF-8 text: {error}") from error
    if message.ByteSize() > MESSAGE_BYTES_MAX:
        raise InputError(f"the request has {message.ByteSize()} bytes; an agent takes at most {MESSAGE_BYTES_MAX}")
    return message
