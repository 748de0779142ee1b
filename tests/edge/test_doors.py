"""The doors of an edge as a server: damaged requests, sizes, health, reflection, opening and closing."""

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from apportion.core.decision import Decision
from apportion.core.errors import InputError
from apportion.core.match import Matcher
from apportion.core.request import Application
from apportion.edge.doors import open_doors
from tests.doors import Opened, Waiting, opened, refusal, rls_request
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

TENANT = rules_text(rule_text("tenant-requests", "rate: 10/min, burst: 10"))
RLS = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
METHODS = [
    RLS,
    *(f"/apportion.v1.Limiter/{name}" for name in ("Decide", "DecideMany", "Peek")),
    "/grpc.health.v1.Health/Check",
]
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICES = ["", "envoy.service.ratelimit.v3.RateLimitService", "apportion.v1.Limiter"]


async def lives(doors: Opened) -> bool:
    """Whether the server still answers."""
    answer = await doors.limit({"tenant": "contoso"})
    return bool(answer.statuses[0].limit_remaining == 9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("raw", [b"\n\x02\xff\xfe", b"\n\x05ab", b"\xff\xff\xff", b"\x0b"])
async def test_bytes_that_are_no_message(method: str, raw: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """Not UTF-8, cut short, no field at all: INVALID_ARGUMENT, nothing in the log, and the process lives."""
    async with opened(TENANT) as doors:
        code, details = await refusal(doors.raw(method, raw))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert details.startswith(f"the request of {method[1:]} cannot be read")
        assert await lives(doors)
    assert capfd.readouterr() == ("", "")


async def test_random_bytes() -> None:
    """Whatever comes is answered: refused, or, where it happens to be a message, by its own rules."""
    rng = random.Random(5)
    valid = rls_request({"tenant": "fabrikam"}).SerializeToString()
    async with opened(TENANT) as doors:
        call: Any = doors.channel.unary_unary(RLS)
        codes = set()
        for _ in range(300):
            raw = bytearray(valid if rng.random() < 0.5 else rng.randbytes(rng.randrange(60)))
            for _ in range(rng.randrange(1, 4)):
                if raw:
                    raw[rng.randrange(len(raw))] = rng.randrange(256)
            codes.add(await call(bytes(raw)).code())
        assert await lives(doors)
    assert codes == {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}


async def test_a_message_above_the_bound_is_refused_unread() -> None:
    """4 MiB may come; more is RESOURCE_EXHAUSTED."""
    async with opened(TENANT) as doors:
        fits = await doors.limit({"tenant": "x" * (4 * 2**20 - 100)})
        code, _ = await refusal(doors.limit({"tenant": "x" * (4 * 2**20)}))
        assert await lives(doors)
    assert fits.statuses[0].limit_remaining == 9
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


class Wordy(Waiting):
    """A decider with an error text longer than a header may be, in a script that takes twelve bytes a character."""

    def matcher(self, domain: str) -> Matcher:
        raise InputError("\U0001f600" * 2**16)


async def test_an_error_text_of_any_length_arrives() -> None:
    """It comes cut; whole, gRPC would refuse the trailers and the caller would get another status."""
    async with opened(Wordy()) as doors:
        code, details = await refusal(doors.limit({"tenant": "contoso"}))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details == "\U0001f600" * 497 + "..."


class Nonsense(Waiting):
    """A decider that breaks its promise of one verdict for each application."""

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision:  # type: ignore[override]
        return Decision(True, ())


async def test_a_fault_beyond_deciding_is_internal_and_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """The caller is told nothing of it; the log has the method and the traceback."""
    async with opened(Nonsense()) as doors:
        told = await refusal(doors.limit({"tenant": "contoso"}))
    assert told == (grpc.StatusCode.INTERNAL, "internal error; the server's log has it")
    log = capsys.readouterr().out
    assert "call_failed" in log
    assert "ShouldRateLimit" in log
    assert "one verdict for each application" in log


async def test_a_method_that_there_is_not() -> None:
    """UNIMPLEMENTED, of services we have and have not."""
    async with opened(TENANT) as doors:
        for method in ("/apportion.v1.Limiter/Refund", "/no.Such/Method", "/grpc.health.v1.Health/List"):
            code, _ = await refusal(doors.raw(method, b""))
            assert code is grpc.StatusCode.UNIMPLEMENTED


async def test_health_says_what_it_was_told() -> None:
    """Of the whole and of both services; a watcher sees each change."""
    async with opened(TENANT) as doors:
        checks = doors.stub(health_pb2_grpc.HealthStub)
        watch = checks.Watch(health_pb2.HealthCheckRequest(service="apportion.v1.Limiter"))
        for serving, status in ((True, SERVING), (False, NOT_SERVING), (True, SERVING)):
            await doors.doors.set_serving(serving)
            told = [(await checks.Check(health_pb2.HealthCheckRequest(service=name))).status for name in SERVICES]
            assert told == [status] * 3
            assert (await watch.read()).status == status


class Unready(Waiting):
    """A decider that is not ready."""

    ready = False


async def test_health_begins_as_the_decider_is() -> None:
    """Not serving before the region was reached."""
    async with opened(Unready()) as doors:
        checks = doors.stub(health_pb2_grpc.HealthStub)
        told = [(await checks.Check(health_pb2.HealthCheckRequest(service=name))).status for name in SERVICES]
    assert told == [NOT_SERVING] * 3


async def test_reflection_lists_the_services_and_knows_their_messages() -> None:
    """As tools like grpcurl ask it."""
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="apportion.v1.Limiter"),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="envoy.service.ratelimit.v3.RateLimitService"),
    ]
    async with opened(TENANT) as doors:
        stub = doors.stub(reflection_pb2_grpc.ServerReflectionStub)
        listed, own, envoys = [answer async for answer in stub.ServerReflectionInfo(iter(requests))]
    names = {service.name for service in listed.list_services_response.service}
    assert {"envoy.service.ratelimit.v3.RateLimitService", "apportion.v1.Limiter", "grpc.health.v1.Health"} <= names
    assert own.file_descriptor_response.file_descriptor_proto
    assert envoys.file_descriptor_response.file_descriptor_proto


