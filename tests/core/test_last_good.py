"""A bad rules file keeps its own last good text, the others go on."""

import pytest

from apportion.core.errors import RulesError
from apportion.core.last_good import Merged, Texts, merge
from apportion.core.rules_file import parse_rules


def text(name: str, rate: int = 10, dimension: str = "") -> str:
    """A file with one rule."""
    return (
        f"version: 1\ndomain: api\nrules:\n  - {{name: {name}, match: {{{dimension or name}: '*'}}, "
        f"key: [{dimension or name}], limit: {{rate: {rate}/s}}, enforce: region, when_unavailable: [deny]}}\n"
    )


BAD = "version: 1\ndomain: api\nrules:\n  - {name: a, limit: }\n"


def merged(good: Texts, wanted: Texts) -> Merged:
    """By the real parser."""
    return merge(good, wanted, parse_rules)


def test_good_files_are_taken_as_they_are() -> None:
    """Nothing is rejected, and there is no reason."""
    wanted = (("a.yaml", text("a", 20)),)
    found = merged((("a.yaml", text("a")),), wanted)
    assert (found.texts, found.rejected, found.reason) == (wanted, (), "")


def test_only_the_bad_file_is_skipped() -> None:
    """C31: its last good version stays, the other file's change is taken."""
    good = (("a.yaml", text("a")), ("b.yaml", text("b")))
    found = merged(good, (("a.yaml", BAD), ("b.yaml", text("b", 20))))
    assert found.texts == (("a.yaml", text("a")), ("b.yaml", text("b", 20)))
    assert found.rejected == ("a.yaml",)
    assert found.reason.startswith("a.yaml:4")


def test_a_new_bad_file_is_left_out() -> None:
    """It has no last good text."""
    good = (("a.yaml", text("a")),)
    found = merged(good, (*good, ("b.yaml", BAD)))
    assert (found.texts, found.rejected) == (good, ("b.yaml",))


def test_a_new_duplicate_is_left_out_whichever_name_it_has() -> None:
    """C29: the problem is told of the later name, which may be the good file; the new file is what goes."""
    good = (("m.yaml", text("m", 15, "user")),)
    for name in ("a.yaml", "z.yaml"):
        found = merged(good, (*good, (name, text("other", 300, "user"))))
        assert (found.texts, found.rejected) == (good, (name,))


def test_a_rule_moves_from_one_file_to_another_beside_a_bad_one() -> None:
    """Each step alone may not fit; together they do."""
    good = (("a.yaml", text("a")), ("b.yaml", text("b")), ("c.yaml", text("c")))
    found = merged(good, (("a.yaml", text("b")), ("b.yaml", text("a")), ("c.yaml", BAD)))
    assert found.texts == (("a.yaml", text("b")), ("b.yaml", text("a")), ("c.yaml", text("c")))
    assert found.rejected == ("c.yaml",)


def test_at_a_first_start_there_is_nothing_to_keep() -> None:
    """The one report of everything that is wrong."""
    with pytest.raises(RulesError, match=r"a\.yaml:4"):
        merged((), (("a.yaml", BAD),))
