"""Commands started wrongly, as real processes: one clear text that names the thing and the fix, never a traceback."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from envoy.service.ratelimit.v3 import rls_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from apportion.commands.demonstration.processes import Processes, kept_ports, processes
from apportion.commands.demonstration.running import edge_arguments, serving
from tests.doors import OK, refusal, rls_request
from tests.system.whole import RULES, logged

END_S = 60.0
"""What a command gets to end; on an idle machine it takes a second."""

NOT_TEXT = os.fsdecode(b"\xff\xfe")
"""An argument of bytes that are not UTF-8, as Python hands it to a program."""

REGION = ("region", "--listen", "127.0.0.1:0")
EDGE = ("edge", "--location", "here", "--region", "127.0.0.1:1", "--rls", "127.0.0.1:0")

BROKEN = """
version: 1
domain: api
rules:
  - {name: x, match: {tenant: "*"}, key: [tenat], limit: {rate: 10/s}, enforce: regio, when_unavailable: [deny]}
"""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `apportion ARGUMENTS` in a folder until it ends by itself."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "apportion", *arguments],
        cwd=folder,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )


def assert_told(ended: subprocess.CompletedProcess[str], *texts: str, code: int = 2) -> None:
    """It ended with this code and a text with these parts on standard error, and nothing else."""
    assert "Traceback" not in ended.stderr + ended.stdout
    assert [text for text in texts if text not in ended.stderr] == [], ended.stderr
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with rules.yaml, which is right, and others, which are not."""
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "broken.yaml").write_text(BROKEN)
    (tmp_path / "bytes.yaml").write_bytes(b"version: 1\ndomain: \xff\n")
    (tmp_path / "misspelt.yaml").write_text("listn: 127.0.0.1:0\n")
    (tmp_path / "list.yaml").write_text("- rules\n")
    (tmp_path / "nested.yaml").write_text("rules: [rules.yaml]\n")
    (tmp_path / "store.yaml").write_text("rules: rules.yaml\nstore: nowhere.db\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd" / "a.yaml").mkdir(parents=True)
    return tmp_path


@contextmanager
def taken_port() -> Iterator[str]:
    """An address at which somebody else listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    "url, texts",
    [
        ("sqlite:region.db", ("'sqlite:region.db'", "sqlite:///PATH")),
        ("redis://user:secret@host", ("redis:", "not built yet", "memory: or sqlite:///PATH")),
        ("sqlit:///region.db", ("'sqlit'", "did you mean sqlite:?")),
        ("region.db", ("'region.db'", "not a URL", "memory: or sqlite:///PATH")),
        ("memory:///region.db", ("'memory:///region.db'", "write memory: alone")),
        ("sqlite:///missing/region.db", ("missing/region.db", "does not exist", "create ")),
        ("sqlite:///rules.yaml", ("rules.yaml", "not an SQLite database", "name another file")),
        ("sqlite:///empty", ("empty", "is a directory", "name a file in it")),
    ],
)
def test_a_wrong_store_url(folder: Path, url: str, texts: tuple[str, ...]) -> None:
    """It says what is wrong with the URL and how one is written; a password in it is not shown."""
    ended = run(folder, *REGION, "--rules", "rules.yaml", "--store", url)
    assert_told(ended, *texts)
    assert "secret" not in ended.stderr


@pytest.mark.parametrize(
    "rules, texts",
    [
        ("nowhere.yaml", ("nowhere.yaml", "no such file or folder", "name a rules file")),
        ("empty", ("empty", "no *.yaml", "name a rules file")),
        ("bytes.yaml", ("bytes.yaml:2", "0xff", "save the file as UTF-8")),
        ("odd", ("a.yaml", "is no file", "plain text")),
        ("broken.yaml", ("broken.yaml:5", "`tenat`", "a dimension of match", "did you mean `region`?")),
    ],
)
def test_rules_that_cannot_be_used(folder: Path, rules: str, texts: tuple[str, ...]) -> None:
    """The file, the line, what was found, and what would do."""
    assert_told(run(folder, *REGION, "--rules", rules), *texts)


@pytest.mark.parametrize(
    "arguments, texts",
    [
        ((*EDGE, "--id", NOT_TEXT), ("--id", "printable characters", "got ")),
        ((*EDGE, "--id", ""), ("--id", "1 to 64")),
        (("edge", "--id", "a", "--location", NOT_TEXT, "--region", "127.0.0.1:1"), ("--location", "printable")),
        (("edge", "--id", "a", "--location", "b"), ("--region ADDR", "--alone")),
        ((*EDGE, "--id", "a", "--alone"), ("--alone", "--rules PATH", "no --region")),
        (
            ("edge", "--id", "a", "--location", "b", "--alone", "--rules", "rules.yaml", "--state", "kept"),
            ("--state goes with --region",),
        ),
        (("edge", "--id", "a", "--location", "b", "--region", NOT_TEXT), ("address", "not UTF-8")),
        (("allocator", "--region", f"h{NOT_TEXT}:1"), ("address", "not UTF-8")),
        (("allocator", "--region", "127.0.0.1"), ("'127.0.0.1'", "HOST:PORT")),
        (("region", "--rules", "rules.yaml", "--listen", f"unix:{NOT_TEXT}"), ("address", "not UTF-8")),
        (("region", "--rules", "rules.yaml", "--listen", "127.0.0.1:99999"), ("'127.0.0.1:99999'", "HOST:PORT")),
        (("region", "--rules", "rules.yaml", "--listen", "unix:nowhere/s"), ("unix:nowhere/s", "no folder nowhere")),
        ((*REGION, "--rules", NOT_TEXT), ("no such file or folder",)),
        (REGION, ("--rules", "APPORTION_RULES")),
    ],
)
def test_wrong_arguments(folder: Path, arguments: tuple[str, ...], texts: tuple[str, ...]) -> None:
    """The flag and what it takes are named, whatever bytes were given."""
    assert_told(run(folder, *arguments), *texts)


def test_a_rules_file_whose_name_is_no_text(folder: Path) -> None:
    """It would be sent to every edge beside the text, and no edge could be told of it."""
    (folder / "rules.yaml").rename(folder / f"{NOT_TEXT}.yaml")
    assert_told(run(folder, *REGION, "--rules", f"{NOT_TEXT}.yaml"), ".yaml", "not UTF-8 text", "rename it")


@pytest.mark.parametrize(
    "file, texts",
    [
        ("misspelt.yaml", ("misspelt.yaml", "unknown setting 'listn'", "did you mean 'listen'?")),
        ("list.yaml", ("list.yaml", "a mapping of settings is wanted")),
        ("nested.yaml", ("nested.yaml", "rules: one value is wanted")),
        ("bytes.yaml", ("bytes.yaml", "not UTF-8")),
        ("nowhere.yaml", ("nowhere.yaml", "No such file", "name a settings file")),
        ("store.yaml", ("'nowhere.db'", "write memory: or sqlite:///PATH")),
    ],
)
def test_a_wrong_settings_file(folder: Path, file: str, texts: tuple[str, ...]) -> None:
    """The file and the setting in it are named, with the nearest that exists; a value is checked like a flag's."""
    assert_told(run(folder, *REGION, "--config", file), *texts)


