"""Envoy RLS answers a second of an agent on one core, beside a grpc.aio server with an empty handler in the same run.

    python bench/rls.py [--seconds 0.5] [--rounds 12] [--connections 4] [--in-flight 16]

The agent is `apportion edge --alone` as users start it, each answer with its status, limit and metadata. The empty
handler is given the bytes of such an answer and returns them unread: what any servicer on grpc.aio starts from. Each
server may use the first core and no other; the load comes from the others, by bytes that were prepared. Rounds are
interleaved, so that a busy machine is busy for all; the best round counts. `per CPU second` divides by the processor
time that the server used: what one core would answer that nobody else uses.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc.aio
from envoy.service.ratelimit.v3 import rls_pb2
from hpack import Encoder

RULE = """
  - name: rule-{number}
    match: {{tenant: "*", api: "*"}}
    key: {key}
    limit: {{rate: {rate}, burst: {burst}}}
    enforce: region
    when_unavailable: [deny]
"""
KEYS = ("[tenant, api]", "[tenant]")
TARGET = 6_000
"""Design 11."""

PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", PATH),
    (":authority", "edge"),
    ("te", "trailers"),
    ("grpc-timeout", "20000m"),
    ("content-type", "application/grpc"),
    ("x-envoy-internal", "true"),
    ("x-forwarded-for", "10.0.0.1"),
]
"""As Envoy sends them; its usual 20 ms would only make answers late here."""

FRAME = struct.Struct(">IBI")
"""An HTTP/2 frame's length and kind in one number, flags, stream."""

DATA, HEADERS_KIND, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
START = b"".join(
    (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        FRAME.pack(6 << 8 | SETTINGS, 0, 0) + struct.pack(">HI", 4, 2**31 - 1),  # windows without bounds
        FRAME.pack(4 << 8 | WINDOW_UPDATE, 0, 0) + struct.pack(">I", 2**31 - 2**16),
    )
)
SETTINGS_ACK = FRAME.pack(SETTINGS, 1, 0)
PING_ACK = FRAME.pack(8 << 8 | PING, 1, 0)
SERVER_CORE = min(os.sched_getaffinity(0))
STOP_S = 20.0
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


def request() -> bytes:
    """A RateLimitRequest of one descriptor with two entries."""
    message = rls_pb2.RateLimitRequest(domain="api")
    entries = message.descriptors.add().entries
    entries.add(key="tenant", value="contoso")
    entries.add(key="api", value="search")
    raw: bytes = message.SerializeToString()
    return raw


class Connection:
    """One connection of the load."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        encoder, message = Encoder(), request()
        body = b"\0" + struct.pack(">I", len(message)) + message
        self._data = FRAME.pack(len(body) << 8 | DATA, 1, 0)[:5], body
        self._block = encoder.encode(HEADERS)  # literals, for the peer's table
        self._next_block = encoder.encode(HEADERS)  # references to it
        self._stream = 1
        self._rest = b""
        self._sent: dict[int, float] = {}
        self._socket.sendall(START)
        self.latencies: list[float] = []
        self.first = b""
        """The message of the first answer."""

    def close(self) -> None:
        """Leave, so that the server need not wait for us when it stops."""
        self._socket.close()

    def fileno(self) -> int:
        """For `selectors`."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Whether answers are still to come."""
        return bool(self._sent)

    def send(self, count: int) -> None:
        """Ask so often."""
        pieces: list[bytes] = []
        head, body = self._data
        now = time.perf_counter()
        for _ in range(count):
            stream = struct.pack(">I", self._stream)
            pieces += (FRAME.pack(len(self._block) << 8 | HEADERS_KIND, 4, self._stream), self._block)
            pieces += (head, stream, body)
            self._block = self._next_block
            self._sent[self._stream] = now
            self._stream += 2
        self._socket.sendall(b"".join(pieces))

    def receive(self) -> int:
        """Read once; how many answers came."""
        data = self._rest + self._socket.recv(262_144)
        now = time.perf_counter()
        at, end, before = 0, len(data), len(self.latencies)
        while end - at >= 9:
            word, flags, stream = FRAME.unpack_from(data, at)
            size, kind = word >> 8, word & 255
            if end - at < 9 + size:
                break
            if kind == HEADERS_KIND and flags & 1:
                self.latencies.append(now - self._sent.pop(stream))
            elif kind == DATA and not self.first:
                self.first = data[at + 14 : at + 9 + size]
            elif kind not in (DATA, HEADERS_KIND):
                self._control(kind, flags, data[at + 9 : at + 9 + size])
            at += 9 + size
        assert data, "the server closed the connection"
        self._rest = data[at:]
        return len(self.latencies) - before

    def _control(self, kind: int, flags: int, payload: bytes) -> None:
        assert kind not in (RST_STREAM, GOAWAY), "the server gave up"
        if kind == SETTINGS and not flags & 1:
            self._socket.sendall(SETTINGS_ACK)
        elif kind == PING and not flags & 1:
            self._socket.sendall(PING_ACK + payload)


