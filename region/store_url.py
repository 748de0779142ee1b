"""Turns the text of `--store` into a store. Says what is wrong with it, and the fix, before anything is opened."""

from __future__ import annotations

import time
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from apportion.core.errors import InputError
from apportion.region.memory_store import MemoryStore
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Store

NOT_BUILT = ("redis", "rediss", "redis+sentinel", "redis+cluster")
"""Schemes of design 13 that come in a later version."""

FORMS = "memory: or sqlite:///PATH (an absolute path takes four slashes: sqlite:////var/lib/apportion/region.db)"


def open_store(
    url: str,
    *,
    monotonic_ns: Callable[[], int] = time.monotonic_ns,
    wall_ns: Callable[[], int] = time.time_ns,
) -> Store:
    """The store that `url` names, still to be opened with `await store.open()`. InputError: no store has such a URL."""
    scheme, colon, rest = url.partition(":")
    if not colon:
        raise InputError(f"the store {_shown(url)} is not a URL; write {FORMS}")
    if scheme == "memory":
        if rest:
            raise InputError(f"the store {_shown(url)} names more than memory: holds; write memory: alone")
        return MemoryStore(monotonic_ns, wall_ns)
    if scheme == "sqlite":
        return SqliteStore(_path(url, rest), monotonic_ns, wall_ns)
    if scheme in NOT_BUILT:
        # Only the scheme is shown: the rest may hold a password.
        raise InputError(f"stores of {scheme}: are not built yet in this version; use {FORMS}")
    near = get_close_matches(scheme, ("memory", "sqlite", *NOT_BUILT), 1)
    meant = f" (did you mean {near[0]}:?)" if near else ""
    raise InputError(f"no store is called {scheme[:40]!r}{meant}; write {FORMS}")


def _path(url: str, rest: str) -> Path:
    """The path of an sqlite URL: what follows the third slash."""
    path = rest.removeprefix("///")
    if not rest.startswith("///") or not path or path == "/":
        raise InputError(f"the store {_shown(url)} names no file; write sqlite:///PATH, with three slashes and a path")
    if path == ":memory:":
        raise InputError(f"the store {_shown(url)} keeps nothing; write memory: if that is meant")
    if "?" in path or "\0" in path:
        raise InputError(f"the store {_shown(url)} has options or bytes that no path has; write sqlite:///PATH alone")
    return Path(path)


def _shown(url: str) -> str:
    """The URL for a message, bounded."""
    return repr(url if len(url) <= 200 else url[:200] + "...")
