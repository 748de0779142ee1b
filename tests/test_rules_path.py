"""Rules files are read from a file or a folder, and what cannot be read is said, never raised as something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apportion.core.errors import InputError, RulesError
from apportion.core.rules_file import digest_of
from apportion.rules_path import load_rules, read_rule_texts

RULES = (
    'version: 1\ndomain: api\nrules:\n  - {name: NAME, match: {NAME: "*"}, key: [], limit: {rate: 1/s}, '
    "enforce: region, when_unavailable: [deny]}\n"
)


def test_a_folder_gives_its_rules_files_by_name(tmp_path: Path) -> None:
    """*.yaml and *.yml, nothing else, and nothing that an editor hides there."""
    for name in ("b.yml", "a.yaml", ".a.yaml", "notes.txt"):
        (tmp_path / name).write_text(RULES.replace("NAME", name[0]))
    assert [name for name, _ in read_rule_texts(tmp_path)] == ["a.yaml", "b.yml"]
    assert sorted(rule.name for rule in load_rules(tmp_path).domains["api"].rules) == ["a", "b"]


def test_copies_in_two_places_have_one_digest(tmp_path: Path) -> None:
    """A name has no folder, so that replicas agree wherever their files lie."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "api.yaml").write_text(RULES)
    texts = read_rule_texts(str(tmp_path / "one" / "api.yaml"))
    assert load_rules(tmp_path / "two").digest == load_rules(tmp_path / "one").digest == digest_of(texts)


@pytest.mark.parametrize(
    "name,said",
    [
        ("nowhere.yaml", "there is no such file or folder"),
        ("empty", "the folder has no *.yaml or *.yml"),
        ("nul\0", "there is no such file or folder"),
        ("n" * 5_000, "cannot be read: "),
    ],
)
def test_a_path_without_rules_is_said(tmp_path: Path, name: str, said: str) -> None:
    """With the fix, as an InputError."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=said.replace("*", "\\*")):
        load_rules(tmp_path / name)


def test_files_that_are_no_text_are_all_in_one_report(tmp_path: Path) -> None:
    """A byte that is not UTF-8 names its line."""
    (tmp_path / "a.yaml").write_bytes(b"version: 1\ndomain: caf\xe9\n")
    (tmp_path / "b.yaml").mkdir()
    (tmp_path / "c.yaml").symlink_to("nowhere")
    os.mkfifo(tmp_path / "d.yaml")
    with pytest.raises(RulesError) as refused:
        load_rules(tmp_path)
    assert [str(problem) for problem in refused.value.problems] == [
        "a.yaml:2: found the byte 0xe9 at offset 22, which is not UTF-8; save the file as UTF-8",
        "b.yaml:1: is no file; a rules file is plain text",
        "c.yaml:1: is no file; a rules file is plain text",
        "d.yaml:1: is no file; a rules file is plain text",
    ]
