"""Options of contact solvers: `SolverOptions` for users, `SolverInputs` for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class SolverOptions(Options):
    """Options of a contact solver. The function that solves checks that the method suits the problem.

    Attributes:
        method: A method of `ContactProblem.solve`, such as "newton", "pgs" or "admm"; "auto" chooses.
        tolerance: The residual at which a state is solved, as a share of its largest free velocity.
        iterations: The largest number of iterations.
        start: (…, m) impulses to start from [N·s], such as those of the step before.

    >>> dl.contact.SolverOptions(method="newton", tolerance=1e-10).method
    'newton'
    """

    main: ClassVar[str] = "method"
    method: str = "auto"
    tolerance: float = 1e-8
    iterations: int = 1000
    start: Any = None


class SolverInputs(NamedTuple):
    """Impulses (m,) to start from, the residual and the number of iterations at which a solve ends.

    >>> dl.contact.SolverInputs(tolerance=1e-6).tolerance
    1e-06
    """

    start: Any = None
    tolerance: Any = None
    iterations: Any = None
