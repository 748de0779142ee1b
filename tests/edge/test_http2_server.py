"""HTTP/2 at the gRPC doors, over a real connection: windows, forms of requests, giving up, leaving."""

import asyncio

import pytest
from envoy.service.ratelimit.v3 import rls_pb2
from hpack import Encoder

from apportion.core.decision import Decision, Verdict
from apportion.edge.doors import Doors
from tests.doors import Opened, Waiting, opened
from tests.http2_peer import (
    ACK,
    ASK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FIELDS,
    GOAWAY,
    HEADERS,
    HELLO,
    NO_ERROR,
    PADDED,
    PING,
    PRIORITIZED,
    PRIORITY,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Answer,
    block,
    connected,
    raw,
    request,
    reset,
    setting,
    u32,
)
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

TENANT = rules_text(rule_text("tenant-requests", "rate: 10/min, burst: 10"))
BLOCK = block(FIELDS)
FORMS = {
    "in two frames": raw(HEADERS, END_HEADERS, 1, BLOCK) + raw(DATA, END_STREAM, 1, ASK),
    "its end in a frame of its own": raw(HEADERS, END_HEADERS, 1, BLOCK)
    + raw(DATA, 0, 1, ASK)
    + raw(DATA, END_STREAM, 1),
    "its headers in pieces": raw(HEADERS, 0, 1, BLOCK[:3])
    + raw(CONTINUATION, 0, 1, BLOCK[3:9])
    + raw(CONTINUATION, END_HEADERS, 1, BLOCK[9:])
    + raw(DATA, END_STREAM, 1, ASK),
    "padded": raw(HEADERS, END_HEADERS | PADDED, 1, b"\x04" + BLOCK + bytes(4))
    + raw(DATA, END_STREAM | PADDED, 1, b"\x09" + ASK + bytes(9)),
    "with a priority": raw(HEADERS, END_HEADERS | PRIORITIZED | PADDED, 1, b"\x02" + bytes(5) + BLOCK + bytes(2))
    + raw(PRIORITY, 0, 1, bytes(5))
    + raw(DATA, END_STREAM, 1, ASK),
    "its message a byte a frame": raw(HEADERS, END_HEADERS, 1, BLOCK)
    + b"".join(raw(DATA, 0, 1, ASK[at : at + 1]) for at in range(len(ASK)))
    + raw(DATA, END_STREAM, 1),
    "with trailers": raw(HEADERS, END_HEADERS, 1, BLOCK)
    + raw(DATA, 0, 1, ASK)
    + raw(HEADERS, END_HEADERS | END_STREAM, 1, block([("checksum", "1")])),
    "among frames that nobody knows": raw(77, 255, 1, b"?")
    + raw(HEADERS, END_HEADERS, 1, BLOCK)
    + raw(88, 0, 1)
    + raw(DATA, END_STREAM, 1, ASK),
    "with settings that nobody knows": setting(99, 1) + request(1),
    "with a reserved bit": raw(HEADERS, END_HEADERS, 1 | 2**31, BLOCK) + raw(DATA, END_STREAM, 1 | 2**31, ASK),
}


@pytest.mark.parametrize("sent", FORMS.values(), ids=FORMS)
async def test_every_form_of_a_request_is_answered(sent: bytes) -> None:
    """Headers, one message, trailers; nine of ten units are left."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(sent)
        answer = await peer.answer(1)
    assert answer.fields == {":status": "200", "content-type": "application/grpc", "grpc-status": "0"}
    assert remaining(answer) == 9


def remaining(answer: Answer) -> int:
    """What an answer says is left."""
    assert answer.body[:1] == b"\0"
    assert int.from_bytes(answer.body[1:5]) == len(answer.body) - 5
    told: int = rls_pb2.RateLimitResponse.FromString(answer.body[5:]).statuses[0].limit_remaining
    return told


async def test_headers_may_refer_to_those_before() -> None:
    """Literals that are kept, then references to them, then others, in one connection's table."""
    encoder = Encoder()
    sent = []
    for number, more in enumerate(([], [], [("x-request-id", "a")], [], [("x-request-id", "b")], [])):
        stream = 2 * number + 1
        fields = raw(HEADERS, END_HEADERS, stream, encoder.encode([*FIELDS, *more]))
        sent += [fields, raw(DATA, END_STREAM, stream, ASK)]
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(*sent)
        answers = await peer.answers(1, 3, 5, 7, 9, 11)
    assert [remaining(answers[stream]) for stream in (1, 3, 5, 7, 9, 11)] == [9, 8, 7, 6, 5, 4]


