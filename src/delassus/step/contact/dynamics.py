"""`contact_dynamics`: one time step of a robot in contact; `contact_problem`: the problem that it solves."""

from __future__ import annotations

from typing import Any, Final

from delassus.common.options import Shortcuts
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.problems.problem import ContactProblem
from delassus.contact.solvers.laws import Lcp, Ncp
from delassus.step.contact.arguments import ContactArguments
from delassus.step.contact.options import ContactOptions, ProblemOptions
from delassus.step.contact.origins import rigid_problem
from delassus.step.contact.shape_arguments import refuse_other_laws, selects_shapes
from delassus.step.contact.steps import accelerations, free, rigid, soft, step_relaxed
from delassus.step.laws.law import LAWS, Law, Relaxed, Soft
from delassus.step.selection.options import ShapeSelection

_NAMES: Final = "mechanism q v tau time_step"
_STEP: Final = Shortcuts(
    "contact_dynamics",
    _NAMES,
    renamed={"model": "law"},
    code="unknown-law",
    contacts=ShapeSelection(),
    law=LAWS,
    options=ContactOptions(),
)
_PROBLEM: Final = Shortcuts("contact_problem", _NAMES, contacts=ShapeSelection(), options=ProblemOptions())


def contact_dynamics(
    mechanism: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    contacts: Any = (),
    time_step: Any,
    law: str | Law = "ncp",
    options: ContactOptions | None = None,
    **shortcuts: Any,
) -> Any:
    """Integrate a robot with contacts over one time step, for one state or a batch.

    The result is a `ContactStep` with velocities and impulses. With `time_step=None`, accelerations and forces are
    computed instead, a `ContactForces`.

        M (v⁺ - v) = h (tau - c) + Jᵀ λ,      q⁺ = q ⊕ h v⁺

    This is a step of the compliant scheme (see `compliant_step`) with α = β = 1. It does not include springs and
    dampers of joints: add `passive_forces` to tau. Velocities of free and planar joints are in their axes after the
    step.

    Closed loops and other constraints of the mechanism, contacts, joint limits and joint friction are solved for
    together. Parameters of contacts have one value for each point, or one for all, and may differ between states.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the step.
        tau: Generalized forces (…, nv) [N·m, N], including those of springs and dampers (`passive_forces`).
        contacts: The `Contact`s of the robot, or a `ShapeSelection` of collision shapes that may touch a plane and
            each other.
        time_step: (…) h [s], or None for accelerations and forces (see `rigid_forces`).
        law: "ncp" for Signorini's and Coulomb's laws; "ccp" for their convex relaxation; "lcp" or `Lcp(faces, pyramid)`
            for friction pyramids; "relaxed" or `Relaxed(relaxation, impratio, cone)` for MuJoCo's law with compliant
            rows; "soft" or `Soft(softness)` for springs and dampers.
        options: A `ContactOptions`: contact, planes, rows, stabilization, solver, rest, time, parameters.
        **shortcuts: Fields of these objects by their names. Of the law: faces, pyramid, relaxation, impratio, cone,
            softness. Of a selection of shapes: touching, colliding, self_collision, max_contacts, hull_error. Of the
            options: their own fields; friction, torsional, rolling, restitution, compliance (contact);
            normal, height (planes); limits, joint_friction (rows); method, tolerance, iterations, start (solver);
            rest_gap, rest_speed (rest).

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> contact = dl.Contact("center", radius=0.1)
    >>> zero = np.zeros(3)
    >>> dl.contact_dynamics(ball, [0.0, 0.0, 0.1], zero, zero, contacts=[contact], time_step=1e-2).impulse
    array([0.   , 0.   , 0.098])
    """
    named = _STEP.resolve_renamed(shortcuts, "law", law, "ncp")
    shapes = selects_shapes(contacts, shortcuts)
    selection, chosen, options = _STEP.fill(
        shortcuts, contacts=contacts if contacts != () and shapes else None, law=named, options=options
    )
    contacts = selection if shapes else contacts
    arguments = ContactArguments.of(mechanism, (q, v, tau), contacts, time_step, chosen, options)
    solver = options.solver
    if arguments.scene.slots:
        refuse_other_laws(chosen, arguments.step)
    if not arguments.scene.m:
        return free(arguments, chosen, solver)
    if isinstance(chosen, Relaxed):
        return step_relaxed(arguments, chosen, solver)
    if isinstance(chosen, Soft | Lcp) and arguments.step is None:
        raise ContactProblemError(
            f"time_step is None, and the law {chosen.name!r} needs a time step: pass one, such as time_step=1e-3.",
            code="missing-argument",
        )
    if isinstance(chosen, Soft):
        return soft(arguments, chosen, solver)
    if arguments.step is None:
        return accelerations(arguments, chosen, solver, options.rest)
    return rigid(arguments, chosen, solver)


def contact_problem(
    mechanism: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    contacts: Any = (),
    time_step: Any,
    options: ProblemOptions | None = None,
    **shortcuts: Any,
) -> ContactProblem:
    """Form the contact problem σ = G λ + g of a time step without solving it.

    Args:
        mechanism, q, v, tau, contacts: As for `contact_dynamics`.
        time_step: (…) h [s].
        options: A `ProblemOptions`: contact, planes, rows, stabilization, time, parameters.
        **shortcuts: Fields of the options and of the objects that they hold, as for `contact_dynamics`.

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(2.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> zero = np.zeros(3)
    >>> dl.contact_problem(ball, zero, zero, zero, contacts=[dl.Contact("center")], time_step=1e-2).G
    array([[0.5, 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0.5]])
    """
    if time_step is None:
        raise ContactProblemError(
            "time_step is None, and the contact problem is that of a time step: pass one, such as time_step=1e-3.",
            code="missing-argument",
        )
    shapes = selects_shapes(contacts, shortcuts)
    selection, options = _PROBLEM.fill(
        shortcuts, contacts=contacts if contacts != () and shapes else None, options=options
    )
    contacts = selection if shapes else contacts
    arguments = ContactArguments.of(mechanism, (q, v, tau), contacts, time_step, Ncp(), options)
    if not arguments.scene.m:
        raise ContactProblemError(
            "the robot has no contacts, constraints or limits, so there is no contact problem: pass contacts.",
            code="nothing-to-do",
        )
    return rigid_problem(arguments.scene, (*arguments.state, arguments.step), arguments.inputs, arguments.parameters)
