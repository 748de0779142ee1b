"""Calls at the gRPC doors, over a real connection: compression, deadlines, damaged calls, statuses, streams."""

import asyncio
import gzip
import zlib
from typing import Any

import grpc
import grpc.aio
import pytest
from envoy.service.ratelimit.v3 import rls_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.doors import OK, Waiting, opened, refusal, rls_request
from tests.http2_peer import (
    ACK,
    ASK,
    DATA,
    END_HEADERS,
    END_STREAM,
    FIELDS,
    HEADERS,
    HELLO,
    NO_ERROR,
    PING,
    RST_STREAM,
    Answer,
    block,
    connected,
    grpc_message,
    raw,
    request,
    reset,
    setting,
)
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

TENANT = rules_text(rule_text("tenant-requests", "rate: 10/min, burst: 10"))
MESSAGE = ASK[5:]
MIB = 2**20
WATCH = [*FIELDS[:2], (":path", "/grpc.health.v1.Health/Watch"), *FIELDS[3:]]
EVERYTHING = grpc_message(health_pb2.HealthCheckRequest().SerializeToString())


def encoded(name: str) -> list[tuple[str, str]]:
    """The usual headers, and that messages are compressed so."""
    return [*FIELDS, ("grpc-encoding", name)]


async def answered(sent: bytes) -> Answer:
    """The answer on stream 1, and that the connection is still good."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(sent)
        answer = await peer.answer(1)
        await peer.send(raw(PING, 0, 0, bytes(8)))
        await peer.until(PING, flags=ACK)
    return answer


@pytest.mark.parametrize(
    "sent",
    [
        request(1, encoded("gzip"), grpc_message(gzip.compress(MESSAGE), compressed=True)),
        request(1, encoded("deflate"), grpc_message(zlib.compress(MESSAGE), compressed=True)),
        request(1, encoded("gzip"), grpc_message(MESSAGE)),
        request(1, encoded("identity"), grpc_message(MESSAGE)),
    ],
    ids=["gzip", "deflate", "gzip, but not this one", "identity"],
)
async def test_compressed_messages_are_read(sent: bytes) -> None:
    """As gRPC's own servers do."""
    assert (await answered(sent)).status == "0"


REFUSED = {
    "snappy": (request(1, encoded("snappy")), "12", "grpc-encoding 'snappy' is not known; identity, deflate, gzip are"),
    "compressed, nobody knows how": (
        request(1, FIELDS, grpc_message(MESSAGE, compressed=True)),
        "13",
        "a message is compressed, and grpc-encoding does not say how",
    ),
    "no gzip": (
        request(1, encoded("gzip"), grpc_message(MESSAGE, compressed=True)),
        "13",
        "a message cannot be expanded: it is no gzip",
    ),
    "half a gzip": (
        request(1, encoded("gzip"), grpc_message(gzip.compress(MESSAGE)[:-9], compressed=True)),
        "13",
        "a message cannot be expanded: it is no gzip",
    ),
    "16 MiB in 16 KiB": (
        request(1, encoded("gzip"), grpc_message(gzip.compress(bytes(16 * MIB))[:16_000], compressed=True)),
        "8",
        "a message has 4194305 bytes or more, the most is 4194304",
    ),
    "a message above the bound, before it came": (
        request(1, FIELDS, b"\0" + (4 * MIB + 1).to_bytes(4) + b"x", flags=0),
        "8",
        "a message has 4194305 bytes or more, the most is 4194304",
    ),
    "no message": (
        raw(HEADERS, END_HEADERS | END_STREAM, 1, block(FIELDS)),
        "3",
        "the request ends within its message, or before it",
    ),
    "half a message": (request(1, FIELDS, ASK[:-1]), "3", "the request ends within its message, or before it"),
    "two messages": (request(1, FIELDS, 2 * ASK), "3", "the method takes one message, and more came"),
    "no time": (
        request(1, [*FIELDS, ("grpc-timeout", "soon")]),
        "3",
        "grpc-timeout 'soon' is no time, as 20m is",
    ),
    "no such method": (
        request(1, [*FIELDS[:2], (":path", "/no.Such/Method"), *FIELDS[3:]]),
        "12",
        "this method is not offered here",
    ),
    "a watch of nothing": (request(1, WATCH, b""), "3", "the request ends within its message, or before it"),
    "half a watch": (request(1, WATCH, b"\0\0\0"), "3", "the request ends within its message, or before it"),
}


