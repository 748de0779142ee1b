"""The top-level folders, the links in src/apportion and the map in setup.py name the same packages."""

import ast
import tomllib

from tests.checkout import PACKAGE, ROOT, files

NOT_PACKAGES = {"src", "tests", "bench", "docs", "deploy", "native"}


def mapped_folders() -> list[str]:
    """FOLDERS of setup.py."""
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FOLDERS":
            folders = ast.literal_eval(node.value)
            assert isinstance(folders, tuple)
            return list(folders)
    raise AssertionError("setup.py has no FOLDERS")


def test_every_package_folder_is_in_the_map() -> None:
    """A folder at the top with Python files is installed, unless it is known not to be a package."""
    folders = {path.parts[0] for path in files() if len(path.parts) > 1 and path.suffix == ".py"}
    packages = {folder for folder in folders if not folder.startswith(".")} - NOT_PACKAGES
    assert packages == set(mapped_folders())


def test_every_package_folder_has_its_link() -> None:
    """The tools (mypy, import-linter, protoc) see each folder as a package through a relative link."""
    links = {path.name: str(path.readlink()) for path in PACKAGE.iterdir() if path.is_symlink()}
    assert links == {folder: f"../../{folder}" for folder in mapped_folders()}


def test_the_package_itself_has_no_folder_but_commands() -> None:
    """Beside the public names and the commands it holds single modules that all processes share, nothing deeper."""
    inside = [path.parts[2:] for path in files() if path.parts[:2] == ("src", "apportion")]
    assert {parts[0] for parts in inside if len(parts) > 1} == {"commands"}
    assert {"__init__.py", "py.typed"} <= {parts[0] for parts in inside}


def test_every_folder_with_modules_is_a_package() -> None:
    """A folder without __init__.py would be missing from the wheel, and an editable install would hide it."""
    tops = {*mapped_folders(), "src"}
    modules = [path for path in files() if path.parts[0] in tops and path.suffix in {".py", ".pyi", ".lua"}]
    folders = {path.parent for path in modules}
    without = sorted(str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file())
    assert without == []


def test_no_folder_can_be_imported_by_its_short_name() -> None:
    """`import edge` would load a second copy of apportion.edge; ruff bans the short name of every folder."""
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    banned = ruff["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(mapped_folders()) <= set(banned)
