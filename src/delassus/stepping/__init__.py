"""Time stepping: motions of robots by integrators, the compliant scheme from soft to rigid, and impacts."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.stepping.compliant.compliant_system import CompliantSystem, compliant_system
    from delassus.stepping.compliant.kernel import compliant_kernel
    from delassus.stepping.compliant.step import CompliantStep, compliant_step
    from delassus.stepping.impacts.reflections import Reflections, reflections
    from delassus.stepping.integrators.simulate import simulate_motion
    from delassus.stepping.integrators.written import Event
    from delassus.stepping.status import MotionStatus
    from delassus.stepping.trajectories.contacts import ContactRecord
    from delassus.stepping.trajectories.trajectory import Trajectory

__all__ = [
    "CompliantStep",
    "CompliantSystem",
    "ContactRecord",
    "Event",
    "MotionStatus",
    "Reflections",
    "Trajectory",
    "compliant_kernel",
    "compliant_step",
    "compliant_system",
    "reflections",
    "simulate_motion",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "stepping.integrators.simulate": "simulate_motion",
            "stepping.integrators.written": "Event",
            "stepping.status": "MotionStatus",
            "stepping.trajectories.contacts": "ContactRecord",
            "stepping.trajectories.trajectory": "Trajectory",
            "stepping.compliant.compliant_system": "CompliantSystem compliant_system",
            "stepping.compliant.kernel": "compliant_kernel",
            "stepping.compliant.step": "CompliantStep compliant_step",
            "stepping.impacts.reflections": "Reflections reflections",
        },
    )
