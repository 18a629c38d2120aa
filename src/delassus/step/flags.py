"""Flags of an environment in a control period, as bits of an integer."""

from __future__ import annotations

from enum import IntFlag
from typing import Any

import numpy as np


class Mark(IntFlag):
    """Flags of an environment; zero if all went well. `describe` says them in words.

    INTERRUPTED is for the last state of a log alone: Ctrl-C, or an error in a function of the user, ended the run.
    NEEDS_ITERATIONS and NEEDS_FULL_SET are seen by the host alone: the item keeps its state, and is solved again with
    more iterations, or with the full contact set.

    >>> dl.simulation.Mark.NEEDS_ITERATIONS in dl.simulation.Mark(0)
    False
    """

    FROZEN = 1
    MANY_CONTACTS = 2
    UNSOLVED = 4
    CLIPPED = 8
    TOO_LONG = 16
    ENERGY_LIMITED = 32
    INTERRUPTED = 256
    NEEDS_ITERATIONS = 1024
    NEEDS_FULL_SET = 2048


SENTENCES = {
    Mark.FROZEN: "A control, the state or the result of a step is not a finite number: the item keeps its last state.",
    Mark.MANY_CONTACTS: "More contacts or joint limits are closed than there are slots: the deepest are solved for.",
    Mark.UNSOLVED: "The contact solver ended before its tolerance was met.",
    Mark.CLIPPED: "A control or an actuator's force was clipped to its limits.",
    Mark.TOO_LONG: "A body or a joint turned too far in a step of time, even in substeps: the motion is inaccurate.",
    Mark.ENERGY_LIMITED: "Restitution was lowered where, with friction, it would have added energy.",
    Mark.INTERRUPTED: "The run was interrupted before its last control period.",
}


def describe_marks(status: Any) -> str:
    """Marks in words."""
    marks = np.asarray(status)
    found = [
        sentence if mark is Mark.INTERRUPTED else f"{sentence[:-1]}, in {count} of {marks.size}."
        for mark, sentence in SENTENCES.items()
        if (count := int(np.count_nonzero(marks & int(mark))))
    ]
    return " ".join(found) or "All went well."
