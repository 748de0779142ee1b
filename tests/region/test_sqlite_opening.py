"""Files that the store cannot use: each refusal names the file and the fix, and leaves the file as it was."""

import os
import resource
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from apportion.core.errors import InputError, StoreError
from apportion.region.sqlite_store import SqliteStore
from tests.contract.worlds import SLOW, ManualClock, World, admitted, ask, one

pytestmark = pytest.mark.asyncio

NOBODY = 65534


def make(path: Path) -> SqliteStore:
    """A store on `path`, still to be opened."""
    clock = ManualClock()
    return SqliteStore(path, clock.monotonic_ns, clock.wall_ns)


async def refusal(path: Path) -> str:
    """What is said when the store cannot be opened; closing it then is fine."""
    store = make(path)
    with pytest.raises(InputError) as caught:
        await store.open()
    await store.close()
    return str(caught.value)


@contextmanager
def as_nobody(mode: int) -> Iterator[Path]:
    """A directory of that mode with `read-only.db` in it, and no right to anything that modes do not give to all."""
    with tempfile.TemporaryDirectory() as name:
        directory, user = Path(name).resolve(), os.geteuid()
        (directory / "read-only.db").touch(0o444)
        directory.chmod(mode)
        try:
            if user == 0:
                os.seteuid(NOBODY)
            yield directory
        finally:
            os.seteuid(user)
            directory.chmod(0o755)


async def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    """It is named, to be created."""
    path = tmp_path / "missing" / "region.db"
    said = f"the directory of the store's file {path} does not exist; create {tmp_path}/missing"
    assert await refusal(path) == said


async def test_a_relative_path_that_was_meant_to_be_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes for four is the usual slip."""
    monkeypatch.chdir(tmp_path)
    said = await refusal(Path("var/lib/region.db"))
    assert said.endswith("; an absolute path takes four slashes: sqlite:////var/lib/region.db")


async def test_a_directory_instead_of_a_file(tmp_path: Path) -> None:
    """A file in it is proposed."""
    said = f"the store's file {tmp_path} is a directory; name a file in it, such as {tmp_path}/region.db"
    assert await refusal(tmp_path) == said


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """It is not touched."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    said = f"{path} is not an SQLite database; name another file, or move this one away"
    assert await refusal(path) == said
    assert path.read_text() == "not a database, " * 100


async def test_a_database_of_another_program(tmp_path: Path) -> None:
    """It is not touched."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bucket (mine)")
    before = path.read_bytes()
    said = f"{path} is an SQLite database of another program; name a file of the region's own"
    assert await refusal(path) == said
    assert path.read_bytes() == before


async def test_a_file_of_a_newer_version(tmp_path: Path) -> None:
    """It is refused, not read as if it were ours."""
    world = World("sqlite", tmp_path)
    async with world.store() as store:
        await ask(store, one(b"k", SLOW))
    with closing(sqlite3.connect(world.path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    said = (
        f"{world.path} was written by a newer Apportion (format 2, this one knows up to 1); "
        "start that version, or name another file"
    )
    assert await refusal(world.path) == said


async def test_a_directory_that_may_not_be_written() -> None:
    """The user's right is what is missing."""
    with as_nobody(0o555) as directory:
        said = await refusal(directory / "region.db")
    assert said == (
        f"cannot create {directory}/region.db.lock beside the store's file: Permission denied; "
        "let the region's user write in that directory, or name another file"
    )


async def test_a_file_that_may_not_be_written() -> None:
    """Found at the opening, not at the first decision."""
    with as_nobody(0o777) as directory:
        said = await refusal(directory / "read-only.db")
    assert said == (
        f"cannot write {directory}/read-only.db: attempt to write a readonly database; let the region's user read "
        "and write the file and its directory, on a disk that is not read-only"
    )


async def test_a_damaged_file_is_broken_not_wrong(tmp_path: Path) -> None:
    """A header that is ours with garbage behind it: the store says so, with the file's name."""
    world = World("sqlite", tmp_path)
    async with world.store() as store:
        await ask(store, one(b"k", SLOW))
    content = bytearray(world.path.read_bytes())
    content[100:4096] = os.urandom(3996)
    world.path.write_bytes(content)
    with pytest.raises(StoreError, match=f"cannot open {world.path}: database disk image is malformed"):
        await make(world.path).open()


