"""Closed loops and constraints with bad input: errors are sentences, and numbers are never wrong without a word."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.constraints.basis.constraint import ConstraintError
from mechanisms import FOUR_BAR
from refusals import refuses

TREE = replace(FOUR_BAR.model, constraints=())
FREE = dl.Mechanism(TREE)
COUPLED = dl.Mechanism(TREE, dl.Coupling("crank_joint", "rocker_joint", coefficients=(0.0, 2.0)))
Q, V = np.array([0.3, 0.2, 0.1]), np.ones(3)
NAN = float("nan")


class Odd:
    """An object that means nothing to a constraint."""


def point(**options):
    return dl.Point("coupler_end", "rocker_end", **options)


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, 3, ("a",), b"foot"], ids=repr)
def test_a_name_that_is_no_text_is_refused(name):
    with refuses("wrong-type", "'left foot'"):
        point(name=name)


@pytest.mark.parametrize("number", ["0.5", 1j, [1j, 0, 0], None, np.array(["1"]), [[1], [2, 3]], {}], ids=repr)
def test_what_is_no_real_number_is_no_parameter(number):
    with refuses("not-a-number", "acceleration of 'coupler_end-rocker_end'"):
        point(acceleration=number)


@pytest.mark.parametrize("rows", [1, 0.5, True], ids=repr)
@pytest.mark.parametrize("make", [point, lambda rows: dl.JointLock("crank_joint", rows=rows)], ids=["point", "lock"])
def test_rows_that_are_no_list_are_refused(make, rows):
    with refuses("wrong-type", "(0, 2)", "rows"):
        make(rows=rows)


@pytest.mark.parametrize("rows", [(True, False), (0.7,), ([0],), (None,), (NAN,), (1j,)], ids=repr)
@pytest.mark.parametrize("make", [point, lambda rows: dl.JointLock("crank_joint", rows=rows)], ids=["point", "lock"])
def test_rows_are_numbers_or_names_and_no_mask(make, rows):
    with refuses("unknown-row"):
        make(rows=rows)


@pytest.mark.parametrize("frames", [(True,), ("coupler_end", False), (2.0,)], ids=repr)
def test_a_truth_value_is_no_number_of_a_frame(frames):
    with refuses("wrong-type"):
        dl.Point(*frames)


@pytest.mark.parametrize("length", [-1.0, 0.0, 1e-310, 1e-160, NAN, np.inf], ids=repr)
def test_a_length_is_positive(length):
    with refuses("out-of-range", "length of 'coupler_end-rocker_end'"):
        dl.Distance("coupler_end", "rocker_end", length=length)


@pytest.mark.parametrize(
    ("length", "code"),
    [
        (None, "not-a-number"),
        ("1", "not-a-number"),
        (1j, "not-a-number"),
        ([1.0], "wrong-shape"),
        ((1, 2), "wrong-shape"),
    ],
    ids=repr,
)
def test_a_length_is_one_number(length, code):
    with refuses(code, "length of 'coupler_end-rocker_end'"):
        dl.Distance("coupler_end", "rocker_end", length=length)


@pytest.mark.parametrize("length", [np.float32(0.5), np.int64(2), np.array(0.5)], ids=repr)
def test_a_length_may_be_a_number_of_numpy(length):
    assert dl.Distance("coupler_end", "rocker_end", length=length).length == float(length)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: dl.JointLock("crank_joint", position=(1.0, 2.0)), ("wrong-shape", "'crank_joint'", "2", "position")),
        (
            lambda: dl.JointLock("crank_joint", compliance=(1.0, 2.0)),
            ("wrong-shape", "'crank_joint'", "2", "compliance"),
        ),
        (
            lambda: dl.Coupling("crank_joint", acceleration=(1.0, 2.0)),
            ("wrong-shape", "'crank_joint'", "2", "acceleration"),
        ),
        (lambda: dl.Coupling("crank_joint", coefficients=[[1], [2, 3]]), ("not-a-number",)),
        (lambda: dl.Coupling("crank_joint", reference=(1.0, 2.0)), ("wrong-shape",)),
        (lambda: dl.Point("coupler_end", position=[]), ("wrong-shape", "position")),
    ],
)
def test_parameters_that_do_not_fit_their_rows_are_refused_before_anything_is_computed(make, refusal):
    with refuses(*refusal):
        dl.Mechanism(TREE, make())


@pytest.mark.parametrize("constraints", [None, 1.0, Odd, dl.Point, b"foot", {"foot": point()}], ids=repr)
def test_constraints_that_are_no_list_are_refused(constraints):
    with refuses("wrong-type"):
        dl.Mechanism(TREE, constraints)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("fast", "not-a-number"),
        ([], "wrong-shape"),
        (1j, "not-a-number"),
        ((0.1, 0.2), "wrong-shape"),
        (-1.0, "time-step-out-of-range"),
        (NAN, "time-step-out-of-range"),
    ],
    ids=repr,
)
def test_a_step_is_one_number(step, code):
    with refuses(code, "step"):
        dl.Mechanism(TREE, step=step)


def test_a_tie_of_a_model_within_one_body_says_how_to_leave_it_out():
    with refuses("immovable", "model_constraints"):
        dl.Mechanism(TREE, dl.Weld("coupler", "coupler_end"))


# --- functions of users -----------------------------------------------------------------------------------------------

MISTAKES = {
    "a key": (lambda *_: {}["a"], "KeyError"),
    "an attribute": (lambda *x: x[0].velocity("coupler"), "AttributeError"),
    "an index": (lambda *x: x[-1].ids[7, 7, 7], "IndexError"),
    "a division": (lambda *_: 1 / 0, "ZeroDivisionError"),
    "a branch": (lambda *x: x[-1] if np.sum(x[-1]) > 0 else -x[-1], r"write np.where"),
    "a median": (lambda *x: np.median(x[-1]), "no compiled form"),
    "a plain number": (lambda *x: [float(np.sum(x[-1]))], r"np.sin, not math.sin"),
    "complex numbers": (lambda *x: x[-1] * 1j, "only real numbers"),
    "nothing": (lambda *_: None, "Is a `return` missing"),
    "text": (lambda *_: "abc", "only real numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_whatever_a_function_of_a_user_raises_names_the_constraint(mistake):
    g, said = MISTAKES[mistake]
    with refuses("function-failed", "'loop'", said):
        dl.Mechanism(TREE, dl.Implicit(g, rows=1, name="loop"))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_whatever_a_moving_reference_raises_names_the_constraint(mistake):
    position, said = MISTAKES[mistake]
    with refuses("function-failed", "'coupler_end'", "position", said):
        dl.Point("coupler_end", position=position)


def test_the_error_of_a_user_is_kept_as_the_cause():
    with pytest.raises(ConstraintError) as caught:
        dl.Point("coupler_end", position=lambda _t: {}["a"])
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("g", [lambda k: k, lambda k, q, t, u: q[:1], lambda k, q, *, t: q[:1], len, Odd], ids=range(5))
def test_a_function_with_other_arguments_is_refused(g):
    with refuses("function-failed"):
        dl.Mechanism(TREE, dl.Implicit(g, rows=1))


def test_a_default_is_not_taken_for_the_time():
    """`lambda k, q, scale=scale: …` is how a loop hands a value to a function."""
    mechanism = dl.Mechanism(TREE, dl.Implicit(lambda _k, q, scale=2.0: scale * q[:1], rows=1))
    np.testing.assert_array_equal(dl.constraint_error.python(mechanism, Q, time=5.0), [0.6])


@pytest.mark.parametrize(
    "g", [lambda _k, q, t=0.0: q[:1] - t, lambda _k, q, time=0.0: q[:1] - time, lambda _k, q, when: q[:1] - when]
)
def test_a_third_argument_is_the_time_by_its_name_or_without_a_default(g):
    mechanism = dl.Mechanism(TREE, dl.Implicit(g, rows=1))
    np.testing.assert_array_equal(dl.constraint_error.python(mechanism, Q, time=5.0), [0.3 - 5.0])


@pytest.mark.parametrize("rows", [0, -1, 2.0, True, None, "2"], ids=repr)
def test_the_rows_of_a_function_are_counted(rows):
    with refuses("out-of-range" if rows in (0, -1) else "not-a-whole-number", "rows"):
        dl.Implicit(lambda _k, q: q, rows=rows)


@pytest.mark.parametrize(
    "R",
    [lambda _t: 2.0 * dnp.eye(3), lambda t: dnp.eye(3) + t * dnp.ones((3, 3)), lambda _t: dnp.diag([1.0, 1.0, -1.0])],
)
def test_a_moving_target_has_to_turn_by_rotations(R):
    with refuses("not-a-rotation"):
        dl.Weld("coupler_end", target=lambda t: (R(t), dnp.zeros(3)))


# --- solvers ----------------------------------------------------------------------------------------------------------

SOLVERS = {
    "constrained_dynamics": lambda mechanism, **options: dl.constrained_dynamics(mechanism, Q, V, V, **options),
    "assemble": lambda mechanism, **options: dl.assemble(mechanism, Q, **options),
    "project": lambda mechanism, **options: dl.project(mechanism, Q, V, **options),
    "impact": lambda mechanism, **options: dl.impact(mechanism, Q, V, **options),
}


@pytest.mark.parametrize("what", [None, TREE, "four_bar", [FOUR_BAR]], ids=["None", "model", "name", "list"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_wants_a_mechanism(solver, what):
    with refuses("bad-signature", solver, type(what).__name__):
        SOLVERS[solver](what)


def test_a_kernel_says_what_its_first_argument_is():
    with refuses("bad-signature"):
        dl.caba(TREE, Q, V, V)


@pytest.mark.parametrize(
    ("tolerance", "code"),
    [
        ([], "wrong-shape"),
        ("tight", "not-a-number"),
        (1j, "not-a-number"),
        ((1e-3, 1e-4), "wrong-shape"),
        (np.ones(3), "tolerance-out-of-range"),
        (0.0, "tolerance-out-of-range"),
        (2.0, "tolerance-out-of-range"),
        (NAN, "tolerance-out-of-range"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("solver", ["constrained_dynamics", "assemble", "project"])
def test_a_tolerance_is_a_number_between_0_and_1(solver, tolerance, code):
    with refuses(code, "tolerance"):
        SOLVERS[solver](FOUR_BAR, tolerance=tolerance)


@pytest.mark.parametrize("method", [None, [], "fast", 3, np.ones(3)], ids=repr)
@pytest.mark.parametrize("solver", ["constrained_dynamics", "project"])
def test_methods_that_there_are_not_are_refused(solver, method):
    with refuses("unknown-method"):
        SOLVERS[solver](FOUR_BAR, method=method)


def test_the_operational_inertia_lists_all_of_its_methods():
    with refuses("unknown-method", "'fast'", "caba_osim"):
        dl.operational_inertia.python(FOUR_BAR, Q, method="fast")


@pytest.mark.parametrize("options", [{"method": "fast"}, {"iterations": 0}, {"mask": np.ones(4)}, {"tolerance": 2.0}])
def test_options_are_looked_at_also_where_nothing_is_constrained(options):
    with pytest.raises(ValueError if "mask" in options else dl.DelassusError):
        dl.constrained_dynamics(FREE, Q, V, V, **options)


@pytest.mark.parametrize("proximal", ["small", 1j, Odd(), {}], ids=["text", "complex", "object", "dict"])
def test_a_proximal_parameter_is_a_number(proximal):
    with refuses("not-a-number", "1e-6", "proximal"):
        dl.constrained_dynamics(FOUR_BAR, Q, V, V, proximal=proximal)


@pytest.mark.parametrize("given", ["mask", "time", "acceleration", "force"])
def test_one_state_with_an_optional_input_that_is_no_number_is_marked_alone(given):
    """Also where nothing depends on it: a mask of NaN would act like 1, and no reference of a four-bar moves."""
    states = [np.tile(x, (3, 1)) for x in (FOUR_BAR.model.posture("home"), V, V)]
    value = np.ones((3,) if given == "time" else (3, FOUR_BAR.m))
    value[1] = NAN
    status = dl.constrained_dynamics(FOUR_BAR, *states, **{given: value}).statuses
    assert [s is dl.Status.NOT_FINITE for s in status] == [False, True, False]


def test_one_state_that_is_no_number_leaves_the_others_of_the_dense_answer_alone():
    states = [np.tile(x, (3, 1)) for x in (FOUR_BAR.model.posture("home"), V, V)]
    states[0][1, 2] = NAN
    a, force = dl.kkt(FOUR_BAR, *states)
    assert np.isfinite(a).all(-1).tolist() == np.isfinite(force).all(-1).tolist() == [True, False, True]


@pytest.mark.parametrize("bad", [NAN, np.inf])
def test_a_velocity_that_is_no_number_is_projected_to_none_without_a_warning(bad):
    q, v = dl.project(FOUR_BAR, np.tile(Q, (2, 1)), np.array([V, [1.0, bad, 1.0]]), method="svd")
    assert np.isfinite(q).all() and np.isfinite(v).all(-1).tolist() == [True, False]


def test_velocities_of_another_size_are_not_projected():
    with pytest.raises(ValueError, match=r"v has shape \(2,\), its core must be \(3,\)"):
        dl.project(FOUR_BAR, Q, np.ones(2), method="svd")


@pytest.mark.parametrize("locked", [None, 3, 1.5], ids=repr)
def test_joints_are_locked_by_a_list_of_names(locked):
    with refuses("wrong-type", '"arm*"', "locked", kind=TypeError):
        dl.assemble(FOUR_BAR, Q, locked=locked)


def test_restitutions_are_given_by_names():
    with refuses("wrong-type", "'closure'", kind=TypeError):
        dl.impact(FOUR_BAR, Q, V, restitution={0: 0.5})


def test_a_restitution_is_looked_at_also_where_nothing_strikes():
    with refuses("restitution-out-of-range", "3", "restitution"):
        dl.impact(FREE, Q, V, restitution=3.0)


def test_rows_that_have_no_derivative_in_the_neutral_configuration_are_solved_elsewhere():
    rod = dl.Implicit(lambda _k, q: dnp.linalg.norm(q)[None] - 1.0, rows=1)
    mechanism = dl.Mechanism(TREE, [rod, dl.JointLock("rocker_joint")])
    solution, (a, _) = dl.constrained_dynamics(mechanism, Q, V, V), dl.kkt(mechanism, Q, V, V)
    assert solution.statuses is dl.Status.CONVERGED
    np.testing.assert_allclose(solution.acceleration, a, rtol=1e-10, atol=1e-10)


# --- methods that cannot carry what ties joints -----------------------------------------------------------------------

TIES = {
    "coupling": COUPLED,
    "coupling of neighbors": dl.Mechanism(TREE, dl.Coupling("crank_joint", "coupler_joint")),
    "function": dl.Mechanism(TREE, dl.Implicit(lambda _k, q: q[:1] * q[2], rows=1)),
}


@pytest.mark.parametrize("name", TIES)
def test_early_elimination_refuses_joints_that_are_tied_to_each_other(name):
    with refuses("not-supported", "prox_pv"):
        dl.pv_early.python(TIES[name], Q, V, V)


@pytest.mark.parametrize("joints", [slice(1, 2), slice(0, 2), slice(0, 3)], ids=["one", "neighbours", "all"])
def test_early_elimination_carries_functions_of_one_joint_each(joints):
    count = len(Q[joints])
    mechanism = dl.Mechanism(TREE, dl.Implicit(lambda _k, q: dnp.sin(q[joints]), rows=count))
    found, expected = dl.pv_early.python(mechanism, Q, V, V), dl.kkt(mechanism, Q, V, V)
    for x, y in zip(found, expected, strict=False):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)
