"""The text of `--store`: which store it names, and what is said of one that names none."""

from pathlib import Path

import pytest

from apportion.core.errors import InputError
from apportion.region.memory_store import MemoryStore
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store_url import open_store

FORMS = "memory: or sqlite:///PATH (an absolute path takes four slashes: sqlite:////var/lib/apportion/region.db)"


def test_memory() -> None:
    """`memory:` is the store that keeps nothing."""
    assert isinstance(open_store("memory:"), MemoryStore)


@pytest.mark.parametrize(
    "url,path",
    [
        ("sqlite:///region.db", "region.db"),
        ("sqlite:///data/region 1.db", "data/region 1.db"),
        ("sqlite:////var/lib/region.db", "/var/lib/region.db"),
    ],
)
def test_sqlite_paths_follow_the_third_slash(url: str, path: str) -> None:
    """Three slashes are relative to where the region was started, four are absolute."""
    store = open_store(url)
    assert isinstance(store, SqliteStore)
    assert store._file.path == Path(path)


@pytest.mark.parametrize(
    "url,problem",
    [
        ("", f"the store '' is not a URL; write {FORMS}"),
        ("region.db", f"the store 'region.db' is not a URL; write {FORMS}"),
        ("memory://", "the store 'memory://' names more than memory: holds; write memory: alone"),
        ("sqlite:", "the store 'sqlite:' names no file; write sqlite:///PATH, with three slashes and a path"),
        ("sqlite:x.db", "the store 'sqlite:x.db' names no file; write sqlite:///PATH, with three slashes and a path"),
        (
            "sqlite://x.db",
            "the store 'sqlite://x.db' names no file; write sqlite:///PATH, with three slashes and a path",
        ),
        ("sqlite:///", "the store 'sqlite:///' names no file; write sqlite:///PATH, with three slashes and a path"),
        ("sqlite:///:memory:", "the store 'sqlite:///:memory:' keeps nothing; write memory: if that is meant"),
        (
            "sqlite:///x.db?mode=ro",
            "the store 'sqlite:///x.db?mode=ro' has options or bytes that no path has; write sqlite:///PATH alone",
        ),
        ("sqlit:///x.db", f"no store is called 'sqlit' (did you mean sqlite:?); write {FORMS}"),
        ("https://x", f"no store is called 'https'; write {FORMS}"),
        ("redis://u:secret@h/0", f"stores of redis: are not built yet in this version; use {FORMS}"),
        ("rediss://h", f"stores of rediss: are not built yet in this version; use {FORMS}"),
        ("redis+sentinel://h", f"stores of redis+sentinel: are not built yet in this version; use {FORMS}"),
        ("redis+cluster://h", f"stores of redis+cluster: are not built yet in this version; use {FORMS}"),
    ],
)
def test_a_wrong_url_says_what_to_write(url: str, problem: str) -> None:
    """Before anything is opened, and without any password it holds."""
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert str(caught.value) == problem
