"""Starts and ends the demo's processes. Each is ended by its id, whatever happens to the demo.

Every process joins the group of a caretaker, which removes the folder at the end, and ends whoever is left if the demo
itself was killed.
All are started before this process uses gRPC, and listen on ports that were free a moment ago and are kept for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from apportion.commands.demonstration import caretaker
from apportion.core.errors import UnavailableError

STOP_S = 4.0
"""What a process gets to stop in good order; then it is killed."""

LOG_LINES = 12
"""Lines of a process's log that are told when it fails."""

LINE_MAX = 1 << 20
"""Bytes of one line that a process writes to the demo."""


class Child:
    """One process: its name for people, its log, and how it ended."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.process.returncode is not None

    def how_it_ended(self) -> str:
        """For people."""
        code = self.process.returncode
        if code is None:
            return "is running"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def last_lines(self) -> str:
        """The end of its log, each line indented."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(f"  {line}" for line in lines[-LOG_LINES:]) or "  (it wrote nothing)"

    def cpu_seconds(self) -> float | None:
        """Processor time so far; None where the system does not tell, or it has ended."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None

    async def stop(self) -> None:
        """Ask it to stop, and kill it when it takes too long."""
        if self.ended:
            return
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), STOP_S)
        except TimeoutError:
            self.kill()
            await self.process.wait()

    def kill(self) -> None:
        """End it at once."""
        if not self.ended:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)


class Processes:
    """What one demo started, in the order of starting; `folder` is theirs."""

    def __init__(self, folder: Path, group: int) -> None:
        self.folder = folder
        self.children: list[Child] = []
        self._group = group

    async def start(self, name: str, module: str, *arguments: str, spoken_to: bool = False) -> Child:
        """Start `python -m module arguments`; `spoken_to`: its standard input and output are pipes to the demo."""
        log = self.folder / f"{name.replace(' ', '-')}.log"
        pipe = asyncio.subprocess.PIPE
        with log.open("wb") as stream:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", module, *arguments),
                env=environment(),
                stdin=pipe if spoken_to else asyncio.subprocess.DEVNULL,
                stdout=pipe if spoken_to else stream,
                stderr=stream,
                limit=LINE_MAX,
                process_group=self._group,
            )
        child = Child(name, process, log)
        self.children.append(child)
        return child

    async def stop(self) -> None:
        """Stop all, those that depend on others first: in the reverse order of starting, alike ones together."""
        remaining = list(reversed(self.children))
        while remaining:
            kind = remaining[0].name.split()[0]
            alike = [child for child in remaining if child.name.split()[0] == kind]
            await asyncio.gather(*(child.stop() for child in alike))
            remaining = [child for child in remaining if child not in alike]

    def keep_logs(self, folder: Path) -> None:
        """Copy the logs to `folder`, which is made if need be. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for child in self.children:
            shutil.copy(child.log, folder)

    def kill(self) -> None:
        """End all at once."""
        for child in self.children:
            child.kill()


@asynccontextmanager
async def processes(logs: Path | None = None) -> AsyncIterator[Processes]:
    """A temporary folder and nobody in it yet; at the end everybody is stopped and the folder removed.

    `logs`: where copies of the logs stay.
    """
    folder = Path(tempfile.mkdtemp(prefix="apportion-demo-"))
    keeper: asyncio.subprocess.Process | None = None
    started: Processes | None = None
    try:
        keeper = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", caretaker.__file__, str(folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            process_group=0,
        )
        started = Processes(folder, keeper.pid)
        yield started
    finally:
        if started is not None:
            await started.stop()
            if logs is not None:
                started.keep_logs(logs)
        if keeper is not None:
            assert keeper.stdin is not None
            keeper.stdin.close()
            await keeper.wait()  # then the folder is gone


def environment() -> dict[str, str]:
    """This process's environment without settings of Apportion's own: they are meant for other processes than these."""
    return {name: value for name, value in os.environ.items() if not name.startswith("APPORTION_")}


def failure(child: Child, what: str) -> UnavailableError:
    """An error about a process, with the end of its log."""
    return UnavailableError(f"{child.name} {what}; the end of its log:\n{child.last_lines()}")


@contextlib.contextmanager
def kept_ports(count: int) -> Iterator[list[int]]:
    """Free ports of the loopback, kept from everybody else who asks for any free port; who names one can listen."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in sockets]
