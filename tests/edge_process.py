"""A real `apportion edge --alone` as a process of its own, for tests."""

from __future__ import annotations

import asyncio
import json
import signal
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

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
async def running_edge(
    rules: str, folder: Path, *, rls: str = "127.0.0.1:0", arguments: tuple[str, ...] = ()
) -> AsyncIterator[EdgeProcess]:
    """An edge with these rules that was started and has said so; it is ended with the block."""
    (folder / "rules.yaml").write_text(rules)
    process = await asyncio.create_subprocess_exec(
        str(Path(sysconfig.get_path("scripts")) / "apportion"),
        *("edge", "--id", "edge-1", "--location", "here", "--alone", "--rules", str(folder / "rules.yaml")),
        *("--rls", rls, "--http", "127.0.0.1:0", "--check-headers", "tenant=X-Tenant", *arguments),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        started = json.loads(await asyncio.wait_for(process.stderr.readline(), START_S))
        assert started["event"] == "edge_started", started
        yield EdgeProcess(process, started["rls"], started["http"])
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        await process.communicate()