async def test_closing_answers_what_is_under_way_and_takes_nothing_new() -> None:
    """A request that waits for its decision gets it; a watcher does not hold the closing up."""
    decider = Waiting()
    async with opened(decider) as doors:
        watch = doors.stub(health_pb2_grpc.HealthStub).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        call = doors.limit({"tenant": "contoso"})
        under_way = asyncio.create_task(call)
        applications, future = await decider.asked.get()
        closing = asyncio.create_task(doors.doors.close(30.0))
        assert (await watch.read()).status == NOT_SERVING
        assert await watch.read() is grpc.aio.EOF
        future.set_exception(RuntimeError("answered by when_unavailable"))
        answer = await under_way
        await asyncio.wait_for(closing, 5.0)
        code, _ = await refusal(doors.limit({"tenant": "contoso"}))
    assert answer.statuses[0].current_limit.name == applications[0].rule.name
    assert code is grpc.StatusCode.UNAVAILABLE


async def test_a_port_in_use_is_named_with_the_fix(capfd: pytest.CaptureFixture[str]) -> None:
    """A second edge on the port gets an error for people, not half of the calls."""
    async with opened(TENANT) as doors:
        with pytest.raises(InputError) as refused:
            await open_doors(doors.doors.address, Waiting())
        assert await lives(doors)
    assert str(refused.value) == (
        f"cannot listen on {doors.doors.address}: Address already in use; choose another address, or stop the process "
        f"that has this one"
    )
    assert capfd.readouterr() == ("", "")


async def test_no_other_process_can_share_the_port() -> None:
    """Linux would let one in that asks for it, and give it half of the calls, if our server had asked too."""
    async with opened(TENANT) as doors:
        host, _, port = doors.doors.address.rpartition(":")
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="in use"):
                other.bind((host, int(port)))


async def test_a_socket_that_a_process_serves_is_not_taken_from_it(tmp_path: Path) -> None:
    """A stale one is replaced, a served one is not."""
    address = f"unix:{tmp_path}/rls.sock"
    async with opened(TENANT, address) as doors:
        with pytest.raises(InputError, match="another process listens there"):
            await open_doors(address, Waiting())
        assert await lives(doors)
