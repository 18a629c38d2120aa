"""Loop closures of a model's file, as constraints."""

from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.kinds.coupling import Coupling
from delassus.constraints.kinds.point import Point
from delassus.constraints.kinds.tendon_length import TendonLength
from delassus.constraints.kinds.weld import Weld
from delassus.model import equality


def constraint_of(tie: equality.Equality | Constraint) -> Constraint:
    """The constraint of a model's own tie: a ball joint, a weld, a coupling of joints or of tendons."""
    if isinstance(tie, Constraint):
        return tie
    if isinstance(tie, equality.PolynomialCoupling):
        coupling = Coupling if isinstance(tie, equality.JointCoupling) else TendonLength
        return coupling(
            tie.follower,
            tie.leader,
            coefficients=tie.coefficients,
            reference=tie.reference1,
            reference2=tie.reference2,
            name=tie.name,
        )
    kind = Point if isinstance(tie, equality.Connect) else Weld
    return kind(tie.frame1, tie.frame2, name=tie.name)
