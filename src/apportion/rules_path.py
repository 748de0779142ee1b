"""Reads rules files from disk: one file, or the *.yaml and *.yml of a folder. The shell around `core.rules_file`.

At the package's root, so that edge, region and commands share it and `core` reads no disk.
"""

from __future__ import annotations

from pathlib import Path

from apportion.core.document import CHARACTERS_MAX, Problem
from apportion.core.errors import InputError, RulesError
from apportion.core.rule import Place, RuleSet
from apportion.core.rules_file import FILES_MAX, parse_rules
from apportion.core.tenancy_file import TABLE, tables_named

SUFFIXES = (".yaml", ".yml")

OPEN_FILES = Path("/dev/fd")

BYTES_MAX = 4 * CHARACTERS_MAX
"""A character has at most 4 bytes in UTF-8; a longer file is not even read."""


def load_rules(path: str | Path) -> RuleSet:
    """The rules at `path`. InputError (RulesError for what is in the files): its text names the file and the fix."""
    return parse_rules(read_rule_texts(path))


def read_rule_texts(path: str | Path) -> tuple[tuple[str, str], ...]:
    """(name, text) of the rules file, or of each in the folder, and of the tables of tenants that they name; a name has
    no folder, so that copies have one digest.

    InputError: there is no such file, or no rules file in the folder. RulesError: files that cannot be read as text.
    """
    texts, problems = read_rule_files(path)
    if problems:
        raise RulesError(problems)
    return texts


def read_rule_files(path: str | Path) -> tuple[tuple[tuple[str, str], ...], tuple[Problem, ...]]:
    """As `read_rule_texts`, but what cannot be read as text is told beside what can be. InputError as there."""
    texts: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for file in _rule_files(Path(path)):
        _check_name(file)
        text = _read_text(file)
        if isinstance(text, Problem):
            problems.append(text)
        else:
            texts.append((file.name, text))
            _read_tables(file, text, texts, problems)
    return tuple(texts), tuple(problems)


def signature(path: str | Path) -> tuple[object, ...]:
    """What changes whenever a file does, without reading any: names, and what the system says of each file itself.

    A file that was written within the same tick of the clock, to the same length, looks the same. Never raises.
    """
    try:
        files = _rule_files(Path(path))
        files += sorted(files[0].parent.glob(f"*{TABLE}"))  # which of them are read is only known when it is
    except InputError as error:
        return (str(error),)
    except OSError as error:
        return (error.errno,)
    return tuple(_file_signature(file) for file in files)


def _file_signature(file: Path) -> tuple[object, ...]:
    try:
        found = file.stat()
    except OSError as error:
        return (file.name, error.errno)
    return file.name, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read_tables(file: Path, text: str, texts: list[tuple[str, str]], problems: list[Problem]) -> None:
    """Add the tables of tenants that a rules file names, from its own folder. What is not there `core` reports."""
    for name in tables_named(text):
        table = file.with_name(name)
        if any(name == known for known, _ in texts) or not table.is_file():
            continue
        found = _read_text(table)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            texts.append((name, found))


def _rule_files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            if not path.exists():
                raise InputError(f"{path}: there is no such file or folder; name a rules file, or a folder of them")
            return [path]
        found = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and not file.name.startswith("."))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not found:
        raise InputError(f"{path}: the folder has no *.yaml or *.yml; name a rules file, or a folder of them")
    if len(found) > FILES_MAX:
        raise InputError(f"{path}: the folder has {len(found)} rules files, the most is {FILES_MAX}")
    return found


def _check_name(file: Path) -> None:
    """InputError for a name of bytes that are no text: it goes to every edge beside the file's text."""
    try:
        file.name.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{str(file)!r}: the file's name is not UTF-8 text; rename it") from None


def _read_text(file: Path) -> str | Problem:
    """The text of a file, or why it has none."""
    try:
        # What a shell's <(...) gives is a pipe that somebody has open already; another one could be waited on for ever.
        if not file.is_file() and not (file.is_fifo() and file.parent == OPEN_FILES):
            return Problem(Place(file.name, 1), "is no file; a rules file is plain text")
        with file.open("rb") as stream:
            raw = stream.read(BYTES_MAX + 1)
    except OSError as error:
        return Problem(Place(file.name, 1), f"cannot be read: {error.strerror}")
    if len(raw) > BYTES_MAX:
        return Problem(Place(file.name, 1), f"the file has more than {BYTES_MAX} bytes; divide it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{raw[error.start]:02x} at offset {error.start}"
        return Problem(Place(file.name, line), f"found the {found}, which is not UTF-8; save the file as UTF-8")
