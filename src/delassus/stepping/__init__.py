"""Time stepping: motions of robots, by integrators on the manifold of their configurations."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.stepping.integrators.simulate import simulate_motion
    from delassus.stepping.integrators.written import Event
    from delassus.stepping.status import MotionStatus
    from delassus.stepping.trajectory import Trajectory

__all__ = ["Event", "MotionStatus", "Trajectory", "simulate_motion"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "stepping.integrators.simulate": "simulate_motion",
            "stepping.integrators.written": "Event",
            "stepping.status": "MotionStatus",
            "stepping.trajectory": "Trajectory",
        },
    )
