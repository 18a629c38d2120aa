"""The same mistake has the same code and the same class, whichever function it is made in."""

import math

import numpy as np
import pytest

import delassus as dl
import delassus.control as C
import delassus.particles as P
from delassus.errors import NotANumber, OutOfRange, UnknownOption, WrongShape
from refusals import refuses

ARM = dl.load("cart_pole")
Q = np.zeros(ARM.nq)
V = np.zeros(ARM.nv)
ROPE = P.rope()
TIP = dl.Contact(ARM.frame_list[-1].name)

NUMBERS = [math.nan, math.inf, -1.0, 10.0, 10**400]
OTHERS = ["x", None, True]

TIME_STEPS = {
    "Simulation": lambda h: dl.Simulation(ARM, time_step=h),
    "contact_dynamics": lambda h: dl.contact_dynamics(ARM, Q, V, V, contacts=TIP, time_step=h),
    "compliant_step": lambda h: dl.compliant_step(ARM, Q, V, V, time_step=h),
    "particles.Stepper": lambda h: P.Stepper(ROPE, h),
    "linearize": lambda h: C.linearize(ARM, Q).discrete(h),
    "Mechanism": lambda h: dl.Mechanism(ARM, step=h),
}
RESTITUTIONS = {
    "Ground": lambda e: dl.Ground(restitution=e),
    "Contact": lambda e: dl.Contact("tip", restitution=e),
    "contact_dynamics": lambda e: dl.contact_dynamics(ARM, Q, V, V, contacts=TIP, time_step=1e-3, restitution=e),
    "compliant_step": lambda e: dl.compliant_step(ARM, Q, V, V, contacts=TIP, time_step=1e-3, restitution=e),
}
FRICTIONS = {
    "Ground": lambda mu: dl.Ground(friction=mu),
    "Contact": lambda mu: dl.Contact("tip", friction=mu),
    "contact_dynamics": lambda mu: dl.contact_dynamics(ARM, Q, V, V, contacts=TIP, time_step=1e-3, friction=mu),
    "compliant_step": lambda mu: dl.compliant_step(ARM, Q, V, V, contacts=TIP, time_step=1e-3, friction=mu),
    "ContactProblem": lambda mu: dl.ContactProblem(np.eye(3), np.zeros(3), friction=mu),
    "Particles": lambda mu: P.Particles(np.zeros((1, 3)), 1.0, friction=mu),
}
PROBLEM = dl.ContactProblem(np.eye(3), np.ones(3), friction=0.5)
QP_SIGNATURE = C.QP(np.eye(1), np.ones(1))
TOLERANCES = {
    "Simulation": lambda x: dl.Simulation(ARM, tolerance=x),
    "contact_dynamics": lambda x: dl.contact_dynamics(ARM, Q, V, V, contacts=TIP, time_step=1e-3, tolerance=x),
    "compliant_step": lambda x: dl.compliant_step(ARM, Q, V, V, time_step=1e-3, tolerance=x),
    "particles.Stepper": lambda x: P.Stepper(ROPE, 1e-2, tolerance=x),
    "ContactProblem.solve": lambda x: PROBLEM.solve(tolerance=x),
}
ITERATIONS = {
    "contact_dynamics": lambda n: dl.contact_dynamics(ARM, Q, V, V, contacts=TIP, time_step=1e-3, iterations=n),
    "compliant_step": lambda n: dl.compliant_step(ARM, Q, V, V, time_step=1e-3, iterations=n),
    "particles.Stepper": lambda n: P.Stepper(ROPE, 1e-2, contact_iterations=n),
    "ContactProblem.solve": lambda n: PROBLEM.solve(iterations=n),
    "constrained_dynamics": lambda n: dl.constrained_dynamics(dl.Mechanism(ARM), Q, V, V, iterations=n),
}
METHODS = {
    "contact_dynamics": lambda m: dl.contact_dynamics(ARM, Q, V, V, contacts=TIP, time_step=1e-3, method=m),
    "compliant_step": lambda m: dl.compliant_step(ARM, Q, V, V, time_step=1e-3, method=m),
    "particles.Stepper": lambda m: P.Stepper(ROPE, 1e-2, method=m),
    "ContactProblem.solve": lambda m: PROBLEM.solve(method=m),
    "QP.solve": lambda m: QP_SIGNATURE.solve(method=m),
}
BATCHED = {"contact_dynamics", "compliant_step", "Ground", "ContactProblem"}
"""Those that take a number for each state of a batch."""


