"""Event location inside a step: regula falsi with the Illinois weights, safeguarded by bisection.

The event functions are evaluated at the ends of real integration steps; every third trial is a bisection. If several
functions change sign, the search finds the first zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.integrators.events import Event

_CLOSE: Final = 1e-13
"""Width of the final interval, relative to one second or to the time, whichever is larger."""


def crossing(events: Sequence[Event], before: Any, after: Any) -> Any:
    """Whether each event function (nevents,) changes sign between two values."""
    rising = numpy.array([event.direction >= 0 for event in events])
    falling = numpy.array([event.direction <= 0 for event in events])
    up, down = (before < 0.0) & (after >= 0.0), (before > 0.0) & (after <= 0.0)
    return (up & rising) | (down & falling)


class Search(NamedTuple):
    """An interval [low, high] [s] of step lengths: no event at its lower end, an event at its upper end; with the event
    functions at both, and the state at the upper end.

    `on` and `found` are booleans: whether a search is active, and whether it has ended.
    """

    on: Any
    found: Any
    low: Any
    high: Any
    at_low: Any
    at_high: Any
    after: Any
    q: Any
    v: Any
    close: Any
    side: Any
    count: Any

    @classmethod
    def inactive(cls, nq: int, nv: int, count: int) -> Search:
        """The state without a search."""
        no, zero, values = np.array(False), np.array(0.0), np.zeros(count)
        return cls(no, no, zero, zero, values, values, values, np.zeros(nq), np.zeros(nv), zero, zero, zero)

    def trial(self) -> Any:
        """The next step [s] to try."""
        crosses = (self.at_low != 0.0) & (self.at_low * self.at_high <= 0.0)
        share = np.where(crosses, self.at_low / np.where(crosses, self.at_low - self.at_high, 1.0), 1.0)
        bisect = self.count - 3.0 * np.floor(self.count / 3.0) > 1.5
        share = np.where(bisect, 0.5, np.min(share))
        guess = self.low + share * (self.high - self.low)
        return np.minimum(np.maximum(guess, self.low + self.close), self.high - self.close)

    def with_step(
        self, valid: Any, h: Any, before: Any, after: Any, q: Any, v: Any, events: Sequence[Event], time: Any
    ) -> Search:
        """After a step of h [s]: start a search, narrow it, or leave it inactive."""
        happens = valid & np.any(crossing(events, before, after))
        begins = happens & ~self.on
        down, up = (happens | begins), self.on & ~happens  # lowers the upper end, or raises the lower one
        again = self.side * np.where(down, 1.0, -1.0) > 0.5  # the same end as before
        at_low = np.where(begins, before, np.where(up, after, np.where(down & again, 0.5 * self.at_low, self.at_low)))
        at_high = np.where(down, after, np.where(up & again, 0.5 * self.at_high, self.at_high))
        low = np.where(begins, 0.0, np.where(up, h, self.low))
        high = np.where(down, h, self.high)
        on = self.on | begins
        close = _CLOSE * np.maximum(1.0, np.abs(time))
        return Search(
            on,
            on & (high - low <= 2.5 * close),
            low,
            high,
            at_low,
            at_high,
            np.where(down, after, self.after),
            np.where(down, q, self.q),
            np.where(down, v, self.v),
            close,
            np.where(down, 1.0, -1.0),
            np.where(begins, 0.0, self.count + 1.0),
        )

    def unless(self, is_over: Any) -> Search:
        """The search, deactivated where the motion has ended."""
        return self._replace(on=self.on & ~is_over, found=self.found & ~is_over)
