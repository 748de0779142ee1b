"""`--config FILE`: settings of a long-running command from a YAML mapping. A flag beats a variable beats the file."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
import yaml

from apportion.core.errors import InputError
from apportion.process import ExitCode, fail

BYTES_MAX = 1 << 20
"""A settings file has a handful of lines; a larger one is something else."""


def _read(context: typer.Context, path: str | None) -> str | None:
    if path is None or context.resilient_parsing:
        return path
    try:
        context.default_map = {**(context.default_map or {}), **read_settings(path, _known(context))}
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
    for name, value in _load(path).items():
        parameter = str(name).replace("-", "_")
        if parameter not in known:
            near = get_close_matches(parameter, known, n=1)
            hint = f"; did you mean {near[0].replace('_', '-')!r}?" if near else ""
            raise InputError(f"{path}: unknown setting {name!r}{hint} Known: {', '.join(_flags(known))}")
        if isinstance(value, dict | list) or value is None:
            raise InputError(f"{path}: {name}: one value is wanted, as the flag --{name} takes it")
        settings[parameter] = value if isinstance(value, bool) else str(value)
    return settings


def _load(path: str) -> dict[object, object]:
    try:
        raw = Path(path).read_bytes()[: BYTES_MAX + 1]
        if len(raw) > BYTES_MAX:
            raise InputError(f"{path}: larger than {BYTES_MAX} bytes, so it is no settings file")
        loaded = yaml.safe_load(raw.decode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a settings file that can be read") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(loaded, dict):
        raise InputError(f"{path}: a mapping of settings is wanted, such as 'listen: 127.0.0.1:7000'")
    return loaded


def _known(context: typer.Context) -> set[str]:
    return {str(parameter.name) for parameter in context.command.params} - {"config", "help"}


def _flags(known: set[str]) -> list[str]:
    return sorted(name.replace("_", "-") for name in known)