def cases(calls: dict, values: list) -> list:
    return [pytest.param(calls[name], value, id=f"{name}-{str(value)[:8]}") for name in calls for value in values]


@pytest.mark.parametrize(("call", "value"), cases(TIME_STEPS, NUMBERS))
def test_a_time_step_beyond_its_range_is_refused(call, value):
    with refuses("time-step-out-of-range", kind=OutOfRange):
        call(value)


@pytest.mark.parametrize(("call", "value"), cases(RESTITUTIONS, NUMBERS))
def test_a_restitution_beyond_its_range_is_refused(call, value):
    with refuses("restitution-out-of-range", "restitution", kind=OutOfRange):
        call(value)


@pytest.mark.parametrize(("call", "value"), cases(FRICTIONS, [math.nan, -1.0, 10**400]))
def test_a_friction_beyond_its_range_is_refused(call, value):
    with refuses("friction-out-of-range", "friction", kind=OutOfRange):
        call(value)


@pytest.mark.parametrize(("call", "value"), cases(TOLERANCES, NUMBERS))
def test_a_tolerance_beyond_its_range_is_refused(call, value):
    with refuses("tolerance-out-of-range", "tolerance", kind=OutOfRange):
        call(value)


@pytest.mark.parametrize(("call", "value"), cases(ITERATIONS, [-1, 0, 10**400]))
def test_a_number_of_iterations_beyond_its_range_is_refused(call, value):
    with refuses("iterations-out-of-range", "iterations", kind=OutOfRange):
        call(value)


@pytest.mark.parametrize(("call", "value"), cases(ITERATIONS, ["x", None, True, [1, 2], math.nan, 2.5]))
def test_a_number_of_iterations_is_whole(call, value):
    with refuses("not-a-whole-number", "iterations", kind=NotANumber):
        call(value)


SCALARS = [
    case
    for calls, allowed in (
        (TIME_STEPS, {"contact_dynamics": [None], "Mechanism": [None]}),
        (RESTITUTIONS, {"contact_dynamics": [None], "compliant_step": [None]}),
        (FRICTIONS, {key: [None] for key in ("Ground", "contact_dynamics", "compliant_step", "ContactProblem")}),
        (TOLERANCES, {}),
    )
    for name in calls
    for case in cases({name: calls[name]}, [x for x in OTHERS if x not in allowed.get(name, [])])
]


@pytest.mark.parametrize(("call", "value"), SCALARS)
def test_what_is_no_number_is_refused(call, value):
    with refuses("not-a-number", kind=NotANumber):
        call(value)


ALONE = [
    case
    for calls in (TIME_STEPS, RESTITUTIONS, FRICTIONS, TOLERANCES)
    for case in cases({k: v for k, v in calls.items() if k not in BATCHED or calls is TOLERANCES}, [[0.5, 0.25]])
]


@pytest.mark.parametrize(("call", "value"), ALONE)
def test_a_list_where_one_number_is_needed_is_refused(call, value):
    with refuses("wrong-shape", kind=WrongShape):
        call(value)


@pytest.mark.parametrize(("call", "value"), cases(METHODS, ["ptoximal", None, 3]))
def test_a_method_that_does_not_exist_is_refused(call, value):
    with refuses("unknown-method", "method", kind=UnknownOption):
        call(value)


@pytest.mark.parametrize("call", [TIME_STEPS["compliant_step"], TIME_STEPS["contact_dynamics"]])
def test_a_time_step_that_is_nan_for_one_state_of_a_batch_spoils_that_state_alone(call):
    found = call(np.array([1e-3, np.nan]))
    assert np.isfinite(found.velocity if hasattr(found, "velocity") else found.v)[0].all()
    assert found.status[1] == dl.Status.NOT_FINITE
