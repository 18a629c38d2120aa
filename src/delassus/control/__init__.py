"""Control: torques for a motion that is asked for, under constraints; tasks; linear models."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.control.inverse.actuated import Actuated
    from delassus.control.programmes.programme import QuadraticProgramme
    from delassus.control.programmes.solution import ProgrammeSolution
    from delassus.control.programmes.status import ProgrammeStatus
    from delassus.control.reactive.control import ReactiveControl
    from delassus.control.reactive.reaction import Reaction
    from delassus.control.reactive.supports import Support
    from delassus.control.reactive.tasks import (
        FollowCenterOfMass,
        FollowForce,
        FollowFrame,
        FollowMomentum,
        FollowPosture,
        Nominal,
    )

__all__ = [
    "Actuated",
    "FollowCenterOfMass",
    "FollowForce",
    "FollowFrame",
    "FollowMomentum",
    "FollowPosture",
    "Nominal",
    "ProgrammeSolution",
    "ProgrammeStatus",
    "QuadraticProgramme",
    "Reaction",
    "ReactiveControl",
    "Support",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "control.inverse.actuated": "Actuated",
            "control.programmes.programme": "QuadraticProgramme",
            "control.programmes.solution": "ProgrammeSolution",
            "control.programmes.status": "ProgrammeStatus",
            "control.reactive.control": "ReactiveControl",
            "control.reactive.reaction": "Reaction",
            "control.reactive.supports": "Support",
            "control.reactive.tasks": "FollowCenterOfMass FollowForce FollowFrame FollowMomentum Nominal FollowPosture",
        },
    )