@pytest.mark.parametrize("sent, status, text", REFUSED.values(), ids=REFUSED)
async def test_a_call_that_cannot_be_answered_says_why(
    sent: bytes, status: str, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A status and a text, in the one block of headers; nothing is charged or logged, and the connection goes on."""
    answer = await answered(sent)
    assert (answer.fields[":status"], answer.status, answer.fields["grpc-message"]) == ("200", status, text)
    assert answer.body == b""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("replaced", [(":method", "GET"), ("content-type", "text/html")])
async def test_what_is_no_call_is_told_so(replaced: tuple[str, str]) -> None:
    """HTTP's 415: a browser, or a program of another protocol."""
    fields = [replaced if name == replaced[0] else (name, value) for name, value in FIELDS]
    assert (await answered(request(1, fields))).fields == {":status": "415"}


async def test_an_early_answer_stops_the_rest_of_the_request() -> None:
    """A refused call that is not all here is reset with NO_ERROR after its answer; what still comes does no harm."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1, FIELDS, b"\0\x7f\0\0\0", flags=0))
        assert (await peer.answer(1)).status == "8"
        assert (await peer.until(RST_STREAM, 1)).number == NO_ERROR
        await peer.send(raw(DATA, END_STREAM, 1, bytes(9_000)), request(3))
        assert (await peer.answer(3)).status == "0"


async def test_a_deadline_ends_a_call_that_waits() -> None:
    """DEADLINE_EXCEEDED to a peer that does not look at the clock itself, and the decision is cancelled."""
    decider = Waiting()
    async with opened(decider) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1, [*FIELDS, ("grpc-timeout", "30m")]))
        answer = await peer.answer(1)
        _, future = await decider.asked.get()
    assert (answer.status, answer.fields["grpc-message"]) == ("4", "the call's grpc-timeout is over")
    assert future.cancelled()


async def test_a_clients_deadline_and_its_giving_up_cancel_the_decision() -> None:
    """As a gRPC client does both."""
    decider = Waiting()
    async with opened(decider) as doors:
        code, _ = await refusal(doors.rls.ShouldRateLimit(rls_request({"tenant": "a"}), timeout=0.03))
        _, late = await decider.asked.get()
        call = doors.limit({"tenant": "a"})
        waiting = asyncio.create_task(call)
        _, given_up = await decider.asked.get()
        waiting.cancel()
        async with asyncio.timeout(20):
            await asyncio.wait([late, given_up])
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert late.cancelled() and given_up.cancelled()


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_a_client_that_compresses_is_served(compression: grpc.Compression) -> None:
    """A real one."""
    async with (
        opened(TENANT) as doors,
        grpc.aio.insecure_channel(doors.doors.address, compression=compression) as channel,
    ):
        stub: Any = rls_pb2_grpc.RateLimitServiceStub(channel)
        answer = await stub.ShouldRateLimit(rls_request({"tenant": "x" * 1_000}))
    assert answer.overall_code == OK


async def test_many_calls_at_once_of_a_real_client() -> None:
    """Each gets its own answer, also large ones, whose requests and answers pass every window."""
    async with opened(rules_text(rule_text("r", "rate: 1000000/s, burst: 250000"))) as doors:
        calls = [doors.limit({"tenant": f"t{number}"}) for number in range(500)]
        large = [doors.limit(*({"tenant": f"{number}"} for number in range(250))) for _ in range(40)]
        huge = [doors.limit({"tenant": "x" * MIB}) for _ in range(8)]
        answers = await asyncio.gather(*calls, *large, *huge)
    assert [len(answer.statuses) for answer in answers] == [1] * 500 + [250] * 40 + [1] * 8
    assert {answer.overall_code for answer in answers} == {OK}


async def test_health_of_a_service_that_there_is_not() -> None:
    """Check: NOT_FOUND. Watch: SERVICE_UNKNOWN, and the call stays."""
    async with opened(TENANT) as doors:
        checks = doors.stub(health_pb2_grpc.HealthStub)
        asked = health_pb2.HealthCheckRequest(service="no.Such")
        code, _ = await refusal(checks.Check(asked))
        told = await checks.Watch(asked).read()
    assert code is grpc.StatusCode.NOT_FOUND
    assert told.status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


async def test_a_watch_waits_for_its_window_and_ends_with_its_peer() -> None:
    """A peer without room holds up nobody, and is told when it has; after a reset nobody watches."""
    async with opened(TENANT) as doors, connected(doors.doors.address, HELLO + setting(4, 0)) as peer:
        await peer.send(request(1, WATCH, EVERYTHING))
        await peer.until(HEADERS, 1)
        await doors.doors.set_serving(False)
        await peer.send(setting(4, 7))
        first = await peer.until(DATA, 1)
        await peer.send(setting(4, 65_535))
        second = await peer.until(DATA, 1)
        (connection,) = doors.doors._server.connections
        (stream,) = connection._connection.streams.values()
        await peer.send(reset(1))
        async with asyncio.timeout(20):
            await asyncio.wait([stream.call.task])
    assert (first.payload, second.payload) == (grpc_message(b"\x08\x01"), grpc_message(b"\x08\x02"))


async def test_a_conversation_goes_both_ways() -> None:
    """Reflection answers each question before the next is asked, and ends when the questions do."""
    question = reflection_pb2.ServerReflectionRequest(list_services="")
    async with opened(TENANT) as doors:
        talk = doors.stub(reflection_pb2_grpc.ServerReflectionStub).ServerReflectionInfo()
        for _ in range(3):
            await talk.write(question)
            answer = await talk.read()
            assert len(answer.list_services_response.service) == 4
        await talk.done_writing()
        assert await talk.read() is grpc.aio.EOF
        assert await talk.code() is grpc.StatusCode.OK


async def test_a_damaged_message_ends_a_conversation() -> None:
    """INVALID_ARGUMENT in trailers, after what was answered before it."""
    path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    fields = [*FIELDS[:2], (":path", path), *FIELDS[3:]]
    good = grpc_message(reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString())
    answer = await answered(request(1, fields, good + grpc_message(b"\xff"), flags=0))
    assert answer.body
    assert answer.status == "3"
    assert answer.fields["grpc-message"].startswith(f"the request of {path[1:]} cannot be read")
