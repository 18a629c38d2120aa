"""Contact: what only pushes, with friction: cones, problems, their solvers, and the way from a robot to a problem."""

from typing import TYPE_CHECKING

from delassus.lazy import lazily

if TYPE_CHECKING:
    from delassus.contact import cones
    from delassus.contact.problems.problem import ContactProblem
    from delassus.contact.problems.solution import ContactSolution
    from delassus.contact.solvers.solve import solve_contacts

__all__ = [
    "ContactProblem",
    "ContactSolution",
    "cones",
    "solve_contacts",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        __all__,
        {
            "contact.cones": "",
            "contact.problems.problem": "ContactProblem",
            "contact.problems.solution": "ContactSolution",
            "contact.solvers.solve": "solve_contacts",
        },
    )
