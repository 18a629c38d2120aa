"""Options of contact solvers: `SolverOptions` for users, `SolverInputs` for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class SolverOptions(Options):
    """Options of a contact solver. The solving function checks that the method suits the problem.

    Attributes:
        method: A method of `ContactProblem.solve`, such as "newton", "pgs" or "admm"; "auto" selects one.
        tolerance: The residual of a solution, relative to the largest free velocity.
        iterations: Maximum number of iterations.
        start: (…, m) initial impulses [N·s], such as those of the previous step.

    >>> dl.contact.SolverOptions(method="newton", tolerance=1e-10).method
    'newton'
    """

    main: ClassVar[str] = "method"
    method: str = "auto"
    tolerance: float = 1e-8
    iterations: int = 1000
    start: Any = None


class SolverInputs(NamedTuple):
    """Initial impulses (m,), tolerance of the residual, and maximum number of iterations.

    >>> dl.contact.SolverInputs(tolerance=1e-6).tolerance
    1e-06
    """

    start: Any = None
    tolerance: Any = None
    iterations: Any = None
