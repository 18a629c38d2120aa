"""Options of `Stepper`: the scheme, and the solvers of rows and contacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from delassus.common.checks import SHARES, TOLERANCES, iteration_count, number_in_range, one_of
from delassus.common.options import Options
from delassus.particles.solvers.choice import METHODS

CONTACT_METHODS: Final = ("auto", "newton", "admm", "gradient", "sequential_impulses")
STABILIZATIONS: Final = ("none", "pre", "post")


@dataclass(frozen=True, eq=False)
class ParticleScheme(Options):
    """The time-stepping scheme.

    Attributes:
        alpha: Implicitness of forces: 1 damps, ½ conserves energy, 0 is explicit.
        beta: Implicitness of positions.
        stabilization: Correction of errors of rigid rows and of penetrations: "none" adds it to the target velocities,
            "pre" or "post" makes a separate correction before or after the step.
        geometric_stiffness: Whether the rotation of element forces is implicit; None chooses it where a step would be
            unstable otherwise, unless the method needs a block diagonal W: "cg" and sweeps.

    >>> dl.particles.ParticleScheme(stabilization="post").stabilization
    'post'
    """

    alpha: float = 1.0
    beta: float = 1.0
    stabilization: str = "none"
    geometric_stiffness: bool | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, number_in_range(name, getattr(self, name), SHARES))
        one_of("stabilization", self.stabilization, STABILIZATIONS)


@dataclass(frozen=True, eq=False)
class RowSolver(Options):
    """Solver of the rows.

    Attributes:
        method: "cholesky", "multigrid", "cg", "minres", "gauss_seidel", "pgs", "sequential_impulses" or "superlu";
            "auto" is "multigrid" for elastic sheets with at least 200 000 unknowns, otherwise "cholesky".
        tolerance: Of rows and momentum, relative to the velocities of a step.
        iterations: Maximum number of iterations; None for 60 with factorizations, and 2000 with other methods.

    >>> dl.particles.RowSolver(method="cg").method
    'cg'
    """

    main: ClassVar[str] = "method"
    method: str = "auto"
    tolerance: float = 1e-9
    iterations: int | None = None

    def __post_init__(self) -> None:
        one_of("method", self.method, ("auto", *METHODS), code="unknown-method")
        number_in_range("tolerance", self.tolerance, TOLERANCES)
        if self.iterations is not None:
            iteration_count("iterations", self.iterations)


@dataclass(frozen=True, eq=False)
class ContactSolver(Options):
    """Solver of the contacts.

    Attributes:
        method: "newton", "admm", "gradient" or "sequential_impulses"; "auto" is "newton" for bricks, and "admm" for
            particles connected by elements, for which Newton's method may cycle.
        tolerance: Of contacts, relative to the velocities of a step.
        iterations: Maximum number of iterations.

    >>> dl.particles.ContactSolver(tolerance=1e-6).tolerance
    1e-06
    """

    keywords: ClassVar[Mapping[str, str]] = {
        "method": "contact_method",
        "tolerance": "contact_tolerance",
        "iterations": "contact_iterations",
    }
    main: ClassVar[str] = "contact_method"
    method: str = "auto"
    tolerance: float = 1e-4
    iterations: int = 200

    def __post_init__(self) -> None:
        one_of("contact_method", self.method, CONTACT_METHODS, code="unknown-method")
        number_in_range("contact_tolerance", self.tolerance, TOLERANCES)
        iteration_count("contact_iterations", self.iterations)