class Load:
    """Several connections, with so many requests in flight on each: a server that answers one has others to read."""

    def __init__(self, address: str, connections: int) -> None:
        self.connections = [Connection(address) for _ in range(connections)]
        self._selector = selectors.DefaultSelector()
        for each in self.connections:
            self._selector.register(each, selectors.EVENT_READ, each)

    def run(self, seconds: float, in_flight: int) -> tuple[float, list[float]]:
        """Answers a second, and the seconds that each answer took, sorted."""
        for each in self.connections:
            each.latencies = []
            each.send(in_flight)
        begin = now = time.perf_counter()
        while now < begin + seconds:
            self._step(again=True)
            now = time.perf_counter()
        rate = sum(len(each.latencies) for each in self.connections) / (now - begin)
        while any(each.waiting for each in self.connections):
            self._step(again=False)
        return rate, sorted(latency for each in self.connections for latency in each.latencies)

    def close(self) -> None:
        """Leave."""
        self._selector.close()
        for each in self.connections:
            each.close()

    def _step(self, again: bool) -> None:
        for key, _ in self._selector.select():
            answers = key.data.receive()
            if again:
                key.data.send(answers)


@dataclass(slots=True)
class Contender:
    """A server with the load on it, its best round, and what all rounds took."""

    name: str
    process: subprocess.Popen[str]
    load: Load
    rate: float = 0.0
    cpu_s: float = 0.0
    answers: int = 0
    latencies: tuple[float, float] = (0.0, 0.0)

    def measure(self, seconds: float, in_flight: int) -> None:
        """One round."""
        used = self._cpu_s()
        rate, latencies = self.load.run(seconds, in_flight)
        answers = len(latencies)
        self.cpu_s += self._cpu_s() - used
        self.answers += answers
        if rate > self.rate:
            self.rate = rate
            self.latencies = latencies[answers // 2] * 1e3, latencies[answers * 99 // 100] * 1e3

    @property
    def per_cpu(self) -> float:
        """Answers a second of processor time, in all rounds."""
        return self.answers / self.cpu_s

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def started(name: str, arguments: list[str], connections: int) -> Iterator[Contender]:
    """A server on the first core, which says HOST:PORT when it is ready."""
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    os.sched_setaffinity(process.pid, {SERVER_CORE})
    assert process.stdout is not None
    try:
        found = next((found for line in process.stdout if (found := ADDRESS.search(line))), None)
        assert found is not None, f"{name} did not start"
        with closing(Load(found[0], connections)) as load:
            yield Contender(name, process, load)
    finally:
        process.terminate()
        process.wait(STOP_S)


def agent(rules: int, refusing: bool, folder: Path) -> tuple[str, list[str]]:
    """An edge without a region, with that many rules."""
    rate, burst = ("1/hour", 1) if refusing else ("10000000/s", 2_500_000)
    texts = [RULE.format(number=number, key=KEYS[number], rate=rate, burst=burst) for number in range(rules)]
    path = folder / f"{rules}-{refusing}.yaml"
    path.write_text("version: 1\ndomain: api\nrules:" + "".join(texts))
    name = f"apportion, {rules} rule{'s' * (rules > 1)}{', refusing' * refusing}"
    options = ["--id", "bench", "--location", "here", "--alone", "--rules", str(path), "--rls", "127.0.0.1:0"]
    return name, ["-m", "apportion", "edge", *options]


async def serve_empty(answer: bytes) -> None:
    """The peer: a handler that does nothing, without protobuf."""

    async def limit(request: bytes, context: object) -> bytes:
        return answer

    service, method = PATH[1:].split("/")
    server = grpc.aio.server()
    handlers: Any = {method: grpc.unary_unary_rpc_method_handler(limit)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


def run(arguments: argparse.Namespace) -> bool:
    """Measure and print; whether design 11 is kept."""
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {SERVER_CORE} or {SERVER_CORE})
    connections = arguments.connections
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        found = [
            stack.enter_context(started(*agent(rules, refusing, Path(folder)), connections))
            for rules, refusing in ((1, False), (2, False), (1, True))
        ]
        for contender in found:
            contender.load.run(0.1, 1)
            answer = rls_pb2.RateLimitResponse.FromString(contender.load.connections[0].first)
            assert answer.statuses[0].current_limit.name, "not the job that was meant"
        empty = [__file__, "--serve-empty", found[0].load.connections[0].first.hex()]
        found.append(stack.enter_context(started(f"grpc.aio {version('grpcio')}, empty handler", empty, connections)))
        for _ in range(arguments.rounds):
            for contender in found:
                contender.measure(arguments.seconds, arguments.in_flight)
    peer = found[-1]
    print(f"{'':36}{'answers/s':>11}{'x peer':>8}{'per CPU second':>16}{'x peer':>8}{'p50 ms':>8}{'p99 ms':>8}")
    for each in found:
        ratios = each.rate / peer.rate, each.per_cpu / peer.per_cpu
        print(f"{each.name:36}{each.rate:11,.0f}{ratios[0]:8.1f}{each.per_cpu:16,.0f}{ratios[1]:8.1f}", end="")
        print(f"{each.latencies[0]:8.2f}{each.latencies[1]:8.2f}")
    print(f"target: {TARGET:,} a second of the core's time, which is `per CPU second`")
    return all(each.per_cpu >= TARGET for each in found[:-1])


def main() -> int:
    """Run; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one round")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=16, help="requests at a time on each connection")
    parser.add_argument("--serve-empty", metavar="HEX", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_empty is not None:
        asyncio.run(serve_empty(bytes.fromhex(arguments.serve_empty)))
        return 0
    print(f"CPython {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    return int(not run(arguments))


if __name__ == "__main__":
    sys.exit(main())