async def test_a_second_region_in_the_same_process_is_refused_also_by_another_name(tmp_path: Path) -> None:
    """Through a symbolic link it is the same file; after the first has closed it may be opened."""
    world = World("sqlite", tmp_path)
    link = tmp_path / "link.db"
    link.symlink_to(world.path)
    async with world.store() as store:
        for path in (world.path, link):
            assert (await refusal(path)).startswith(f"another region has {world.path}: process {os.getpid()} is still")
        assert await admitted(store, one(b"k", SLOW)) == [1]
    second = make(link)
    await second.open()
    await second.close()


async def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    """As left by a region that was killed before it had written anything."""
    world = World("sqlite", tmp_path)
    world.path.touch()
    async with world.store() as store:
        assert (await store.register()).run_id != ""
    assert stat.S_IMODE(world.path.stat().st_mode) & 0o600 == 0o600


async def test_opening_twice_is_a_fault_of_ours(tmp_path: Path) -> None:
    """A store is opened once; after a refusal it must be made anew."""
    world = World("sqlite", tmp_path)
    async with world.store() as store:
        with pytest.raises(AssertionError, match="opened once"):
            await store.open()


@pytest.mark.parametrize(
    "statement, what",
    [
        ("UPDATE state SET register = '{}'", "the register in table state is '{}', which cannot be read"),
        ("UPDATE state SET register = '[]'", "the register in table state is '[]', which cannot be read"),
        ("UPDATE state SET register = 'x'", "the register in table state is 'x', which cannot be read"),
        ("UPDATE state SET last_ns = 'soon'", "last_ns in table state is 'soon', no time in nanoseconds"),
        ("UPDATE state SET last_ns = 9223372036854775807", "last_ns in table state is 9223372036854775807, no time"),
        ("DELETE FROM state", "table state has no row"),
    ],
)
async def test_a_damaged_row_is_named_at_the_start_and_while_running(tmp_path: Path, statement: str, what: str) -> None:
    """With the file, as a StoreError, both times; nothing is left waiting."""
    world = World("sqlite", tmp_path)
    async with world.store() as store:
        before = await store.register()
        with closing(sqlite3.connect(world.path)) as connection, connection:
            connection.execute(statement)
        with pytest.raises(StoreError) as caught:
            await store.swap_register(before, before)
        assert f"{world.path} is damaged: {what}" in str(caught.value)
    with pytest.raises(StoreError) as caught:
        await make(world.path).open()
    assert f"{world.path} is damaged: {what}" in str(caught.value)


async def test_a_removed_lock_file_or_another_name_lets_no_second_region_in(tmp_path: Path) -> None:
    """The database's own inode is locked too."""
    world = World("sqlite", tmp_path)
    hard = tmp_path / "hard.db"
    async with world.store() as store:
        os.link(world.path, hard)
        (tmp_path / f"{world.path.name}.lock").unlink()
        for path in (world.path, hard):
            assert (await refusal(path)).startswith(f"another region has {path}, by this name or another one")
        assert await admitted(store, one(b"k", SLOW)) == [1]


async def test_a_lock_that_is_no_file(tmp_path: Path) -> None:
    """A pipe in its place neither hangs nor is written."""
    os.mkfifo(tmp_path / "region.db.lock")
    said = f"{tmp_path}/region.db.lock is no plain file, and the store's lock must be one; move it away"
    assert await refusal(tmp_path / "region.db") == said


async def test_a_lock_on_a_full_disk(tmp_path: Path) -> None:
    """The process's number cannot be written: said, with the name."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(StoreError, match=f"cannot write {tmp_path}/region.db.lock: File too large"):
            await make(tmp_path / "region.db").open()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


async def test_a_refused_file_gets_no_lock_beside_it(tmp_path: Path) -> None:
    """A file named by mistake stays alone."""
    (tmp_path / "rules.yaml").write_text("version: 1\n" * 100)
    await refusal(tmp_path / "rules.yaml")
    assert not (tmp_path / "rules.yaml.lock").exists()
