"""YAML as a tree with lines: texts stay texts, and what two readers could read differently is refused."""

from __future__ import annotations

import pytest
import yaml

from apportion.core import document
from apportion.core.document import ListNode, MappingNode, Node, Problem, Scalar, kind_of, read_document


def read(text: str) -> tuple[Node | None, list[str]]:
    """The tree of a text, and what was reported."""
    problems: list[Problem] = []
    return read_document("f", text, problems), [str(problem) for problem in problems]


def test_a_tree_keeps_texts_and_lines() -> None:
    """Scalars are the text that was written, and each node knows its line."""
    root, problems = read("a: NO\nb:\n  - 1.0\n  - 'x'\n")
    assert problems == []
    assert root == MappingNode(
        (
            (Scalar("a", 1), Scalar("NO", 1)),
            (Scalar("b", 2), ListNode((Scalar("1.0", 3), Scalar("x", 4, quoted=True)), 3)),
        ),
        1,
    )


def test_nothing_is_not_the_empty_text() -> None:
    """`a:` says nothing, `a: ""` says the empty text."""
    root, _ = read('a:\nb: ""\n')
    assert isinstance(root, MappingNode)
    assert [(isinstance(value, Scalar) and value.nothing, kind_of(value)) for _, value in root.entries] == [
        (True, "nothing"),
        (False, "``"),
    ]


def test_every_problem_of_the_structure_is_reported() -> None:
    """The report goes on after an anchor, a tag, an alias and a key that is there twice."""
    _, problems = read("a: &x 1\nb: !!int 2\nc: *x\na: 3\n")
    assert problems == [
        "f:1: a: the anchor `&x` is not read in a rules file; leave it out",
        "f:2: b: the tag `tag:yaml.org,2002:int` is not read in a rules file; leave it out",
        "f:3: c: the alias `*x` is not read in a rules file; write the value out, or quote it",
        "f:4: a: the key `a` is here twice, first in line 1; keep one",
    ]


def test_of_a_key_that_is_there_twice_the_first_stays() -> None:
    """So that one mistake gives one problem."""
    root, _ = read("a: 1\na: 2\n")
    assert root == MappingNode(((Scalar("a", 1), Scalar("1", 1)),), 1)


@pytest.mark.parametrize("text", ["a: <<", '"<<": 1', "'*': '*'", "a: '&b'", "a: |\n  *b\n"])
def test_quotes_make_text_of_anything(text: str) -> None:
    """What is quoted, or is a value, is never an alias, an anchor or a merge."""
    assert read(text)[1] == []


@pytest.mark.parametrize(
    "text,said",
    [
        ("a: 1\n---\nb: 2\n", "f:2: a second document begins here"),
        ("a: \x07", "f:1: found the control character U+0007"),
        ("a: 1\nb: \x85", "f:2: found the control character U+0085"),
        ("a: [1,\n", "f:1: not valid YAML: while parsing a flow node"),
        ('a: "\\ud800"', "f:1: "),
        ("- " * 20 + "a", "f:1: [0][0][0]"),
    ],
)
def test_a_text_that_cannot_be_read_gives_no_tree(text: str, said: str) -> None:
    """Then nothing more is said about what would follow."""
    root, problems = read(text)
    assert root is None
    assert len(problems) == 1
    assert problems[0].startswith(said)


def test_the_number_of_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of nothing but commas takes no memory worth speaking of."""
    monkeypatch.setattr(document, "NODES_MAX", 10)
    assert read("[" + "a," * 20 + "]")[1] == ["f:1: [9]: more than 10 values; divide the file"]


@pytest.mark.parametrize(
    "text",
    [
        "a: *b",
        "a: &x [1, 'b']\nc: *x\na: 2",
        "? [a]\n: b",
        "a: [\n",
        "\tb",
        "a: b: c",
        '"\\UFFFFFFFF"',
        '"\\U00110000"',
        "---\n---\n",
    ],
)
def test_the_reader_written_in_python_agrees(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where libyaml is missing the same texts are refused in the same lines."""
    fast = read(text)
    monkeypatch.setattr(document, "_Loader", yaml.SafeLoader)
    slow = read(text)
    assert slow[0] == fast[0]
    assert [line.split(": ")[0] for line in slow[1]] == [line.split(": ")[0] for line in fast[1]]
