"""The state of an edge on disk: written as a whole, read only if it is all there and this edge's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apportion.core.errors import InputError
from apportion.core.messages import Quota, Rules
from apportion.edge.kept import FORMAT, VERSION, Kept, _checksum
from apportion.edge.state import UNKNOWN_NS, StateFile
from tests.in_process import ManualClock

KEPT = Kept(
    "e1", Rules(3, (("rules.yaml", "version: 1\n"),)), ((Quota("api", "r", b"\x01\xff"), 30),), silent_ns=2_000_000_000
)


def state(folder: Path, edge: str = "e1") -> StateFile:
    """The state of an edge in that folder, by a clock that stands still."""
    return StateFile(str(folder), edge, ManualClock())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Rules, slices by quota, and how long nothing had been heard."""
    state(tmp_path).write(KEPT)
    assert state(tmp_path).read() == KEPT
    assert [path.name for path in tmp_path.iterdir()] == ["edge.state"]


def test_there_is_nothing_before_the_first_write(tmp_path: Path) -> None:
    """A folder that is not there is made."""
    assert state(tmp_path / "new" / "folder").read() is None


def test_silence_goes_on_while_nobody_runs(tmp_path: Path) -> None:
    """The stages of the next process go on where they are by now."""
    clock = ManualClock()
    file = StateFile(str(tmp_path), "e1", clock)
    file.write(KEPT)
    clock.now_ns += 5_000_000_000
    found = file.read()
    assert found is not None
    assert found.silent_ns == 7_000_000_000


def test_after_a_reboot_whose_clock_went_back_all_stages_have_run_out(tmp_path: Path) -> None:
    """Nobody knows how old it is, so it counts as very old."""
    file = state(tmp_path)
    file.write(KEPT)
    _, body = file.path.read_bytes().split(b"\n", 1)
    record = body.decode()
    boot = record.split('"boot": "')[1].split('"')[0]
    wall = record.split('"wall_ns": ')[1].split("}")[0]
    forged = record.replace(boot, "another").replace(wall, str(int(wall) + 10**15))
    _sign(file.path, forged.encode())
    found = file.read()
    assert found is not None
    assert found.silent_ns == UNKNOWN_NS


@pytest.mark.parametrize(
    "damage,said",
    [
        (lambda record: record[:-9], "is damaged: its checksum is another"),
        (lambda record: record.replace(b"rules.yaml", b"rulez.yaml"), "is damaged: its checksum is another"),
        (lambda record: b"", "is not the state of an edge"),
        (lambda record: b"\x00" * 100, "is not the state of an edge"),
        (lambda record: record.replace(b"state 1 ", b"state 9 "), "has version 9, this program reads version 1"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_words(tmp_path: Path, damage: object, said: str) -> None:
    """With its path; never a traceback, never half of it."""
    file = state(tmp_path)
    file.write(KEPT)
    file.path.write_bytes(damage(file.path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(InputError, match=said) as refused:
        file.read()
    assert str(file.path) in str(refused.value)


def test_the_state_of_another_edge_is_refused(tmp_path: Path) -> None:
    """Its shares are not ours."""
    state(tmp_path).write(KEPT)
    with pytest.raises(InputError, match="is of the edge 'e1', this one is 'e2': give each edge a folder of its own"):
        state(tmp_path, "e2").read()


@pytest.mark.parametrize(
    "body",
    [
        b'{"edge": "e1"}',
        b"[" * 100_000,
        b'{"edge": "e1", "rules_version": 1, "rules": [], "slices": [], "silent_ns": Infinity, "written": {}}',
        b'{"edge": "e1", "rules_version": %d, "slices": [], "rules": [], "written": {}, "silent_ns": 0}' % 2**64,
    ],
    ids=["fields are missing", "nested too deeply", "endless", "version of more than 64 bits"],
)
def test_right_checksum_and_wrong_content_is_refused(tmp_path: Path, body: bytes) -> None:
    """As when another program wrote it."""
    file = state(tmp_path)
    _sign(file.path, body)
    with pytest.raises(InputError, match="no right content"):
        file.read()


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """A named pipe has no end."""
    file = state(tmp_path)
    os.mkfifo(file.path)
    with pytest.raises(InputError, match="is not the state of an edge: it is no file"):
        file.read()


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    """With the flag and the fix."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--state .*file: .*name a folder that can be written"):
        state(tmp_path / "file")


def _sign(path: Path, body: bytes) -> None:
    path.write_bytes(f"{FORMAT} {VERSION} {_checksum(body)}\n".encode() + body)
