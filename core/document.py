"""A YAML text as a tree of scalars, lists and mappings that know their lines. Knows nothing of rules.

Far less than YAML, on purpose: scalars stay the text that was written (`NO` is NO, `1.0` is 1.0), and whatever could
make two readers see two different files is refused: anchors, aliases, tags, merge keys, duplicate keys, a second
document. The tree is built from the parser's events with a stack of our own, so no text can exhaust Python's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import yaml

from apportion.core.quantities import shown
from apportion.core.rule import Place

CHARACTERS_MAX = 4 * 2**20
"""Of one file: 10,000 rules of the usual length fit twice."""

DEPTH_MAX = 16
"""Of nesting; the deepest field of design 4 lies at 6."""

NODES_MAX = 500_000
"""Of scalars, lists and mappings in one file."""

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_Loader: type[yaml.SafeLoader | yaml.CSafeLoader]
# libyaml reads about ten times faster; both give the same events.
_Loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file: where, and what was found and what is right."""

    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text as it was written. `quoted`: in quotes or as a block, so that it can only mean text."""

    text: str
    line: int
    quoted: bool = False

    @property
    def nothing(self) -> bool:
        """Whether nothing was written at all, as after `limit:` at the end of a line."""
        return not self.text and not self.quoted


@dataclass(frozen=True, slots=True)
class ListNode:
    """A YAML sequence."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A YAML mapping: keys are scalars, each once, in the order of the file."""

    entries: tuple[tuple[Scalar, Node], ...]
    line: int


Node = Scalar | ListNode | MappingNode


def kind_of(node: Node) -> str:
    """What a node is, for a message."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    return "nothing" if node.nothing else shown(node.text)


def read_document(file: str, text: str, problems: list[Problem]) -> Node | None:
    """The one document of `text`, or None when it cannot be read; what is wrong is appended to `problems`."""
    if len(text) > CHARACTERS_MAX:
        problems.append(
            Problem(Place(file, 1), f"the file has {len(text)} characters, the most is {CHARACTERS_MAX}; divide it")
        )
        return None
    if forbidden := _FORBIDDEN.search(text):
        line = text.count("\n", 0, forbidden.start()) + 1
        found = f"U+{ord(forbidden.group()):04X}"
        problems.append(
            Problem(Place(file, line), f"found the control character {found}; a rules file is plain text, in UTF-8")
        )
        return None
    builder = _Builder(file, problems)
    try:
        _build(builder, text)
    except yaml.YAMLError as error:
        problems.append(_syntax_problem(file, text, error))
        return None
    except (ValueError, OverflowError) as error:  # an escape that is no character, in the reader written in Python
        problems.append(Problem(Place(file, builder.line), f"not valid YAML: {error}"))
        return None
    if builder.stopped:
        return None
    if builder.root is None and not builder.documents:
        problems.append(Problem(Place(file, 1), "the file is empty; it needs at least version, domain and rules"))
    return builder.root


def _build(builder: _Builder, text: str) -> None:
    loader = _Loader(text)
    try:
        while not builder.stopped and loader.check_event():
            event = loader.get_event()
            assert event is not None
            builder.take(event)
    finally:
        loader.dispose()


def _syntax_problem(file: str, text: str, error: yaml.YAMLError) -> Problem:
    """What the YAML parser says, with the line, and a hint where people usually stumble."""
    opened = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None) or opened
    lines = text.splitlines() or [""]
    line = min(mark.line + 1, len(lines)) if mark else 1  # the parser's last line may be one that nobody wrote
    written = lines[line - 1]
    context = str(getattr(error, "context", None) or "")
    what = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read")
    said = ", ".join(part for part in (context, what) if part)
    begun = f" (begun in line {opened.line + 1})" if opened and opened.line + 1 < line else ""
    hint = ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        hint = "; indent with spaces, YAML allows no tabs"
    elif "alias" in context:
        hint = '; a `*` needs quotes: "*"'
    elif line >= len(lines):
        hint = "; does the file end too early?"
    return Problem(Place(file, line), f"not valid YAML: {said}{begun}{hint}")


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end was not read yet."""

    line: int
    is_mapping: bool
    items: list[Node] = field(default_factory=list)
    entries: list[tuple[Scalar, Node]] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)  # key -> its first line
    key: Scalar | None = None
    dropped: bool = False  # whether the problem of `key` was reported, so that its value is left out


