"""Cleans up after a demo, however it ended: a tiny process that waits for the demo's end of a pipe to close.

All processes of a demo are in the group that this one leads, so the group's number stays theirs as long as this process
lives. When the pipe closes the demo has stopped everybody, or was killed itself: the temporary folder is removed, and
whoever is left in the group is ended, this process with them. Standard library only; run as a script.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

ATTEMPTS = 5
"""A process that still lives may create a file while the folder is being removed."""


def main(folder: str) -> None:
    """Wait for the end of standard input, then clean up."""
    assert os.getpgrp() == os.getpid(), "started as the leader of a group of its own"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for _ in range(ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            break
        time.sleep(0.05)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
