"""What every long-running command shares: logs, signals, and errors told to a person without a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from enum import IntEnum
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

import structlog
import typer

from apportion.core.errors import ApportionError, InputError

Params = ParamSpec("Params")
Result = TypeVar("Result")


class ExitCode(IntEnum):
    """What a command's exit code means (design 13)."""

    DONE = 0
    NO = 1
    WRONG_INPUT = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


def configure_logs() -> None:
    """Logs go to standard error: for people on a terminal, as JSON lines elsewhere."""
    on_terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            *([] if on_terminal else [structlog.processors.format_exc_info]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


_asked_by: set[signal.Signals] = set()
"""Signals that asked this process to stop: `run_service` takes the exit code from them."""


@asynccontextmanager
async def stop_signals() -> AsyncIterator[asyncio.Event]:
    """An event that SIGTERM or SIGINT sets: the process is asked to stop in good order."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked(number: signal.Signals) -> None:
        _asked_by.add(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked, number)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def run_service(service: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a long-running command's coroutine with logs configured. Exit code 130 when SIGINT had it stop."""
    configure_logs()
    _asked_by.clear()
    asyncio.run(service())
    if signal.SIGINT in _asked_by:
        raise typer.Exit(ExitCode.INTERRUPTED)


def told_plainly(command: Callable[Params, Result]) -> Callable[Params, Result]:
    """A command whose errors are told in one text, with the exit code that fits; never a traceback."""

    @wraps(command)
    def wrapped(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return command(*args, **kwargs)
        except InputError as error:
            fail(str(error), ExitCode.WRONG_INPUT)
        except ApportionError as error:
            fail(str(error), ExitCode.UNREACHABLE)
        except KeyboardInterrupt:
            fail("interrupted", ExitCode.INTERRUPTED)
        except BrokenPipeError:  # nobody reads any more, as in `| head`; the flush at the end must not meet that again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            fail("interrupted", ExitCode.INTERRUPTED)

    return wrapped


def fail(text: str, code: ExitCode) -> NoReturn:
    """Tell a person what went wrong and end with `code`."""
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(f"apportion: {text}\n")
    raise typer.Exit(code)
