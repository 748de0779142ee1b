"""The pure core of HTTP/2: bytes cut anywhere, bytes of any kind, and what a connection holds at most."""

from collections import defaultdict
from collections.abc import Callable

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, TrailersReceived
from hpack import Encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.edge.http2 import connection as core
from apportion.edge.http2.connection import Connection
from apportion.edge.http2.frames import Code, ConnectionFault, StreamFault
from apportion.edge.http2.headers import HeaderReader, header_block
from apportion.edge.http2.stream import Stream
from tests.http2_peer import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FIELDS,
    GOAWAY,
    HEADERS,
    HELLO,
    PADDED,
    PING,
    RST_STREAM,
    SETTINGS,
    block,
    raw,
    request,
    reset,
    setting,
    u32,
)

HEAD = header_block([(":status", "200")])
LAST = header_block([("grpc-status", "0")])


class Echo:
    """A server of one connection that answers every request with its own path and body."""

    def __init__(self) -> None:
        self.connection = Connection()
        self.out = self.connection.take()

    def take(self, data: bytes, now: float = 0.0) -> None:
        """Answer what came."""
        for stream in self.connection.receive(data, now):
            if stream.ended and not stream.gone and not stream.finished:
                body = stream.head.path.encode() + bytes(stream.body)
                self.connection.respond(stream, HEAD, body, LAST)
        self.out += self.connection.take()


def by_stream(out: bytes) -> dict[int, bytes]:
    """The frames that were written, of each stream and of none."""
    found: dict[int, bytes] = defaultdict(bytes)
    while out:
        size = 9 + int.from_bytes(out[:3])
        found[int.from_bytes(out[5:9])] += out[:size]
        out = out[size:]
    return found


Step = Callable[[int, Encoder], bytes]


def _asks(pad: int, pieces: int, body: bytes, extra: str, keep: bool) -> Step:
    """A request in one of its many forms."""

    def write(stream: int, encoder: Encoder) -> bytes:
        fields = [*FIELDS, *([("x-extra", extra)] if extra else [])]
        whole = encoder.encode(fields) if keep else block(fields)
        step = -(-len(whole) // pieces)
        parts = [whole[at : at + step] for at in range(0, len(whole), step)]
        sent = raw(HEADERS, END_HEADERS * (len(parts) == 1), stream, parts[0])
        for part in parts[1:]:
            sent += raw(CONTINUATION, END_HEADERS * (part is parts[-1]), stream, part)
        if pad:
            return sent + raw(DATA, PADDED | END_STREAM, stream, bytes([pad]) + body + bytes(pad))
        return sent + raw(DATA, 0, stream, body) + raw(DATA, END_STREAM, stream)

    return write


STEPS = st.one_of(
    st.builds(
        _asks,
        st.integers(0, 20),
        st.integers(1, 9),
        st.binary(max_size=60),
        st.sampled_from(["", "a", "b", "x" * 90]),
        st.booleans(),
    ),
    st.binary(min_size=8, max_size=8).map(lambda payload: lambda stream, encoder: raw(PING, 0, 0, payload)),
    st.sampled_from([raw(SETTINGS, ACK, 0), setting(4, 70_000), raw(8, 0, 0, u32(9)), raw(200, 1, 3, b"?")]).map(
        lambda frame: lambda stream, encoder: frame
    ),
)


def script(steps: list[Step]) -> bytes:
    """What a client sends that takes these steps."""
    encoder = Encoder()
    return HELLO + b"".join(step(2 * number + 1, encoder) for number, step in enumerate(steps))


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=12), st.lists(st.integers(1, 60), min_size=1, max_size=30))
def test_bytes_cut_anywhere_have_the_same_answers(steps: list[Step], sizes: list[int]) -> None:
    """Stream by stream, byte for byte, as if all had come at once."""
    sent = script(steps)
    whole, cut = Echo(), Echo()
    whole.take(sent)
    at = number = 0
    while at < len(sent):
        size = sizes[number % len(sizes)]
        cut.take(sent[at : at + size])
        at, number = at + size, number + 1
    assert whole.connection.fault is None
    assert by_stream(cut.out) == by_stream(whole.out)


