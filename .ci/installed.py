"""Check an installed apportion against a checkout: every file is there, every module imports."""

import ast
import importlib
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path


def expected_files(tree: Path) -> list[Path]:
    """The package's files as they should be installed, relative to the package."""
    setup = ast.parse((tree / "setup.py").read_text())
    folders = next(
        ast.literal_eval(node.value)
        for node in setup.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FOLDERS"
    )
    package = tree / "src" / "apportion"
    found = [path.relative_to(tree) for folder in folders for path in (tree / folder).rglob("*")]
    own = [*package.glob("*.*"), *(package / "commands").rglob("*")]
    found += [path.relative_to(package) for path in own]
    return sorted(path for path in found if (tree / path).is_file() or (package / path).is_file())


def main() -> int:
    """Print what is missing or broken; return the exit code."""
    tree = Path(sys.argv[1])
    spec = find_spec("apportion")
    assert spec is not None and spec.origin is not None, "apportion is not installed"
    home = Path(spec.origin).parent
    assert tree.parent / "venv" in home.parents, f"apportion is imported from {home}"
    problems: list[str] = []
    modules: list[str] = []
    for file in expected_files(tree):
        if not (home / file).is_file():
            problems.append(f"{file}: not in the wheel (see package-data in pyproject.toml, and setup.py)")
        elif file.suffix == ".py" and file.name != "__main__.py":
            modules.append(".".join(("apportion", *file.with_suffix("").parts)).removesuffix(".__init__"))
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001  each module's own failure is reported
            problems.append(f"{module}: {type(error).__name__}: {error}")
    [script] = entry_points(group="console_scripts", name="apportion")
    if not hasattr(importlib.import_module(script.module), script.attr):
        problems.append(f"console script: {script.value} is not there")
    print("\n".join(problems) or f"{len(modules)} modules of the wheel import")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
