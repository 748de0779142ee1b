"""The HTTP door as a server: routes, bounds, damaged requests, faults, opening and closing."""

import asyncio
import gzip
import random
import socket
from pathlib import Path

import aiohttp
import pytest

from apportion.core.decision import Decision
from apportion.core.errors import InputError
from apportion.core.request import Application
from apportion.edge import http_door, http_server, verdicts
from tests.doors import Waiting
from tests.http_door import OpenedHttp, opened_http
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

TENANT = rules_text(rule_text("tenant-requests", "rate: 1/min, burst: 5"))


async def lives(http: OpenedHttp) -> bool:
    """Whether the server still answers, and nothing was charged."""
    told = await http.decide({"dimensions": {"tenant": "contoso"}, "peek": True})
    return bool(told.json["rules"][0]["remaining"] == 5)


async def test_alive_and_ready_are_two_things() -> None:
    """Ready is what the decider says."""
    decider = Waiting()
    async with opened_http(decider) as http:
        ready = await http.get("/readyz")
        decider.ready = False
        unready, alive = await http.get("/readyz"), await http.get("/healthz")
    assert [(told.status, told.body) for told in (ready, unready, alive)] == [
        (200, b"ready\n"),
        (503, b"not ready\n"),
        (200, b"alive\n"),
    ]


async def test_a_path_or_method_that_there_is_not() -> None:
    """404 names the paths there are, 405 the methods."""
    async with opened_http(TENANT) as http:
        path, method = await http.get("/v1/decided"), await http.get("/v1/decide")
    assert (path.status, method.status, method.headers["Allow"]) == (404, 405, "POST")
    assert path.json["error"].endswith("there are /check, /v1/decide, /healthz, /readyz, /metrics")
    assert method.json == {"error": "/v1/decide takes POST"}


async def test_a_body_above_the_bound_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    """1 MiB may come; more is 413, said beforehand or not."""
    async with opened_http(TENANT) as http:
        fits = await http.decide(b'{"dimensions": {"tenant": "%s"}}' % (b"x" * (2**20 - 100)))
        large = await http.decide(b"x" * (2**20 + 1))

        async def chunks() -> object:
            for _ in range(17):
                yield b"x" * 2**16

        chunked = await http.ask("POST", "/v1/decide", data=chunks())
        assert await lives(http)
    assert (fits.status, large.status, chunked.status) == (200, 413, 413)
    assert large.json == {"error": "the body has more than 1048576 bytes"}
    assert capfd.readouterr() == ("", "")


