"""Real `apportion` processes for tests: an edge, alone or attached, and a region."""

from __future__ import annotations

import asyncio
import json
import signal
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 30.0
"""An idle machine starts one within a second."""


@dataclass(frozen=True, slots=True)
class EdgeProcess:
    """A running edge, and where it listens."""

    process: asyncio.subprocess.Process
    rls: str
    http: str

    def send(self, number: signal.Signals) -> None:
        """Signal it: SIGSTOP freezes it, SIGCONT goes on, SIGKILL ends it."""
        self.process.send_signal(number)


@asynccontextmanager
async def running_edge(rules: str, folder: Path, *, rls: str = "127.0.0.1:0") -> AsyncIterator[EdgeProcess]:
    """An edge alone with these rules that has said it was started; it is ended with the block."""
    path = folder / "rules.yaml"
    path.write_text(rules)
    async with _edge("--alone", "--rules", str(path), "--rls", rls) as edge:
        yield edge


@asynccontextmanager
async def attached_edge(region: str) -> AsyncIterator[EdgeProcess]:
    """An edge of the region at that address; it may not be ready yet."""
    async with _edge("--region", region, "--rls", "127.0.0.1:0") as edge:
        yield edge


@asynccontextmanager
async def running_region(
    rules: str, folder: Path, store: str = "memory:"
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A region with these rules, in memory unless `store` says otherwise, and its address."""
    path = folder / "region-rules.yaml"
    path.write_text(rules)
    arguments = ("region", "--rules", str(path), "--listen", "127.0.0.1:0", "--store", store)
    async with _running(*arguments) as (process, started):
        yield process, started["listen"]


@asynccontextmanager
async def _edge(*arguments: str) -> AsyncIterator[EdgeProcess]:
    names = ("edge", "--id", "edge-1", "--location", "here")
    http = ("--http", "127.0.0.1:0", "--check-headers", "tenant=X-Tenant")
    async with _running(*names, *http, *arguments) as (process, started):
        yield EdgeProcess(process, started["rls"], started["http"])


@asynccontextmanager
async def _running(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, Any]]]:
    """A process, and what it logged when it had started."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sysconfig.get_path("scripts")) / "apportion"), *arguments, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        started: dict[str, Any] = {}
        while started.get("event") not in ("edge_started", "region_ready"):
            line = await asyncio.wait_for(process.stderr.readline(), START_S)
            assert line, "it ended before it had started"
            started = json.loads(line)
        yield process, started
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        await process.communicate()
