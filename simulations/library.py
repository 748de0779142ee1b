"""The scenarios that come with Apportion, by name, and those of files."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from apportion.core.errors import InputError
from apportion.simulations.scenario import Scenario
from apportion.simulations.scenario_file import parse_scenario

SUFFIX = ".yaml"


def names() -> tuple[str, ...]:
    """Every scenario's name, sorted."""
    folder = files("apportion.simulations.scenarios")
    return tuple(sorted(item.name.removesuffix(SUFFIX) for item in folder.iterdir() if item.name.endswith(SUFFIX)))


def text_of(name: str) -> str:
    """The text of a scenario by name. InputError names the nearest one."""
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"there is no scenario {name!r}{hint} `apportion simulate --list` lists them")
    return files("apportion.simulations.scenarios").joinpath(name + SUFFIX).read_text(encoding="utf-8")


def load(name: str) -> Scenario:
    """A scenario by name."""
    return parse_scenario(name + SUFFIX, text_of(name))


def load_file(path: Path) -> Scenario:
    """A scenario of a file. InputError when it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; name a scenario's text, as `--list` and `--show NAME` show"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    return parse_scenario(path.name, text)
