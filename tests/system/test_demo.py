"""`apportion demo` as its users run it: real processes, from the first line to the last process gone."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apportion.commands.demonstration.processes import kept_ports, processes
from apportion.commands.demonstration.running import serving
from apportion.core.errors import UnavailableError

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(180)]

EVENT_S = 60.0
"""What an awaited event gets to happen, on a machine that is busy with other tests."""

LOW_RULES = """
version: 1
domain: low
rules:
  - {name: low, match: {api: "*"}, key: [api], limit: {rate: 10/s}, enforce: region, when_unavailable: [deny]}
"""
"""Little traffic, for tests that are about the processes."""


@asynccontextmanager
async def demo(folder: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running demo whose temporary folders are made in `folder`; ended by its id if a test does not come to it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "apportion", "demo", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def processes_of(folder: Path) -> list[int]:
    """Processes, none of them this one, whose command line names something in `folder`, or whose environment does."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in words:
                found.append(int(entry.name))
    return found


def folders_in(folder: Path) -> list[Path]:
    """Temporary folders of demos."""
    return list(folder.glob("apportion-demo-*"))


async def until_nothing_is_left(folder: Path) -> None:
    """Wait until no process of the demo lives and its temporary folder is gone."""
    async with asyncio.timeout(EVENT_S):
        while True:
            if not processes_of(folder) and not folders_in(folder):
                return
            await asyncio.sleep(0.05)


async def lines_until(process: asyncio.subprocess.Process, wanted: str) -> None:
    """Read standard output until a line contains `wanted`."""
    assert process.stdout is not None
    async with asyncio.timeout(EVENT_S):
        while (line := await process.stdout.readline()) and wanted not in line.decode():
            pass
    assert line, f"the demo ended before it said {wanted!r}"


async def test_each_of_the_four_modes_holds_its_bound(tmp_path: Path) -> None:
    """No label over where the bound is 0, none further over than the bound where there is one, no label of the lease
    above its quota, the region's sums agree, and nothing else on stdout.
    """
    async with demo(tmp_path, "--seconds", "14", "--json") as process:
        output, said = await process.communicate()
    result = json.loads(output)
    assert process.returncode == 0, said.decode()
    assert result["problems"] == []
    by_mode = {row["enforce"]: row for row in result["rules"]}
    bounds = {mode: row["bound"] for mode, row in by_mode.items()}
    # Three edges are reached, but edges_max: 8 may be, and each admits 50 and a burst of 25 under one label.
    assert bounds == {"edge+region": 0, "edge": 500, "lease": 0, "region": 0}
    for mode, row in by_mode.items():
        assert (row["limit_per_second"], row["burst"]) == (100.0, 25)
        assert row["overshoot_observed"] <= bounds[mode]
        assert row["overshoot_region"] <= bounds[mode]
        assert row["sums_agree"]
        assert row["offered"] > 0
        assert row["admitted"] > 0
        assert (row["crossings"] > 0) is (mode != "edge")
    assert by_mode["edge"]["admitted"] <= 3 * (50 * 16 + 25)
    assert all(row["admitted"] <= 100 * 16 + 25 for mode, row in by_mode.items() if mode != "edge")
    assert by_mode["lease"]["above_quota"] <= 0
    await until_nothing_is_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 130, one line, every process ended, the folder gone."""
    rules = tmp_path / "low.yaml"
    rules.write_text(LOW_RULES)
    async with demo(tmp_path, "--rules", str(rules), "--edges", "1") as process:
        await lines_until(process, "All up")
        process.send_signal(number)
        _, said = await process.communicate()
    assert process.returncode == 130
    assert said.decode() == "apportion: interrupted\n"
    await until_nothing_is_left(tmp_path)


async def test_a_killed_demo_leaves_nothing(tmp_path: Path) -> None:
    """kill -9 in the middle: the caretaker ends every process and removes the folder."""
    rules = tmp_path / "low.yaml"
    rules.write_text(LOW_RULES)
    async with demo(tmp_path, "--rules", str(rules), "--edges", "2") as process:
        await lines_until(process, "hotspot at")
        assert len(processes_of(tmp_path)) == 8  # demo, caretaker, region, two allocators, two edges, load
        process.kill()
        await process.wait()
        await until_nothing_is_left(tmp_path)


async def test_a_demo_nobody_reads_ends(tmp_path: Path) -> None:
    """As in `apportion demo | head -1`: no traceback, nothing left."""
    rules = tmp_path / "low.yaml"
    rules.write_text(LOW_RULES)
    async with demo(tmp_path, "--rules", str(rules), "--edges", "1") as process:
        await lines_until(process, "Starting")
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        assert process.stderr is not None
        said = (await process.stderr.read()).decode()
        await process.wait()
    assert process.returncode == 130
    assert "Traceback" not in said
    await until_nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--seconds", "2"], "--seconds is from 3 to 3600, got 2"),
        (["--dwell", "0"], "--dwell is from 1 to 3600 seconds, got 0"),
        (["--edges", "9"], "--edges is from 1 to 8, got 9"),
        (["--rules", "nothing-here.yaml"], "nothing-here.yaml: there is no such file or folder"),
    ],
)
async def test_wrong_input_is_told_before_anything_starts(tmp_path: Path, arguments: list[str], text: str) -> None:
    """Exit code 2, and the text names the flag."""
    async with demo(tmp_path, *arguments) as process:
        output, said = await process.communicate()
    assert process.returncode == 2
    assert text in said.decode()
    assert output == b""
    assert folders_in(tmp_path) == []


async def test_more_edges_than_the_rules_admit(tmp_path: Path) -> None:
    """The region would refuse one more, so the demo says it first."""
    rules = tmp_path / "low.yaml"
    rules.write_text(LOW_RULES.replace("domain: low", "domain: low\nedges_max: 2"))
    async with demo(tmp_path, "--rules", str(rules)) as process:
        _, said = await process.communicate()
    assert process.returncode == 2
    assert "says edges_max: 2, so its region would refuse the last of 3 edges" in said.decode()


async def test_a_process_that_does_not_come_up_is_named_with_its_last_words(tmp_path: Path) -> None:
    """An edge that ends at once is no reason to wait."""
    with kept_ports(1) as (port,):
        async with processes() as started:
            child = await started.start("edge nowhere", "apportion", "edge", "--id", "x", "--location", "nowhere")
            with pytest.raises(UnavailableError) as told:
                await serving(child, f"127.0.0.1:{port}")
    assert str(told.value).startswith("edge nowhere did not come up: it ended with code 2; the end of its log:\n")
    assert "give --region ADDR[,ADDR...]" in str(told.value)
