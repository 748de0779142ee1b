"""`apportion version`: what is installed."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as installed
from typing import Annotated

import typer


def version(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Print the version of Apportion, of Python, and of the engine in use.

    Examples:
        apportion version --json
    """
    facts = {"apportion": installed("apportion"), "python": platform.python_version(), "engine": "python"}
    print(json.dumps(facts) if as_json else "\n".join(f"{name} {value}" for name, value in facts.items()))
