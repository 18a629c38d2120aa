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
        alpha: How implicit forces are: 1 damps, ½ conserves, 0 is explicit.
        beta: How implicit positions are.
        stabilization: How errors of rigid rows and penetrations are taken off: "none" by velocities that rows ask for,
            "pre" or "post" by a motion of its own before or after.
        geometric_stiffness: Whether forces that turn with their elements are implicit; None where a step would be
            unstable otherwise, unless the method is one that needs W to be block diagonal: "cg" and sweeps.

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
    """How rows are solved.

    Attributes:
        method: "cholesky", "multigrid", "cg", "minres", "gauss_seidel", "pgs", "sequential_impulses" or "superlu";
            "auto" is "multigrid" for elastic sheets of 200 000 unknowns or more, "cholesky" for all else.
        tolerance: Of rows and momentum, as a share of the velocities of a step.
        iterations: At most; None for 60 of factorizations, and 2000 of other methods.

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
    """How contacts are solved.

    Attributes:
        method: "newton", "admm", "gradient" or "sequential_impulses"; "auto" is "newton" for bricks, and "admm" for
            particles that elements tie together, where guesses may run in circles.
        tolerance: Of contacts, as a share of the velocities of a step.
        iterations: At most.

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
