"""Reading the fields of one mapping of the rules file: by name, of a kind, within bounds, every problem reported.

A reader returns None both for a field that is absent and for one it reported; `has` tells them apart. Nothing here
knows what a field means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from apportion.core.document import ListNode, MappingNode, Node, Problem, Scalar, kind_of
from apportion.core.quantities import parse_count, shown
from apportion.core.rule import Place
from apportion.core.rules_vocabulary import not_built, unknown

T = TypeVar("T")

FIELDS_MAX = 64
"""Fields of one section; no section has so many names, and looking for the nearest one of each takes time."""


class Section:
    """The fields of one mapping at `path` of `file`. When made, reports fields that are unknown or not built yet."""

    __slots__ = ("_fields", "_keys", "file", "line", "path", "problems")

    def __init__(
        self,
        file: str,
        path: str,
        node: MappingNode,
        known: tuple[str, ...],
        later: tuple[str, ...],
        problems: list[Problem],
    ) -> None:
        self.file = file
        self.path = path
        self.line = node.line
        self.problems = problems
        self._fields = {key.text: value for key, value in node.entries}
        self._keys = {key.text: key for key, _ in node.entries}
        if len(self._fields) > FIELDS_MAX:
            self.refuse(None, f"has {len(self._fields)} fields, known here: {', '.join(known)}")
            return
        for name in self._fields:
            if name in later:
                self.refuse(name, not_built(shown(name)))
            elif name not in known:
                self.refuse(name, unknown(name, known, later))

    def has(self, name: str) -> bool:
        """Whether the field is written, right or wrong."""
        return name in self._fields

    def place(self, name: str | None = None) -> Place:
        """Where the field stands, or the section itself."""
        if name is None or name not in self._fields:
            return Place(self.file, self.line, self._join(name))
        value = self._fields[name]
        line = value.line if isinstance(value, Scalar) and not value.nothing else self._keys[name].line
        return Place(self.file, line, self._join(name))

    def refuse(self, name: str | None, text: str) -> None:
        """Report a problem of the field, or of the section."""
        self.problems.append(Problem(self.place(name), text))

    def refuse_item(self, name: str, node: Node, text: str) -> None:
        """Report a problem of one item in the field."""
        self.problems.append(Problem(Place(self.file, node.line, self._join(name)), text))

    def node(self, name: str) -> Node | None:
        """The field as it stands."""
        return self._fields.get(name)

    def text(self, name: str, what: str) -> str | None:
        """A scalar as text; `what` says what is meant, for the message."""
        node = self._fields.get(name)
        if node is None:
            return None
        if isinstance(node, Scalar) and not node.nothing:
            return node.text
        self.refuse(name, f"found {kind_of(node)}, {what} is meant")
        return None

    def parsed(self, name: str, what: str, parse: Callable[[str], T]) -> T | None:
        """A scalar read by `parse`, whose ValueError becomes the problem."""
        text = self.text(name, what)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.refuse(name, str(error))
            return None

    def count(self, name: str, least: int, most: int) -> int | None:
        """A whole number, not in quotes, from `least` to `most`."""
        node = self._fields.get(name)
        if isinstance(node, Scalar) and node.quoted:
            self.refuse(name, f"found the text {shown(node.text)}, a number is meant; write it without quotes")
            return None
        number = self.parsed(name, "a whole number", parse_count)
        if number is not None and not least <= number <= most:
            self.refuse(name, f"found {number}, a number from {least} to {most} is meant")
            return None
        return number

    def boolean(self, name: str) -> bool | None:
        """`true` or `false`, not in quotes; YAML's other spellings are text."""
        node = self._fields.get(name)
        if node is None:
            return None
        if isinstance(node, Scalar) and not node.quoted and node.text in {"true", "false"}:
            return node.text == "true"
        self.refuse(name, f"found {kind_of(node)}, `true` or `false` is meant")
        return None

    def items(self, name: str, what: str, most: int) -> tuple[Node, ...] | None:
        """A list of at most `most` items; `what` says what is meant."""
        node = self._fields.get(name)
        if node is None:
            return None
        if not isinstance(node, ListNode):
            hint = f"; write [{node.text}]" if isinstance(node, Scalar) and node.text.isalnum() else ""
            self.refuse(name, f"found {kind_of(node)}, {what} is meant{hint}")
            return None
        if len(node.items) > most:
            self.refuse(name, f"found {len(node.items)} items, the most is {most}")
            return None
        return node.items

    def mapping(self, name: str, what: str) -> MappingNode | None:
        """A mapping; `what` says what is meant."""
        node = self._fields.get(name)
        if node is None or isinstance(node, MappingNode):
            return node
        self.refuse(name, f"found {kind_of(node)}, {what} is meant")
        return None

    def section(self, name: str, what: str, known: tuple[str, ...], later: tuple[str, ...] = ()) -> Section | None:
        """A mapping with fields of its own."""
        node = self.mapping(name, what)
        if node is None:
            return None
        return Section(self.file, self._join(name), node, known, later, self.problems)

    def _join(self, name: str | None) -> str:
        return ".".join(part for part in (self.path, name or "") if part)
