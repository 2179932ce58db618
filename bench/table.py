"""The table of `make bench`: a line a figure, printed as it comes, and which aims were missed."""

from __future__ import annotations

from attrs import define
from measure import Ratio


@define
class Table:
    """The figures, printed as they come; `aims` says whether they are compared with the aims."""

    aims: bool
    missed: int = 0

    def head(self, text: str) -> None:
        """Begin a part of the table."""
        print(f"\n{text}")
        print(f"  {'':<36}{'ratio':>8}  {'least..most':<15}{'against':<28}{'aim':>7}")

    def ratio(self, what: str, found: Ratio, against: str, aim: float | None = None) -> None:
        """Print one ratio, and the peak of memory where there was one."""
        spread = f"{found.least:.2f}..{found.most:.2f}"
        self._line(what, (f"{found.median:.2f}", spread, against), found.median, aim)

    def memory(self, what: str, peak_mb: float, aim: float) -> None:
        """Print a peak of memory."""
        self._line(what, (f"{peak_mb:.0f} MB", "", ""), peak_mb, aim)

    def note(self, what: str, figure: str) -> None:
        """Print a figure that has no aim."""
        self._line(what, (figure, "", ""), 0.0, None)

    def _line(
        self, what: str, cells: tuple[str, str, str], value: float, aim: float | None
    ) -> None:
        figure, spread, against = cells
        aim = aim if self.aims else None
        goal = "" if aim is None else f"<= {aim:g}"
        missed = aim is not None and value > aim
        self.missed += missed
        line = f"  {what:<36}{figure:>8}  {spread:<15}{against:<28}{goal:>7}"
        print(f"{line}  missed" if missed else line.rstrip(), flush=True)
