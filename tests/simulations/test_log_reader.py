"""Access logs as files: streamed, packed, damaged, or no log at all."""

import gzip
from pathlib import Path

import pytest

from apportion.core.errors import InputError
from apportion.simulations.log_reader import LogReader

GOOD = '203.0.113.7 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5'


def written(folder: Path, content: bytes) -> Path:
    """A log with that content."""
    path = folder / "access.log"
    path.write_bytes(content)
    return path


def test_bad_lines_are_counted_and_the_first_ten_named(tmp_path: Path) -> None:
    """By number from 1; blank lines are neither good nor bad; the last line needs no end."""
    lines = [GOOD, "", *["rubbish"] * 12, GOOD]
    reader = LogReader(written(tmp_path, "\n".join(lines).encode()))
    assert len(list(reader.entries())) == 2
    assert (reader.good, reader.bad) == (2, 12)
    assert reader.problems == [f"{number}: is not of the combined format" for number in range(3, 13)]


def test_a_file_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    """One request asked for is one line read, however many follow: what is larger than memory is never in it."""
    reader = LogReader(written(tmp_path, (GOOD + "\n").encode() * 100_000))
    next(reader.entries())
    assert reader.good == 1


def test_a_packed_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    """And the share read is of the packed file."""
    reader = LogReader(written(tmp_path, gzip.compress((GOOD + "\n").encode() * 1000)))
    assert len(list(reader.entries())) == 1000
    assert reader.share == 1.0


def test_a_packed_file_that_was_cut_off_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    """What is lost is said with the line at which it was."""
    lines = "".join(f"203.0.113.{at % 251} {GOOD.partition(' ')[2]}{at * 7919}\n" for at in range(5000))
    packed = gzip.compress(lines.encode())
    reader = LogReader(written(tmp_path, packed[: len(packed) // 2]))
    found = len(list(reader.entries()))
    assert 1000 < found < 4000
    assert len(reader.problems) == 1
    assert reader.problems[0].startswith(f"{found + 1}: the gzip file is damaged here, what follows is lost")


def test_a_line_without_an_end_is_skipped_whole(tmp_path: Path) -> None:
    """A megabyte of zeros is one bad line, and what comes after it is read."""
    reader = LogReader(written(tmp_path, GOOD.encode() + b"\n" + b"\0" * 1_000_000 + b"\n" + GOOD.encode()))
    assert len(list(reader.entries())) == 2
    assert reader.problems == ["2: is longer than 65,536 bytes"]


def test_what_is_not_utf_8_and_a_mark_at_the_beginning_are_no_matter(tmp_path: Path) -> None:
    """Spreadsheets write such a mark; servers log any byte."""
    reader = LogReader(written(tmp_path, "\ufefftime,key\r\n".encode() + b"1798761600,\xff\r\n"))
    assert [entry.key for entry in reader.entries()] == ["\ufffd"]


@pytest.mark.parametrize(
    "content,said",
    [
        (b"", "no line can be read; it is empty. A good line is `203.0.113.7 - - [10/Oct/2026:13:55:36 +0000]"),
        (b"hello\nworld\n", "no line can be read; line 1: is not of the combined format. A good line is"),
        (b"time,key\n", "or a CSV file whose first line is `time,location,key,cost`"),
        (b"\x1f\x8bnot really", "no line can be read"),
    ],
)
def test_a_file_without_a_good_line_is_an_error_that_shows_one(tmp_path: Path, content: bytes, said: str) -> None:
    """In both formats."""
    with pytest.raises(InputError) as error:
        list(LogReader(written(tmp_path, content)).entries())
    assert said in str(error.value)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    """Nothing there, or a folder."""
    for path in (tmp_path / "nothing.log", tmp_path):
        with pytest.raises(InputError, match="name an access log"):
            list(LogReader(path).entries())
