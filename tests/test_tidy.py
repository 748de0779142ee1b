"""House rules that no linter knows: sizes, names, and nothing in a file that is true of one machine only."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.checkout import ROOT, files, python_files

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
BANNED_NAMES = re.compile(r"(.*_)?(utils?|helpers?|managers?|base)")

# Spelt in two parts, so that this file holds none of them.
REGISTRY_HOSTS = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "crates" + ".io",
    "npmjs" + ".org",
    "npmjs" + ".com",
    "yarnpkg" + ".com",
    "golang" + ".org/proxy",
    "proxy." + "golang.org",
    "maven" + ".org",
    "debian" + ".org",
]
REGISTRY_OPTIONS = ["--index" + "-url", "--extra-index" + "-url", "--find" + "-links"]
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home|Users)\b")


def texts() -> Iterator[tuple[str, str]]:
    """Every text file that is or would be committed, with its content."""
    for path in files():
        if not (ROOT / path).is_symlink():
            content = (ROOT / path).read_bytes()
            if b"\0" not in content:
                yield str(path), content.decode()


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function's name and its number of lines, docstring included and decorators not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_no_file_is_too_long() -> None:
    """Aim for 100 to 250 lines; 400 is hard."""
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in python_files()}
    assert {path: count for path, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_no_function_is_too_long() -> None:
    """Aim for under 30 lines; 70 is hard."""
    long = {
        f"{path}: {name}": count
        for path in python_files()
        for name, count in functions((ROOT / path).read_text())
        if count > FUNCTION_LINES_MAX
    }
    assert long == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    """A module is named for what it holds."""
    names = {part.removesuffix(".py") for path in python_files() for part in path.parts}
    assert sorted(name for name in names if BANNED_NAMES.fullmatch(name)) == []


@pytest.mark.parametrize("word", [*REGISTRY_HOSTS, *REGISTRY_OPTIONS])
def test_no_file_names_a_registry(word: str) -> None:
    """Where packages come from is the business of the machine that installs them."""
    assert [path for path, text in texts() if word in text] == []


def test_no_file_names_a_place_on_one_machine() -> None:
    """A path that exists on its author's machine only is a mistake wherever else it is read."""
    assert [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ] == []
