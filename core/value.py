"""Plain values that are made on the way of a request or a message. Pure.

A frozen dataclass takes four times as long to make as one that is not, since it sets each field through a function.
That nobody changes a value is checked by mypy here, before the program runs, and not again for each value that is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """A slotted dataclass that is compared and hashed by its fields, which nobody may assign."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
