"""Rules that change on disk while real processes run: on every edge within two seconds, proved by what edges say."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from apportion.commands.demonstration.processes import Child, Processes, kept_ports, processes
from apportion.commands.demonstration.running import edge_arguments, serving
from apportion.proto.v1 import limiter_pb2, limiter_pb2_grpc, region_pb2, region_pb2_grpc

EDGES = ("frankfurt", "dublin")

BOUND_S = 30.0
"""What anything gets to happen; the two seconds are counted in the region's own epochs, whatever else the machine does."""

HEAD = "version: 1\ndomain: api\nedges_max: 4\ndefaults: {deadline: 1s}\nrules:\n"

Change = Callable[[Path, str], None]


def rule(name: str, limit: str, enforce: str) -> str:
    """One rule by its name, for everybody."""
    return (
        f"  - {{name: {name}, match: {{api: {name}}}, key: [api], limit: {limit}, enforce: {enforce}, "
        "when_unavailable: [deny]}\n"
    )


def rules(search: str = "{rate: 100/s}", pay: str = "{rate: 10/min}", enforce: str = "lease") -> str:
    """A file of two rules."""
    return HEAD + rule("search", search, enforce) + rule("pay", pay, "region")


def in_place(path: Path, text: str) -> None:
    """Write over the file."""
    path.write_text(text)


def renamed_over(path: Path, text: str) -> None:
    """Write another file and rename it over, as editors do."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


class System:
    """Region, allocator and two edges that go by the files of `folder`."""

    def __init__(self, started: Processes, folder: Path, ports: list[int]) -> None:
        self.folder = folder
        self.file = folder / "rules.yaml"
        region, *doors = (f"127.0.0.1:{port}" for port in ports)
        self.address = region
        self.doors = dict(zip(EDGES, doors, strict=True))
        self.region: Child
        self.children: list[Child] = []
        self._started = started

    async def start(self) -> None:
        """Start everything and wait until both edges have acknowledged the rules."""
        store = f"sqlite:///{self._started.folder / 'region.db'}"
        arguments = ("region", "--rules", str(self.folder), "--listen", self.address, "--store", store)
        self.region = await self._started.start("region 1", "apportion", *arguments)
        allocator = await self._started.start("allocator 1", "apportion", "allocator", "--region", self.address)
        edges = [
            await self._started.start(f"edge {name}", *edge_arguments(name, self.address, door))
            for name, door in self.doors.items()
        ]
        self.children = [self.region, allocator, *edges]
        for child, address in zip(self.children[2:], self.doors.values(), strict=True):
            await serving(child, address)
        await self.until(lambda said: said.register.generation > 0 and acknowledged(said, 1))

    async def explain(self) -> region_pb2.ExplainResponse:
        """What the region says."""
        async with grpc.aio.insecure_channel(self.address) as channel:
            stub: Any = region_pb2_grpc.RegionStub(channel)
            said: region_pb2.ExplainResponse = await stub.Explain(region_pb2.ExplainRequest(), timeout=BOUND_S)
            return said

    async def until(self, fits: Callable[[region_pb2.ExplainResponse], bool]) -> region_pb2.ExplainResponse:
        """Ask again and again until what the region says fits."""
        said = None
        with suppress(TimeoutError):
            async with asyncio.timeout(BOUND_S):
                while True:
                    with suppress(grpc.aio.AioRpcError):
                        said = await self.explain()
                        if fits(said):
                            return said
                    await asyncio.sleep(0.02)
        raise AssertionError(f"it did not come to it; last: {said}\n{self.region.last_lines()}")

    async def decide(self, edge: str, api: str) -> limiter_pb2.DecideResponse:
        """Ask one edge for one request."""
        async with grpc.aio.insecure_channel(self.doors[edge]) as channel:
            stub: Any = limiter_pb2_grpc.LimiterStub(channel)
            descriptor = limiter_pb2.Descriptor(dimensions={"api": api})
            request = limiter_pb2.DecideRequest(domain="api", descriptors=[descriptor])
            answer: limiter_pb2.DecideResponse = await stub.Decide(request, timeout=BOUND_S)
            return answer

    async def admitted(self, edge: str, api: str) -> bool:
        """Ask until it is admitted, waiting as told; False when waiting cannot help."""
        async with asyncio.timeout(BOUND_S):
            while not (answer := await self.decide(edge, api)).allowed:
                (refused,) = answer.verdicts
                if not refused.HasField("retry_after"):
                    return False
                await asyncio.sleep(refused.retry_after.ToNanoseconds() / 1e9)
        return True

    async def change(self, text: str, how: Change = in_place) -> int:
        """Change the file; epochs until every edge has acknowledged the next version."""
        before = await self.explain()
        how(self.file, text)
        after = await self.until(lambda said: acknowledged(said, before.rules_version + 1))
        return after.epoch - before.epoch


def acknowledged(said: region_pb2.ExplainResponse, version: int) -> bool:
    """Whether both edges decide by that version."""
    return [edge.rules_version for edge in said.edges] == [version] * len(EDGES)


@asynccontextmanager
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """Everything up; everything is stopped with the block."""
    with kept_ports(1 + len(EDGES)) as ports:
        async with processes() as started:
            whole = System(started, tmp_path, ports)
            whole.file.write_text(rules())
            await whole.start()
            yield whole


@pytest.mark.asyncio
async def test_a_limit_goes_up_down_to_zero_and_to_unlimited_on_every_edge_within_two_seconds(tmp_path: Path) -> None:
    """Each edge says which version it decides by, and then answers by the new number (issue 4; C19f back again)."""
    async with system(tmp_path) as whole:
        changes: list[tuple[str, int | None, Change]] = [
            ("{rate: 400/s}", 400, in_place),
            ("{rate: 40/s}", 40, renamed_over),
            ("{rate: 0/s}", 0, in_place),
            ("{rate: 50/s}", 50, renamed_over),
            ("{unlimited: true}", None, in_place),
            ("{rate: 30/s}", 30, in_place),
        ]
        epochs = []
        for limit, units, how in changes:
            epochs.append(await whole.change(rules(limit), how))
            for edge in EDGES:
                answer = await whole.decide(edge, "search")
                told = [verdict.limit.units for verdict in answer.verdicts if verdict.rule == "search"]
                assert told == ([] if units is None else [units])
                assert (await whole.admitted(edge, "search")) is (units != 0)
        assert max(epochs) <= 2


@pytest.mark.asyncio
async def test_usage_is_kept_when_a_limit_changes(tmp_path: Path) -> None:
    """C33, bucket form: 8 of 10 used; at 20 there are 12 more, at 5 none, and no reload gives anything back."""
    async with system(tmp_path) as whole:
        used = [(await whole.decide(EDGES[at % 2], "pay")).allowed for at in range(8)]
        await whole.change(rules(pay="{rate: 20/min}"))
        (up,) = (await whole.decide(EDGES[0], "pay")).verdicts
        await whole.change(rules(pay="{rate: 5/min}"))
        down = await whole.decide(EDGES[1], "pay")
        await whole.change(HEAD + rule("other", "{rate: 7/s}", "lease") + rules(pay="{rate: 10/min}")[len(HEAD) :])
        after = [(await whole.decide(EDGES[at % 2], "pay")).allowed for at in range(3)]
        assert (used, up.allowed, down.allowed) == ([True] * 8, True, False)
        # 9 were used; what has drained meanwhile is at most what the time since gives.
        assert 11 <= up.remaining <= 14
        assert after.count(True) <= 4


@pytest.mark.asyncio
async def test_a_bad_file_stops_nobody_and_keeps_its_last_good_text(tmp_path: Path) -> None:
    """C29, C30, C31 at reload: the bad file is told of, the other file's change is in force, nothing exits."""
    async with system(tmp_path) as whole:
        other = whole.folder / "zz.yaml"
        good = HEAD + rule("mail", "{rate: 60/s}", "lease")
        for bad in (HEAD + "  - {name: mail, limit: }\n", HEAD + rule("twin", "{rate: 15/s}", "lease") * 2, "", "{{{"):
            other.write_text(good)
            await whole.until(lambda said: not said.rules_rejected and any(r.rule == "mail" for r in said.rules))
            other.write_text(bad)
            said = await whole.until(lambda said: list(said.rejected_files) == ["zz.yaml"])
            assert "zz.yaml" in said.rules_rejected
        before = (await whole.explain()).rules_version
        whole.file.write_text(rules("{rate: 300/s}"))
        said = await whole.until(lambda said: acknowledged(said, before + 1))
        assert list(said.rejected_files) == ["zz.yaml"]
        (verdict,) = (await whole.decide(EDGES[0], "search")).verdicts
        assert verdict.limit.units == 300
        (mail,) = (await whole.decide(EDGES[1], "mail")).verdicts
        assert mail.limit.units == 60
        other.unlink()
        await whole.until(lambda said: acknowledged(said, before + 2) and not said.rules_rejected)
        assert not (await whole.decide(EDGES[1], "mail")).verdicts
        assert [child.name for child in whole.children if child.ended] == []


