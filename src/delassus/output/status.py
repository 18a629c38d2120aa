"""Statuses of `simulate_motion`."""

from __future__ import annotations

from delassus.errors import Sentences


class MotionStatus(Sentences):
    """Why the motion of a state ended; `sentence` describes it.

    >>> all(status.sentence for status in dl.stepping.MotionStatus)
    True
    """

    DONE = 0, "The motion was followed to the last time."
    EVENT = 1, "An event ended the motion."
    STEPS = 2, "The largest number of steps was made before the next output time; max_steps= allows more."
    STEP_SIZE = (
        3,
        "The tolerance asks for steps that are too short for the precision of time: forces may jump or blow up.",
    )
    NOT_FINITE = 4, "An input or a state is not a finite number; the motion stays at the last state that is."
    NOT_CONVERGED = 5, "The equations of an implicit step were not solved; it was made with the best iterate."
    NOT_CLOSED = 6, "No start that meets the constraints was found near the one given; the motion stays there."
    OPEN = (
        7,
        "A step led where the constraints cannot be met; the motion stays at the last state that meets them. Steps of "
        "a fixed length may have been too long: dopri5 chooses its own.",
    )
