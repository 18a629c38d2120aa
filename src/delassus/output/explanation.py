"""`Explanation`: the description of a failure, as text that can be drawn."""

from __future__ import annotations

from typing import Any

from delassus.output.errors import NotRecorded


class Explanation(str):
    """A description of a failure, with its state and log.

    Attributes:
        period: The control period of the run in which the environment was flagged; None without a flag.
        state: State at the start of that period; None if it could not be reproduced.
        log: The periods before it; None if they could not be reproduced.
    """

    period: int | None
    state: Any
    log: Any

    def __new__(cls, text: str, period: int | None = None, state: Any = None, log: Any = None) -> Explanation:
        """Create a text with its state and log."""
        explanation = super().__new__(cls, text)
        explanation.period, explanation.state, explanation.log = period, state, log
        return explanation

    def draw(self, times: int = 4, **options: Any) -> Any:
        """Draw the environment up to the flagged period, with contact forces: see `Trajectory.draw`.

        Raises `NotRecorded` if it could not be reproduced.
        """
        if self.log is None:
            raise NotRecorded(f"there is nothing to draw: {self}")
        return self.log.draw(min(times, len(self.log)), **options)
