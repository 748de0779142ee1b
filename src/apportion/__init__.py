"""Apportion, a hierarchical rate limiter: the public names."""

from importlib.metadata import PackageNotFoundError, version

if not __debug__:
    raise ImportError(
        "Apportion does not run under python -O: its assertions are what keeps a limit from being exceeded when "
        "something goes wrong. Start Python without -O, -OO and PYTHONOPTIMIZE."
    )

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

try:
    __version__ = version("apportion")
except PackageNotFoundError:  # a checkout on the path, not installed
    __version__ = "0+unknown"

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