def test_a_script_cut_at_each_single_byte() -> None:
    """Of headers in pieces, padding, references to the table and settings."""
    kept = [_asks(3, 4, b"one", "a", True), _asks(0, 1, b"two", "a", True), _asks(0, 2, b"", "", False)]
    sent = script([kept[0], kept[1], lambda stream, encoder: setting(4, 70_000), kept[2], kept[1]])
    whole = Echo()
    whole.take(sent)
    assert whole.connection.fault is None
    for at in range(len(sent)):
        cut = Echo()
        cut.take(sent[:at])
        cut.take(sent[at:])
        assert by_stream(cut.out) == by_stream(whole.out)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(STEPS, max_size=6),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), max_size=6),
    st.binary(max_size=80),
)
def test_any_bytes_are_answered_or_end_the_connection(
    steps: list[Step], changes: list[tuple[int, int]], more: bytes
) -> None:
    """Damaged scripts and what follows them: never an exception, and a fault is said."""
    sent = bytearray(script(steps) + more)
    for at, value in changes:
        sent[len(HELLO) + at % (len(sent) - len(HELLO) or 1) - 1] = value
    echo = Echo()
    echo.take(bytes(sent))
    if echo.connection.fault is not None:
        assert by_stream(echo.out)[0][-len(echo.connection.fault.reason) - 17 :][3] == GOAWAY


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_header_block_is_read_or_refused(raw_block: bytes) -> None:
    """By one of the two faults."""
    reader = HeaderReader()
    try:
        reader.read(raw_block)
    except (ConnectionFault, StreamFault):
        pass


def test_a_library_understands_every_answer() -> None:
    """h2 as client, which checks states and windows of its own: 300 requests, some with bodies above every window."""
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    echo = Echo()
    bodies: dict[int, bytes] = defaultdict(bytes)
    ended = set()

    def exchange() -> None:
        while sent := client.data_to_send():
            echo.take(sent)
            for event in client.receive_data(echo.out):
                if isinstance(event, DataReceived):
                    bodies[event.stream_id] += event.data
                    client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, ResponseReceived | TrailersReceived):
                    assert dict(event.headers) in ({b":status": b"200"}, {b"grpc-status": b"0"})
                elif isinstance(event, StreamEnded):
                    ended.add(event.stream_id)
            echo.out = b""

    sizes = {}
    for number in range(300):
        stream = client.get_next_available_stream_id()
        size = sizes[stream] = 200_000 if number % 50 == 7 else number
        client.send_headers(stream, FIELDS)
        exchange()
        body = b"x" * size
        while body:
            room = min(client.local_flow_control_window(stream), 16_384)
            client.send_data(stream, body[:room])
            body = body[room:]
            exchange()
        client.end_stream(stream)
        exchange()
    path = dict(FIELDS)[":path"].encode()
    assert ended == set(sizes)
    assert all(bodies[stream] == path + b"x" * size for stream, size in sizes.items())
    assert echo.connection.fault is None
    assert echo.connection.streams == {}


def begun(*streams: int) -> Connection:
    """A connection on which these requests were begun, their bodies not yet there."""
    connection = Connection()
    connection.receive(HELLO + b"".join(raw(HEADERS, END_HEADERS, n, block(FIELDS)) for n in streams), 0.0)
    connection.take()
    return connection


def resets(connection: Connection) -> list[tuple[int, int]]:
    """Streams that were reset, and why."""
    frames = by_stream(connection.take())
    return [(n, int.from_bytes(sent[-4:])) for n, sent in frames.items() if sent[-10] == RST_STREAM]


