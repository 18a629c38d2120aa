"""Control: torques for a motion that is asked for, under constraints; tasks; linear models."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.control.inverse.actuated import Actuated
    from delassus.control.programmes.programme import QuadraticProgramme
    from delassus.control.programmes.solution import ProgrammeSolution
    from delassus.control.programmes.status import ProgrammeStatus

__all__ = [
    "Actuated",
    "ProgrammeSolution",
    "ProgrammeStatus",
    "QuadraticProgramme",
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
        },
    )