async def test_pings_and_settings_are_acknowledged() -> None:
    """A ping with what it said."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.until(SETTINGS, flags=ACK)
        await peer.send(raw(PING, 0, 0, b"are you?"))
        assert (await peer.until(PING, flags=ACK)).payload == b"are you?"


async def test_an_answer_waits_for_its_streams_window() -> None:
    """Nothing before there is room, then as much as there is room for, then the rest; a setting moves open windows."""
    async with opened(TENANT) as doors, connected(doors.doors.address, HELLO + setting(4, 0)) as peer:
        await peer.send(request(1))
        await peer.until(HEADERS, 1)
        await peer.send(raw(WINDOW_UPDATE, 0, 1, u32(7)))
        first = await peer.until(DATA, 1)
        await peer.send(setting(4, 3))
        second = await peer.until(DATA, 1)
        await peer.send(setting(4, 0), raw(PING, 0, 0, bytes(8)))  # the window is -3 now
        await peer.until(PING, flags=ACK)
        await peer.send(raw(WINDOW_UPDATE, 0, 1, u32(4)))
        third = await peer.until(DATA, 1)
        await peer.send(setting(4, 65_535))
        rest = await peer.until(DATA, 1)
        assert (await peer.until(HEADERS, 1)).flags & END_STREAM
        body = b"".join(frame.payload for frame in (first, second, third, rest))
    assert [len(frame.payload) for frame in (first, second, third)] == [7, 3, 1]
    assert remaining(Answer(body=body)) == 9


async def test_answers_wait_for_the_connections_window() -> None:
    """65,535 bytes and not one more; all of them once there is room."""
    streams = range(1, 1_001, 2)
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(*(request(stream) for stream in streams), raw(PING, 0, 0, bytes(8)))
        came = 0
        while came < 65_535:
            frame = await peer.frame()
            assert frame is not None
            came += len(frame.payload) * (frame.kind == DATA)
        assert came == 65_535
        await peer.send(raw(WINDOW_UPDATE, 0, 0, u32(2**20)))
        assert (await peer.answer(streams[-1])).status == "0"


async def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    """Its requests wait in its own socket, and are all answered when it reads."""
    unbounded = raw(SETTINGS, 0, 0) + raw(WINDOW_UPDATE, 0, 0, u32(2**31 - 2**16))
    async with opened(TENANT) as doors, connected(doors.doors.address, HELLO + unbounded) as peer:
        (connection,) = doors.doors._server.connections
        stream = 1
        while connection._transport.is_reading():
            peer.writer.write(b"".join(request(n) for n in range(stream, stream + 200, 2)))
            stream += 200
            await asyncio.sleep(0)
        answers = await peer.answers(*range(1, stream, 2))
    assert {answer.status for answer in answers.values()} == {"0"}


async def test_a_small_table_of_the_peers_is_heeded() -> None:
    """The first block after such a setting says that our table is empty, which strict peers wait for."""
    async with opened(TENANT) as doors, connected(doors.doors.address, HELLO + setting(1, 0)) as peer:
        await peer.send(request(1), request(3))
        first = await peer.until(HEADERS, 1)
        second = await peer.until(HEADERS, 3)
    assert (first.payload[:1], second.payload[:1]) == (b"\x20", b"\x00")


@pytest.mark.parametrize("how", ["reset", "closed"])
async def test_a_call_that_was_given_up_is_not_waited_for(how: str) -> None:
    """By RST_STREAM, or with its connection: the decision is cancelled."""
    decider = Waiting()
    async with opened(decider) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1))
        _, future = await decider.asked.get()
        if how == "reset":
            await peer.send(reset(1))
        else:
            peer.writer.close()
        async with asyncio.timeout(20):
            await asyncio.wait([future])
        assert future.cancelled()


async def test_several_calls_wait_at_once() -> None:
    """Two calls that wait, on one connection."""
    decider = Waiting()
    async with opened(decider) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1), request(3))
        for _ in range(2):
            (application,), future = await decider.asked.get()
            future.set_result(Decision(True, (Verdict(application.rule, application.key, 1, allowed=True),)))
        answers = await peer.answers(1, 3)
    assert {answer.status for answer in answers.values()} == {"0"}


async def closing(doors: Opened, grace_s: float = 30.0) -> "asyncio.Task[None]":
    """The doors, on their way to be closed."""
    task = asyncio.create_task(Doors.close(doors.doors, grace_s))
    await asyncio.sleep(0)
    return task


async def test_leaving_lets_what_is_under_way_end_and_loses_nothing() -> None:
    """GOAWAY without a last stream, then, when the peer has heard it, one with; requests between the two are served."""
    decider = Waiting()
    async with opened(decider) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1))
        (application,), future = await decider.asked.get()
        closed = await closing(doors)
        first = await peer.until(GOAWAY)
        ping = await peer.until(PING)
        await peer.send(request(3), raw(PING, ACK, 0, ping.payload))
        _, second_future = await decider.asked.get()
        second = await peer.until(GOAWAY)
        await peer.send(request(5))
        assert (await peer.until(RST_STREAM, 5)).number == REFUSED_STREAM
        for each in (future, second_future):
            each.set_result(Decision(True, (Verdict(application.rule, application.key, 1, allowed=True),)))
        answers = await peer.answers(1, 3)
        assert await peer.frame() is None
        await closed
    assert (first.payload[:8], second.payload[:8]) == (u32(2**31 - 1) + u32(NO_ERROR), u32(3) + u32(NO_ERROR))
    assert {answer.status for answer in answers.values()} == {"0"}


async def test_a_peer_that_does_not_hear_holds_up_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leaves the ping unanswered is told all the same which request was the last, and the connection ends."""
    monkeypatch.setattr("apportion.edge.grpc_server.HEARING_S", 0.02)
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1))
        await peer.answer(1)
        closed = await closing(doors)
        first, second = await peer.until(GOAWAY), await peer.until(GOAWAY)
        assert await peer.frame() is None
        await closed
    assert (first.payload[:4], second.payload[:4]) == (u32(2**31 - 1), u32(1))


