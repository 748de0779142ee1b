"""The `apportion` program, one module for each command. Imports nothing that takes time: an interrupt is met first."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """The program's entry."""
    # Nothing is open yet that has to be closed; an exception could be swallowed by what is being imported. A command
    # puts its own handler in this one's place. Where the parent had signals ignored they stay so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)
    from apportion.commands.program import app

    app()


def interrupted(_number: int, _frame: FrameType | None) -> None:
    """Say so, and end at once."""
    os.write(2, b"apportion: interrupted\n")
    os._exit(INTERRUPTED)