class _Builder:
    """Takes events, builds the tree. `stopped`: a bound was passed, reading on would help nobody."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        self.stack: list[_Open] = []
        self.root: Node | None = None
        self.documents = 0
        self.nodes = 0
        self.line = 1
        self.stopped = False

    def take(self, event: yaml.Event) -> None:
        """One event of the parser, in its order."""
        self.line = event.start_mark.line + 1 if event.start_mark else self.line
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                self.stop("a second document begins here (`---`); one file is one document")
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self.close()
        elif isinstance(event, yaml.AliasEvent):
            self.problem(
                f"the alias {shown(f'*{event.anchor}')} is not read in a rules file; write the value out, or quote it"
            )
            self.add(Scalar("", self.line, quoted=True))
        elif isinstance(event, yaml.NodeEvent):
            self.check(event)
            if isinstance(event, yaml.ScalarEvent):
                self.add(Scalar(event.value, self.line, quoted=event.style is not None and event.style != ""))
            else:
                self.open(isinstance(event, yaml.MappingStartEvent))

    def check(self, event: yaml.NodeEvent) -> None:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            self.stop(f"more than {NODES_MAX} values; divide the file")
        if event.anchor is not None:
            self.problem(f"the anchor {shown(f'&{event.anchor}')} is not read in a rules file; leave it out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self.problem(f"the tag {shown(str(tag))} is not read in a rules file; leave it out")
        if isinstance(event, yaml.ScalarEvent) and _SURROGATE.search(event.value):
            self.problem("a half of a surrogate pair is no character; write the character itself")

    def open(self, is_mapping: bool) -> None:
        if self.stack and self.stack[-1].is_mapping and self.stack[-1].key is None:
            self.stop("a key is a list or a mapping; keys are plain words")
            return
        if len(self.stack) >= DEPTH_MAX:
            self.stop(f"nested more than {DEPTH_MAX} deep")
            return
        self.stack.append(_Open(self.line, is_mapping))

    def close(self) -> None:
        done = self.stack.pop()
        self.add(
            MappingNode(tuple(done.entries), done.line) if done.is_mapping else ListNode(tuple(done.items), done.line)
        )

    def add(self, node: Node) -> None:
        """Put a finished node where it belongs: the root, a list, or a mapping's next key or value."""
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if not top.is_mapping:
            top.items.append(node)
        elif top.key is None:
            assert isinstance(node, Scalar), "open() lets no other kind of key in"
            top.key = node
            self.check_key(top, node)
        else:
            if not top.dropped:
                top.entries.append((top.key, node))
            top.key = None

    def check_key(self, top: _Open, key: Scalar) -> None:
        """A key that was there before, or that YAML would treat as something else than a name."""
        top.dropped = key.text in top.lines
        top.lines.setdefault(key.text, key.line)
        if top.dropped:
            self.problem(f"the key {shown(key.text)} is here twice, first in line {top.lines[key.text]}; keep one")
        elif key.text == "<<" and not key.quoted:
            top.dropped = True
            self.problem("the merge key `<<` is not read in a rules file; write the fields out")
        elif key.nothing:
            top.dropped = True
            self.problem("a key is missing in front of the `:`")

    def path(self) -> str:
        """The keys and indexes that lead to what is being read."""
        parts = []
        for level in self.stack:
            if level.is_mapping:
                parts.append(f".{level.key.text}" if level.key else "")
            else:
                parts.append(f"[{len(level.items)}]")
        return "".join(parts).removeprefix(".")

    def problem(self, text: str) -> None:
        self.problems.append(Problem(Place(self.file, self.line, self.path()), text))

    def stop(self, text: str) -> None:
        self.problem(text)
        self.stopped = True
