"""`/check`: which headers of a request are which dimensions, and the domain it asks of. Pure.

A proxy asks this way for every request: nginx `auth_request`, Traefik's forward-auth, HAProxy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apportion.core.errors import InputError
from apportion.core.request import Descriptor

DOMAIN_HEADER = "X-Apportion-Domain"
"""Names the domain, unless the edge was started with one."""

MAPPINGS_MAX = 64
"""Headers of one mapping; a request has few more."""

NAME_MAX = 256
"""Characters of a dimension's or a header's name."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")

GetAll = Callable[[str], Sequence[str]]
"""The values of a header by its name, in any case; none when it is absent."""


@dataclass(frozen=True, slots=True)
class CheckMapping:
    """Pairs of a dimension and the header that holds its value. `domain` None: the request's header says it."""

    headers: tuple[tuple[str, str], ...] = ()
    domain: str | None = None

    def read(self, get_all: GetAll) -> tuple[str, Descriptor]:
        """The domain and descriptor of a request. A dimension whose header is absent is absent; "" is a value.

        InputError names the header that is wrong, or says that no header is mapped: a check of nothing would pass all.
        """
        if not self.headers:
            raise InputError(
                "no header is mapped to a dimension here, so /check could refuse nobody; start the edge with "
                "--check-headers tenant=X-Tenant,api=X-Api"
            )
        dimensions = {}
        for dimension, header in self.headers:
            value = _single(get_all, header)
            if value is not None:
                dimensions[dimension] = value
        domain = self.domain if self.domain is not None else _single(get_all, DOMAIN_HEADER) or ""
        return domain, Descriptor(dimensions)


def parse_mapping(text: str) -> tuple[tuple[str, str], ...]:
    """`tenant=X-Tenant,api=X-Api` as pairs. InputError names the part that is wrong."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        dimension, equals, header = (each.strip() for each in part.partition("="))
        if not equals or not dimension or not _TOKEN.match(header) or not dimension.isprintable():
            raise InputError(f"--check-headers: {part.strip()!r} is not DIMENSION=HEADER, such as tenant=X-Tenant")
        if len(dimension) > NAME_MAX or len(header) > NAME_MAX:
            raise InputError(f"--check-headers: a name has more than {NAME_MAX} characters: {part.strip()[:40]!r}...")
        if dimension in pairs:
            raise InputError(f"--check-headers: dimension {dimension!r} is given twice; it has one header")
        pairs[dimension] = header
    if len(pairs) > MAPPINGS_MAX:
        raise InputError(f"--check-headers has {len(pairs)} pairs, the most is {MAPPINGS_MAX}")
    return tuple(pairs.items())


def _single(get_all: GetAll, header: str) -> str | None:
    """The one value of a header, None when it is absent."""
    values = get_all(header)
    if not values:
        return None
    if len(values) > 1:
        raise InputError(f"header {header} comes {len(values)} times, and a dimension has one value")
    value = values[0]
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError(f"header {header} is not UTF-8 text")
    return value
