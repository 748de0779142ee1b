"""The files that `apportion simulate` writes: pictures, and a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from apportion.core.errors import InputError
from apportion.simulations.measures import RuleFigures
from apportion.simulations.run import Outcome
from apportion.simulations.series import RunSeries


@dataclass(frozen=True, slots=True)
class Written:
    """Where they go; None is not asked for."""

    plot: Path | None
    html: Path | None

    @property
    def asked(self) -> bool:
        """Whether anything is to be drawn."""
        return self.plot is not None or self.html is not None

    def check(self, panels: int) -> None:
        """Before anything is run: the formats, the folders, matplotlib, and how many runs and rules are drawn.
        InputError names what is wrong.
        """
        if not self.asked:
            return
        from apportion.simulations.pictures import checked_format, require_drawable

        if self.plot is not None:
            checked_format(self.plot)
        require_drawable(panels)
        for flag, path in (("--plot", self.plot), ("--html", self.html)):
            if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
                raise InputError(f"{flag} {path}: name a file in a folder that is there")

    def write(
        self,
        outcomes: Sequence[Outcome],
        series: Sequence[RunSeries],
        texts: Mapping[str, str],
        command: str,
        others: Sequence[tuple[str, int, RuleFigures]] = (),
        notes: Sequence[str] = (),
    ) -> None:
        """Draw the runs; `texts`, `command`, `others`, `notes` as `page` has them. InputError: it cannot be written."""
        if not self.asked:
            return
        from apportion.simulations.page import page
        from apportion.simulations.pictures import checked_format, picture

        if self.plot is not None:
            _put("--plot", self.plot, picture(series, checked_format(self.plot)))
        if self.html is not None:
            svg = picture(series, "svg").decode()
            _put("--html", self.html, page(outcomes, svg, texts, command, others, notes).encode())


def _put(flag: str, path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{flag} {path}: {error.strerror}") from error
