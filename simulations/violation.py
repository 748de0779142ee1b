"""One thing that is wrong with a run, in words."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """`property`: of algorithms 6, such as `S1`. `rule` is empty and `epoch` None where it concerns none."""

    property: str
    rule: str
    key: tuple[str, ...]
    epoch: int | None
    said: str

    def __str__(self) -> str:
        of = f" {self.rule}" if self.rule else ""
        of += f" {', '.join(self.key)}" if self.key else ""
        label = f" in epoch {self.epoch}" if self.epoch is not None else ""
        return f"{self.property}{of}{label}: {self.said}"
