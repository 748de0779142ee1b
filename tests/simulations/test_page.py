"""The page of a run: well formed, complete, escaped, and in need of nothing beside itself."""

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

from apportion.simulations import library
from apportion.simulations.page import page
from apportion.simulations.pictures import picture
from apportion.simulations.run import Outcome, run
from apportion.simulations.series import series_of

NASTY = '<script src="http://evil/">alert(1)</script>&amp; "quoted"'
EMPTY = {"meta"}
REFERRING = {"href", "xlink:href", "src", "srcset", "data", "action", "poster", "background"}
NAMES_OF_XML = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
"""Names, which nothing fetches."""


class Reader(HTMLParser):
    """Elements that are open, every element, every reference to something, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.references: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag not in EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            self.references += re.findall(r"url\(([^)]*)\)", value or "")
            if name in REFERRING or ("://" in (value or "") and value not in NAMES_OF_XML):
                self.references.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def outcome() -> Outcome:
    """A run with a fault, whose scenario says of itself what nobody should."""
    scenario = replace(library.load("limit-change"), seconds=18, warm_up=5, about=NASTY)
    return run(scenario, 7)


def read(broken: tuple[str, ...] = ()) -> tuple[str, Reader]:
    """The page of that run, read by a parser."""
    one = replace(outcome(), broken=broken)
    svg = picture([series_of(one)], "svg").decode()
    text = page([one], svg, {NASTY: f"about: {NASTY}"}, f"apportion simulate '{NASTY}'", (), [NASTY])
    reader = Reader()
    reader.feed(text)
    reader.close()
    return text, reader


def test_a_page_needs_nothing_beside_itself() -> None:
    """Every element is closed; what is referred to is in the page; no script, no import."""
    text, reader = read()
    assert reader.open == []
    assert reader.references
    assert [each for each in reader.references if not each.startswith(("#", "data:image/png;base64,"))] == []
    assert not {"script", "link", "iframe", "object", "embed", "img"} & set(reader.elements)
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\s\"'<&]+", text.replace("http://evil/", ""))) == NAMES_OF_XML


def test_a_page_says_what_was_run() -> None:
    """Figures, the bound in words, pictures, the scenario, the command."""
    _, reader = read()
    figures = outcome().rules[0]
    for words in (
        "limit-change",
        "Every bound and expectation held.",
        f"{figures.offered:,}",
        f"{figures.admitted:,}",
        f"over_limit {figures.denied['over_limit']:,}",
        "By label: over by at most 0, whatever fails.",
        "limit 200/s",
    ):
        assert words in reader.text, words
    assert "svg" in reader.elements


def test_what_a_person_wrote_is_text() -> None:
    """About, note, name and text of the scenario, and the command: none of it is markup."""
    _, reader = read()
    assert reader.text.count(NASTY) == 5


def test_what_did_not_hold_is_said_first() -> None:
    """In words, and nothing says that all held."""
    _, reader = read(broken=("search: over by 9 by label, the bound is 0",))
    assert "Not as promised: limit-change, seed 7: search: over by 9 by label, the bound is 0" in reader.text
    assert "Every bound and expectation held." not in reader.text