def test_a_wrong_variable(folder: Path) -> None:
    """A variable's value is checked like a flag's, and a flag beats it."""
    wrong = {"APPORTION_STORE": "nope:"}
    assert_told(run(folder, *REGION, "--rules", "rules.yaml", **wrong), "'nope'", "write memory: or sqlite:///PATH")
    both = run(folder, *REGION, "--rules", "rules.yaml", "--store", "sqlit:///x", **wrong)
    assert_told(both, "'sqlit'", "did you mean sqlite:?")


@pytest.mark.parametrize(
    "arguments",
    [("region", "--rules", "rules.yaml", "--listen"), ("edge", "--id", "a", *EDGE[1:5], "--rls")],
    ids=["region", "edge"],
)
def test_a_port_in_use(folder: Path, arguments: tuple[str, ...]) -> None:
    """The address is named, and that somebody has it."""
    with taken_port() as address:
        ended = run(folder, *arguments, address)
    assert_told(ended, f"cannot listen on {address}", "in use", "choose another address")


@pytest.mark.asyncio
async def test_a_second_region_on_the_same_file(folder: Path) -> None:
    """It is refused, naming the file and the process that has it; the first goes on, and ends well when told to."""
    store = ("--store", f"sqlite:///{folder / 'region.db'}")
    with kept_ports(1) as ports:
        async with processes() as started:
            address = f"127.0.0.1:{ports[0]}"
            rules = ("--rules", str(folder / "rules.yaml"))
            first = await started.start("region", "apportion", "region", *rules, "--listen", address, *store)
            await serving(first, address)
            second = await asyncio.to_thread(run, folder, *REGION, *rules, *store)
            assert_told(second, "region.db", f"process {first.pid} is still running", "a file of its own")
            await serving(first, address)
            first.process.send_signal(signal.SIGTERM)
            assert await first.process.wait() == 0


@pytest.mark.asyncio
async def test_an_edge_whose_region_is_not_there_yet(folder: Path) -> None:
    """It lives, says NOT_SERVING and answers that there are no rules; it serves once the region has come."""
    with kept_ports(2) as ports:
        async with processes() as started:
            region, door = (f"127.0.0.1:{port}" for port in ports)
            edge = await started.start("edge", *edge_arguments("frankfurt", region, door))
            told = await logged(edge, "region_unreachable")
            assert told["region"] == region
            async with grpc.aio.insecure_channel(door) as channel:
                stub: Any = rls_pb2_grpc.RateLimitServiceStub(channel)
                health: Any = health_pb2_grpc.HealthStub(channel)
                answer = await health.Check(health_pb2.HealthCheckRequest())
                assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
                request = rls_request({"api": "search"}, domain="demo")
                status, text = await refusal(stub.ShouldRateLimit(request))
                assert status is grpc.StatusCode.UNAVAILABLE
                assert "has not reached its region" in text
                await _start_region(started, folder, region)
                await serving(edge, door)
                assert (await stub.ShouldRateLimit(request)).overall_code == OK
            edge.process.send_signal(signal.SIGTERM)
            assert await edge.process.wait() == 0
            assert "Traceback" not in edge.log.read_text()


async def _start_region(started: Processes, folder: Path, address: str) -> None:
    rules = str(folder / "rules.yaml")
    child = await started.start("region", "apportion", "region", "--rules", rules, "--listen", address)
    await serving(child, address)


def test_an_edge_that_cannot_be_reached(folder: Path) -> None:
    """`decide` names the address and what to look at; the exit code is that of a service that is not there."""
    with kept_ports(1) as ports:
        ended = run(folder, "decide", "--edge", f"127.0.0.1:{ports[0]}", "api=search")
    assert_told(ended, f"127.0.0.1:{ports[0]}", "is it running", code=3)
