"""Public names of time stepping: integrators, the compliant scheme, impacts, trajectories."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.integrators.events import Event
    from delassus.integrators.options import IntegratorOptions, MotionOptions, ProjectionOptions
    from delassus.integrators.simulate import simulate_motion
    from delassus.output.contacts import ContactRecord
    from delassus.output.status import MotionStatus
    from delassus.output.trajectory import Trajectory
    from delassus.step.compliant.compliant_system import CompliantSystem, compliant_system
    from delassus.step.compliant.kernel import compliant_kernel
    from delassus.step.compliant.options import (
        CompliantOptions,
        ElementOptions,
        SchemeOptions,
        ServoOptions,
        SystemForm,
        SystemOptions,
    )
    from delassus.step.compliant.step import CompliantStep, compliant_step
    from delassus.step.impacts.reflections import Reflections, reflections

__all__ = [
    "CompliantOptions",
    "CompliantStep",
    "CompliantSystem",
    "ContactRecord",
    "ElementOptions",
    "Event",
    "IntegratorOptions",
    "MotionOptions",
    "MotionStatus",
    "ProjectionOptions",
    "Reflections",
    "SchemeOptions",
    "ServoOptions",
    "SystemForm",
    "SystemOptions",
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
            "integrators.options": "IntegratorOptions MotionOptions ProjectionOptions",
            "integrators.simulate": "simulate_motion",
            "integrators.events": "Event",
            "output.status": "MotionStatus",
            "output.contacts": "ContactRecord",
            "output.trajectory": "Trajectory",
            "step.compliant.compliant_system": "CompliantSystem compliant_system",
            "step.compliant.kernel": "compliant_kernel",
            "step.compliant.step": "CompliantStep compliant_step",
            "step.impacts.reflections": "Reflections reflections",
            "step.compliant.options": "CompliantOptions ElementOptions SchemeOptions ServoOptions SystemForm "
            "SystemOptions",
        },
    )
