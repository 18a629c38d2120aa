"""Laws of rigid contact with their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from delassus.common.options import Options
from delassus.contact.cones.pyramid import face_angles


@dataclass(frozen=True, eq=False)
class Ncp(Options):
    """Signorini's and Coulomb's laws: rigid contact, friction opposes sliding.

    >>> problem = dl.ContactProblem(np.eye(3), [1.0, 0.0, -1.0], friction=0.5)
    >>> problem.solve(law=dl.contact.Ncp()).velocity.round(6)
    array([0.5, 0. , 0. ])
    """

    name: ClassVar[str] = "ncp"


@dataclass(frozen=True, eq=False)
class Ccp(Options):
    """The convex relaxation of `Ncp`, in which sliding contacts open with friction times their sliding speed.

    >>> problem = dl.ContactProblem(np.eye(3), [1.0, 0.0, -1.0], friction=0.5)
    >>> bool(problem.solve(law=dl.contact.Ccp()).velocity[2] > 0.1)      # a sliding contact separates
    True
    """

    name: ClassVar[str] = "ccp"


@dataclass(frozen=True, eq=False)
class Lcp(Options):
    """Friction pyramids in place of cones.

    Attributes:
        faces: Number of faces of a pyramid, at least 3.
        pyramid: "inner" or "outer": inside or around the cone.

    >>> problem = dl.ContactProblem(np.eye(3), [0.0, 0.0, -1.0], friction=0.5)
    >>> problem.solve(law=dl.contact.Lcp(faces=8)).impulse.round(6)
    array([0., 0., 1.])
    """

    name: ClassVar[str] = "lcp"
    faces: int = 4
    pyramid: str = "inner"

    def __post_init__(self) -> None:
        face_angles(self.faces, self.pyramid)
        object.__setattr__(self, "faces", int(self.faces))


RigidLaw = Ncp | Ccp | Lcp

RIGID_LAWS: Final = (Ncp(), Ccp(), Lcp())
"""All laws with their defaults."""
