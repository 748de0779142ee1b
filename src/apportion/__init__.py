"""Apportion, a hierarchical rate limiter: the public names, each imported when it is first asked for.

So `apportion` the program, which imports this first, is told of an interrupt by its own code and not by a traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if not __debug__:
    raise ImportError(
        "Apportion does not run under python -O: its assertions are what keeps a limit from being exceeded when "
        "something goes wrong. Start Python without -O, -OO and PYTHONOPTIMIZE."
    )

if TYPE_CHECKING:
    from apportion.core.decision import Decision
    from apportion.core.errors import (
        ApportionError,
        InputError,
        ProtocolError,
        RulesError,
        StoreError,
        UnavailableError,
    )
    from apportion.edge.limiter import Limiter

    __version__: str

__all__ = [
    "ApportionError",
    "Decision",
    "InputError",
    "Limiter",
    "ProtocolError",
    "RulesError",
    "StoreError",
    "UnavailableError",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "__version__":
        value: object = _version()
    else:
        places = {"Decision": "apportion.core.decision", "Limiter": "apportion.edge.limiter"}
        value = getattr(import_module(places.get(name, "apportion.core.errors")), name)
    globals()[name] = value
    return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("apportion")
    except PackageNotFoundError:  # a checkout on the path, not installed
        return "0+unknown"
