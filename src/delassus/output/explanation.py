"""`Explanation`: the description of a failure, as text that can be drawn."""

from __future__ import annotations

from typing import Any

from delassus.output.errors import NotRecorded


class Explanation(str):
    """A text, and what it is about.

    Attributes:
        period: The control period of the run in which the item was flagged; None if it was not.
        state: Of the item as that period began; None if it could not be made again.
        log: The item from some periods before until then; None if it could not be made again.
    """

    period: int | None
    state: Any
    log: Any

    def __new__(cls, text: str, period: int | None = None, state: Any = None, log: Any = None) -> Explanation:
        """A text with what it is about."""
        made = super().__new__(cls, text)
        made.period, made.state, made.log = period, state, log
        return made

    def draw(self, times: int = 4, **options: Any) -> Any:
        """Drawings of the item on its way to the period, the last as it begins, with contact forces: `Trajectory.draw`.

        Raises `NotRecorded` if it could not be made again.
        """
        if self.log is None:
            raise NotRecorded(f"there is nothing to draw: {self}")
        return self.log.draw(min(times, len(self.log)), **options)
