"""The closed loops that come with a model, as constraints."""

from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.kinds.coupling import Coupling
from delassus.constraints.kinds.point import Point
from delassus.constraints.kinds.tendon_length import TendonLength
from delassus.constraints.kinds.weld import Weld
from delassus.model.equality import Connect, Equality, JointCoupling, TendonCoupling


def constraint_of(tie: Equality | Constraint) -> Constraint:
    """What a model's own tie means: a ball joint, a weld, a coupling of joints or of tendons."""
    if isinstance(tie, Constraint):
        return tie
    if isinstance(tie, JointCoupling):
        return Coupling(
            tie.joint1,
            tie.joint2,
            coefficients=tie.coefficients,
            reference=tie.reference1,
            reference2=tie.reference2,
            name=tie.name,
        )
    if isinstance(tie, TendonCoupling):
        return TendonLength(
            tie.tendon1,
            tie.tendon2,
            coefficients=tie.coefficients,
            reference=tie.reference1,
            reference2=tie.reference2,
            name=tie.name,
        )
    kind = Point if isinstance(tie, Connect) else Weld
    return kind(tie.frame1, tie.frame2, name=tie.name)