async def test_what_is_under_way_at_the_end_of_the_grace_is_told_so() -> None:
    """UNAVAILABLE, and the decision is cancelled."""
    decider = Waiting()
    async with opened(decider) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1))
        _, future = await decider.asked.get()
        closed = await closing(doors, 0.05)
        assert (await peer.answer(1)).fields["grpc-message"] == "the server stops"
        peer.writer.close()
        await closed
        assert future.cancelled()


async def test_a_connection_too_many_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """GOAWAY, and the end; when another one went, there is room."""
    monkeypatch.setattr("apportion.edge.grpc_server.CONNECTIONS_MAX", 1)
    async with opened(TENANT) as doors:
        async with connected(doors.doors.address) as peer:
            await peer.send(request(1))
            assert (await peer.answer(1)).status == "0"
            async with connected(doors.doors.address, b"") as other:
                assert (await other.goaway()).number == ENHANCE_YOUR_CALM
            (connection,) = doors.doors._server.connections
        await connection.closed
        async with connected(doors.doors.address) as peer:
            await peer.send(request(1))
            assert (await peer.answer(1)).status == "0"


async def test_who_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that does not greet is closed."""
    monkeypatch.setattr("apportion.edge.grpc_server.GREETING_S", 0.05)
    async with opened(TENANT) as doors, connected(doors.doors.address, HELLO[:20]) as peer:
        while (frame := await peer.frame()) is not None:
            assert frame.kind in (SETTINGS, WINDOW_UPDATE)