async def test_a_compressed_body_is_not_unpacked() -> None:
    """A thousandth of the bound could become all of it; it is no JSON as it comes."""
    async with opened_http(TENANT) as http:
        packed = gzip.compress(b'{"dimensions": {"tenant": "a"}}')
        told = await http.ask("POST", "/v1/decide", data=packed, headers={"Content-Encoding": "gzip"})
    assert told.status == 400
    assert told.json["error"] == "the body is not UTF-8 text: byte 1 is 0x8b"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /check HTTP/1.1\r\nHost: x\r\nX-Tenant: " + b"a" * 10_000,
        b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: x",
        b"GET /check HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-H%d: a\r\n" % n for n in range(200)),
        b"GARBAGE",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /check HTTP/1.1\r\nHost: x\r\nBad Header: a",
        b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: -5",
        b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
    ],
)
async def test_heads_that_are_too_large_or_damaged(head: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """400 as JSON, the connection ends, nothing in the log, and the process lives."""
    async with opened_http(TENANT) as http:
        answer = await http.raw(head + b"\r\n\r\n")
        assert answer.split(b" ")[1] == b"400", answer
        assert b"Server: apportion" in answer
        assert b'{"error": "this is no request that can be read: ' in answer
        assert await lives(http)
    assert capfd.readouterr() == ("", "")


async def test_random_bytes() -> None:
    """Whatever comes is answered or sent away, and nothing of it is charged."""
    rng = random.Random(7)
    valid = b'POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{"dimensions":1}'
    async with opened_http(TENANT) as http:
        for _ in range(150):
            raw = bytearray(valid)
            for _ in range(rng.randrange(1, 6)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            host, _, port = http.door.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(bytes(raw))
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 10.0)
            assert not answer or answer.startswith(b"HTTP/1."), raw
            assert b" 500 " not in answer.partition(b"\r\n")[0], (raw, answer)
            assert b"Traceback" not in answer
            writer.close()
        assert await lives(http)


async def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """408, and the connection ends."""
    monkeypatch.setattr(http_door, "READ_S", 0.05)
    monkeypatch.setattr(http_server, "LINGER_S", 0.05)
    async with opened_http(TENANT) as http:
        answer = await http.raw(b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("begun", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{"])
async def test_who_hangs_up_within_a_body_is_no_fault_of_ours(begun: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is logged, whoever does it how often."""
    async with opened_http(TENANT) as http:
        host, _, port = http.door.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/decide HTTP/1.1\r\nHost: x\r\n" + begun)
        await writer.drain()
        writer.write_eof()
        await asyncio.wait_for(reader.read(), 10.0)
        writer.close()
        assert await lives(http)
    assert "request_failed" not in capsys.readouterr().out


async def test_a_connection_too_many_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """503, closed; when another one ends there is room again."""
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 2)
    async with opened_http(TENANT) as http:
        host, _, port = http.door.address.rpartition(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
        for reader, writer in held:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        refused = await http.raw(b"")
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        for _ in range(100):
            if not (await http.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).startswith(
                b"HTTP/1.1 503"
            ):
                break
            await asyncio.sleep(0)
        assert await lives(http)
    assert refused.startswith(b"HTTP/1.1 503 ")


class Nonsense(Waiting):
    """A decider that breaks its promise of one verdict for each application."""

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision:  # type: ignore[override]
        return Decision(True, ())


@pytest.mark.parametrize("path", ["/check", "/v1/decide"])
async def test_a_fault_of_ours_is_500_and_logged(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The caller is told nothing of it; the log has the path and the traceback."""
    async with opened_http(Nonsense()) as http:
        told = await http.ask("POST", path, headers={"X-Tenant": "a"}, data=b'{"dimensions": {"tenant": "a"}}')
    assert (told.status, told.json) == (500, {"error": "internal error; the server's log has it"})
    log = capsys.readouterr().out
    assert "request_failed" in log
    assert path in log
    assert "one verdict for each application" in log


async def test_closing_answers_what_is_under_way_and_takes_nothing_new() -> None:
    """A request that waits for its decision gets it; an idle connection does not hold the closing up."""
    decider = Waiting()
    async with opened_http(decider) as http, aiohttp.ClientSession() as other:
        await (await other.get(f"http://{http.door.address}/healthz")).read()
        under_way = asyncio.create_task(http.get("/check", x_tenant="contoso"))
        applications, future = await decider.asked.get()
        closing = asyncio.create_task(http.door.close(30.0))
        await asyncio.sleep(0)
        future.set_result(Decision(True, (verdicts.passed(applications[0]),)))
        told = await under_way
        await asyncio.wait_for(closing, 5.0)
        with pytest.raises(aiohttp.ClientConnectorError):
            await other.get(f"http://{http.door.address}/healthz")
    assert told.status == 200


async def test_a_port_in_use_is_named_with_the_fix() -> None:
    """A second door on the port gets an error for people, and no other process can share it."""
    async with opened_http(TENANT) as http:
        with pytest.raises(InputError) as refused:
            async with opened_http(TENANT, address=http.door.address):
                pass
        host, _, port = http.door.address.rpartition(":")
        with socket.socket() as sharing:
            sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="in use"):
                sharing.bind((host, int(port)))
        assert await lives(http)
    assert str(refused.value).startswith(f"cannot listen on {http.door.address}: Address already in use; choose")


async def test_a_unix_socket_serves_is_not_taken_and_is_removed_at_the_end(tmp_path: Path) -> None:
    """A stale one is replaced."""
    path = tmp_path / "http.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    async with opened_http(TENANT, address=f"unix:{path}"):
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
            assert (await session.get("http://edge/readyz")).status == 200
        with pytest.raises(InputError, match="another process listens there"):
            async with opened_http(TENANT, address=f"unix:{path}"):
                pass
    assert not path.exists()


async def test_a_name_with_two_addresses_gets_one_port() -> None:
    """`localhost` may be 127.0.0.1 and ::1."""
    async with opened_http(TENANT, address="localhost:0") as http:
        assert http.door.address.startswith("localhost:")
        assert (await http.get("/healthz")).status == 200