@pytest.mark.asyncio
async def test_a_swapped_link_and_sighup_are_seen_too(tmp_path: Path) -> None:
    """Kubernetes mounts a ConfigMap as links into a folder that it replaces by renaming one link."""
    for name, limit in (("..one", "{rate: 100/s}"), ("..two", "{rate: 200/s}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.yaml").write_text(rules(limit))
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "rules.yaml").symlink_to(Path("..data") / "rules.yaml")

    def swapped(path: Path, _: str) -> None:
        (path.parent / "..tmp").symlink_to("..two")
        (path.parent / "..tmp").rename(path.parent / "..data")

    async with system_of_links(tmp_path) as whole:
        assert await whole.change("", swapped) <= 2
        (verdict,) = (await whole.decide(EDGES[0], "search")).verdicts
        assert verdict.limit.units == 200
        os.kill(whole.region.pid, signal.SIGHUP)
        async with asyncio.timeout(BOUND_S):
            while "rules_files_in_force" not in whole.region.log.read_text():
                await asyncio.sleep(0.02)


@asynccontextmanager
async def system_of_links(folder: Path) -> AsyncIterator[System]:
    """As `system`, with the files that are there."""
    with kept_ports(1 + len(EDGES)) as ports:
        async with processes() as started:
            whole = System(started, folder, ports)
            await whole.start()
            yield whole
