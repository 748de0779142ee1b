"""The allocator's links to region replicas: what each peer said of itself, and what is still to be answered on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from apportion.allocator.names import Declared, Heard
from apportion.allocator.planning import Attached
from apportion.core.allocator_messages import Claim, Governance, Lead
from apportion.core.messages import Rules


class Link:
    """One connection. `governance` and `rules` are the latest word of the replica, None before the first."""

    __slots__ = ("declared", "governance", "heard", "number", "outstanding", "rules")

    def __init__(self, number: int) -> None:
        self.number = number
        self.declared = Declared()
        self.heard = Heard()
        self.governance: Governance | None = None
        self.rules: Rules | None = None
        self.outstanding: deque[Lead | Claim] = deque()  # answers come in the order of the questions


class Links:
    """All open links, by number."""

    def __init__(self) -> None:
        self._links: dict[int, Link] = {}
        self._ran_before: set[int] = set()

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links.values())

    def __getitem__(self, number: int) -> Link:
        return self._links[number]

    def add(self, number: int) -> Link:
        """A link that has just opened."""
        assert number not in self._links, "a link opens once"
        self._links[number] = Link(number)
        return self._links[number]

    def remove(self, number: int) -> None:
        """A link that is gone."""
        del self._links[number]

    def govern(self, link: Link, governance: Governance) -> None:
        """Take the word of the replica behind `link`."""
        if link.governance is None:
            self._ran_before.update(holder.incarnation for holder in governance.holders if not holder.replica)
        link.governance = governance

    def governed(self) -> list[Link]:
        """The links whose replica has spoken."""
        return [link for link in self if link.governance is not None]

    def next_after(self, number: int | None) -> Link | None:
        """The governed link to ask next when `number` was asked last, so that one dumb replica does not stop us."""
        governed = sorted(self.governed(), key=lambda link: link.number)
        if not governed:
            return None
        return next((link for link in governed if number is not None and link.number > number), governed[0])

    def attached(self) -> Attached:
        """Who is attached now, over all links; what a replica says of its own edges counts before hearsay."""
        edges: dict[int, int] = {}
        replicas: set[int] = set()
        for link in self.governed():
            assert link.governance is not None
            replicas.add(link.governance.replica)
            replicas.update(holder.incarnation for holder in link.governance.holders if holder.replica)
            for holder in link.governance.holders:
                if not holder.replica:
                    edges[holder.incarnation] = link.governance.replica
        return Attached(edges, tuple(sorted(replicas)))

    def ran_before(self, edge: int) -> bool:
        """Whether `edge` was attached already when a link of ours came up, so that its past is unknown here."""
        return edge in self._ran_before

    def forget_edges(self, attached: Mapping[int, int]) -> None:
        """Forget what is known of edges that are not attached any more."""
        self._ran_before.intersection_update(attached)