def test_unfinished_requests_hold_a_bounded_number_of_bytes() -> None:
    """16 MiB of all together: the request that passes it is reset, and the others can end."""
    connection = begun(1, 3, 5)
    piece = 16_384
    for number in range(core.HELD_MAX // piece):
        connection.receive(raw(DATA, 0, (1, 3, 5)[number % 3], bytes(piece)), 0.0)
        assert resets(connection) == []
    connection.receive(raw(DATA, 0, 1, b"x"), 0.0)
    assert resets(connection) == [(1, Code.ENHANCE_YOUR_CALM)]
    (first, _) = connection.streams.values()
    connection.receive(raw(DATA, END_STREAM, first.id), 0.0)
    assert first.ended
    assert connection._held == sum(len(stream.body) for stream in connection.streams.values() if not stream.ended)


def test_a_stream_has_its_window_and_no_more() -> None:
    """65,535 bytes may come before more was allowed; the next is FLOW_CONTROL_ERROR."""
    connection = begun(1)
    stream = connection.streams[1]
    stream.window_in = 10
    connection.receive(raw(DATA, 0, 1, bytes(11)), 0.0)
    assert resets(connection) == [(1, Code.FLOW_CONTROL_ERROR)]


def test_the_connection_has_its_window_and_no_more() -> None:
    """More than 1 MiB at once, without a chance to have it allowed."""
    connection = begun(1)
    connection.receive(65 * raw(DATA, 0, 1, bytes(16_384)), 0.0)
    assert connection.fault is not None
    assert connection.fault.code is Code.FLOW_CONTROL_ERROR


def test_answers_that_nobody_takes_stop_new_requests() -> None:
    """16 MiB held back by the peer's windows: further requests are REFUSED_STREAM until some of it went."""
    connection = begun(*range(1, 11, 2))
    for stream in list(connection.streams.values()):
        connection.respond(stream, HEAD, bytes(4 * 2**20), LAST)
    connection.receive(request(11), 0.0)
    assert resets(connection)[-1] == (11, Code.REFUSED_STREAM)
    connection.receive(reset(1) + reset(3) + request(13), 0.0)
    assert 13 in connection.streams


@pytest.mark.parametrize("each_s, faulty", [(0.02, False), (0.009, True)])
def test_pings_may_come_for_ever_but_not_too_fast(each_s: float, faulty: bool) -> None:
    """50 a second for ten minutes are well, 111 a second are not."""
    connection = Connection()
    connection.receive(HELLO, 0.0)
    for number in range(30_000):
        connection.receive(raw(PING, 0, 0, bytes(8)), number * each_s)
    assert (connection.fault is not None) is faulty


def test_what_was_reset_is_not_sent() -> None:
    """An answer that waits for a window goes with its stream."""
    connection = begun(1)
    stream = connection.streams[1]
    connection.respond(stream, HEAD, bytes(100_000), LAST)
    connection.take()
    connection.receive(reset(1) + raw(8, 0, 0, u32(2**20)), 0.0)
    assert connection.take() == b""
    assert connection._sender.unsent == 0


def test_an_answer_to_what_is_gone_goes_nowhere() -> None:
    """Whoever answers need not ask."""
    connection = begun(1)
    (stream,) = connection.streams.values()
    connection.receive(reset(1), 0.0)
    connection.respond(stream, HEAD, b"x", LAST)
    connection.begin(stream, HEAD)
    connection.send(stream, b"x")
    connection.finish(stream, LAST)
    assert connection.take() == b""


def test_the_same_references_mean_something_else_after_the_table_changed() -> None:
    """A block that was read before is read again where a header was added between."""
    reader = HeaderReader()
    request_line, newest = b"\x83\x86\x84", b"\xbe"
    assert reader.read(request_line + b"\x40\x01a\x011").fields == {"a": "1"}
    kept = reader.read(request_line + newest)
    assert kept.fields == {"a": "1"}
    assert reader.read(request_line).fields == {}
    assert reader.read(request_line + newest) is kept
    assert reader.read(request_line + b"\x40\x01b\x012").fields == {"b": "2"}
    assert reader.read(request_line + newest).fields == {"b": "2"}
    reader.decode(b"\x40\x01c\x013")
    assert reader.read(request_line + newest).fields == {"c": "3"}


def test_a_table_may_be_changed_twice_in_a_block() -> None:
    """Emptied and made as large as before, as a peer does whose settings changed twice."""
    assert HeaderReader().read(b"\x20\x3f\xe1\x1f" + block(FIELDS)).method == "POST"


def test_a_stream_is_small() -> None:
    """No dictionary for each."""
    assert not hasattr(Stream(1, HeaderReader().read(block(FIELDS)), 1), "__dict__")
