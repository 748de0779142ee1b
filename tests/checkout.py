"""What the checkout holds, for the tests that are about the checkout itself."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "apportion"


@cache
def files() -> tuple[Path, ...]:
    """Every file that is or would be committed, relative to the root; links too."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = sorted({Path(name) for name in listed.split("\0") if name})
    return tuple(path for path in paths if (ROOT / path).exists() or (ROOT / path).is_symlink())


def is_generated(path: Path) -> bool:
    """Whether protoc or mypy-protobuf wrote this file."""
    return path.parts[0] == "proto" and "_pb2" in path.name


def python_files() -> list[Path]:
    """Every Python file and stub that a person wrote, relative to the root."""
    return [
        path
        for path in files()
        if path.suffix in {".py", ".pyi"} and not (ROOT / path).is_symlink() and not is_generated(path)
    ]
