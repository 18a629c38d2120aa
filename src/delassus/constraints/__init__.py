"""Constraints, and `Mechanism`: a model with constraints."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.constraints.basis.constraint import BodyRows, Constraint, JointRow
    from delassus.constraints.basis.function_constraint import Kinematics
    from delassus.constraints.basis.options import FramePlacements, RowResponse
    from delassus.constraints.kinds.coupling import Coupling
    from delassus.constraints.kinds.distance import Distance
    from delassus.constraints.kinds.hinge import Hinge
    from delassus.constraints.kinds.implicit import Implicit
    from delassus.constraints.kinds.joint_lock import JointLock
    from delassus.constraints.kinds.nonholonomic import Nonholonomic, Velocities
    from delassus.constraints.kinds.point import Point
    from delassus.constraints.kinds.unilateral import Unilateral, at_least, at_most
    from delassus.constraints.kinds.weld import Weld
    from delassus.constraints.mechanism.mechanism import Mechanism

__all__ = [
    "BodyRows",
    "Constraint",
    "Coupling",
    "Distance",
    "FramePlacements",
    "Hinge",
    "Implicit",
    "JointLock",
    "JointRow",
    "Kinematics",
    "Mechanism",
    "Nonholonomic",
    "Point",
    "RowResponse",
    "Unilateral",
    "Velocities",
    "Weld",
    "at_least",
    "at_most",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "constraints.basis.constraint": "BodyRows Constraint JointRow",
            "constraints.basis.options": "FramePlacements RowResponse",
            "constraints.basis.function_constraint": "Kinematics",
            "constraints.kinds.coupling": "Coupling",
            "constraints.kinds.distance": "Distance",
            "constraints.kinds.hinge": "Hinge",
            "constraints.kinds.implicit": "Implicit",
            "constraints.kinds.joint_lock": "JointLock",
            "constraints.kinds.nonholonomic": "Nonholonomic Velocities",
            "constraints.kinds.point": "Point",
            "constraints.kinds.unilateral": "Unilateral at_least at_most",
            "constraints.kinds.weld": "Weld",
            "constraints.mechanism.mechanism": "Mechanism",
        },
    )
