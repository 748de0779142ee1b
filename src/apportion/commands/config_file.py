"""`--config FILE`: settings of a long-running command from a YAML mapping. A flag beats a variable beats the file."""

from __future__ import annotations

import os
import stat
from difflib import get_close_matches
from typing import Annotated

import typer

from apportion.core.document import MappingNode, Problem, Scalar, read_document
from apportion.core.errors import InputError
from apportion.process import ExitCode, fail

BYTES_MAX = 1 << 20
"""A settings file has a handful of lines; a larger one is something else."""

NOTHING = ("", "~", "null", "Null", "NULL")
"""What YAML reads as no value."""


def _read(context: typer.Context, path: str | None) -> str | None:
    if path is None or context.resilient_parsing:
        return path
    try:
        names = _flag_names(context)
        settings = read_settings(path, set(names))
        context.default_map = {**(context.default_map or {}), **{names[flag]: settings[flag] for flag in settings}}
    except InputError as error:
        fail(str(error), ExitCode.WRONG_INPUT)
    return path


ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="APPORTION_CONFIG",
        callback=_read,
        is_eager=True,
        help="Settings as YAML: the names of these flags without dashes in front. Flag beats variable beats file.",
    ),
]


def read_settings(path: str, known: set[str]) -> dict[str, object]:
    """Settings by parameter name. InputError names the file, what is wrong in it, and the nearest known name."""
    settings: dict[str, object] = {}
    for name, node in _load(path).entries:
        parameter = name.text.replace("-", "_")
        if parameter not in known:
            near = get_close_matches(parameter, known, n=1)
            hint = f"; did you mean {near[0].replace('_', '-')!r}?" if near else ""
            raise InputError(f"{path}: unknown setting {name.text[:80]!r}{hint} Known: {', '.join(_flags(known))}")
        if not isinstance(node, Scalar) or (not node.quoted and node.text in NOTHING):
            raise InputError(f"{path}: {name.text}: one value is wanted, as the flag --{name.text} takes it")
        if not node.text.isprintable():
            raise InputError(f"{path}: {name.text}: found {node.text[:80]!r}; a value is printable text")
        settings[parameter] = node.text
    return settings


def _load(path: str) -> MappingNode:
    problems: list[Problem] = []
    root = read_document(path, _text(path), problems)
    if problems:
        raise InputError("\n".join(str(problem).replace("rules file", "settings file") for problem in problems))
    if not isinstance(root, MappingNode):
        raise InputError(f"{path}: a mapping of settings is wanted, such as 'listen: 127.0.0.1:7000'")
    return root


def _text(path: str) -> str:
    try:
        # Not blocking: a pipe or a device is opened only to see that it is one.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise InputError(f"{path}: is no plain file; name a settings file")
            raw = stream.read(BYTES_MAX + 1)
        if len(raw) > BYTES_MAX:
            raise InputError(f"{path}: larger than {BYTES_MAX} bytes, so it is no settings file")
        text = raw.decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a settings file that can be read") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text") from error
    except ValueError as error:  # a NUL in the path
        raise InputError(f"{path!r}: {error}; name a settings file") from error
    if not text.strip():
        raise InputError(f"{path}: is empty; a mapping of settings is wanted, such as 'listen: 127.0.0.1:7000'")
    return text


def _flag_names(context: typer.Context) -> dict[str, str]:
    """Each flag's name with underscores, and the parameter that it sets: `--id` sets `name`."""
    names = {
        flag.lstrip("-").replace("-", "_"): str(parameter.name)
        for parameter in context.command.params
        for flag in parameter.opts
        if flag.startswith("--")
    }
    return {flag: name for flag, name in names.items() if flag not in ("config", "help")}


def _flags(known: set[str]) -> list[str]:
    return sorted(name.replace("_", "-") for name in known)
