"""Public functions have few parameters: the rest are fields of frozen objects, and keywords that stand for them."""

import dataclasses
import inspect
import warnings

import numpy as np
import pytest

import delassus as dl
from delassus.common.options import Options, Shortcuts, UnknownKeyword
from refusals import refuses

MOST = 8
SPACES = [dl, *(getattr(dl, name) for name in (*dl.NAMESPACES, *dl.OWN_NAMES, "compiler"))]
RESULTS = {
    "CompliantStep",
    "CompliantSystem",
    "ContactExplanation",
    "ContactForces",
    "ContactStep",
    "Linearization",
    "ParticleStep",
    "ParticleTrajectory",
    "Reaction",
    "Report",
    "State",
    "Trajectory",
}
"""Records that functions return: nobody else makes them."""
DESCRIPTIONS = {"Joint", "Model"}
"""What readers of files make: one field for each thing that a file says."""


def public():
    """Functions, kernels, constructors and their methods, by name."""
    for space in SPACES:
        for name in space.__all__:
            thing = getattr(space, name)
            if not callable(thing) or name in RESULTS | DESCRIPTIONS:
                continue
            yield name, thing
            for method, function in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(function) and not method.startswith("_"):
                    yield f"{name}.{method}", function


def count(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 0
    return sum(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name != "self" for p in parameters)


def test_public_functions_have_at_most_eight_parameters():
    found = {name: count(thing) for name, thing in public()}
    assert len(found) > 300
    assert not {name: n for name, n in found.items() if n > MOST}


@dataclasses.dataclass(frozen=True, eq=False)
class Inner(Options):
    depth: float = 1.0
    start: object = None


@dataclasses.dataclass(frozen=True, eq=False)
class Outer(Options):
    inner: Inner = dataclasses.field(default=Inner())
    width: float = 2.0


DIG = Shortcuts("dig", "where", options=Outer())


def dig(options=None, **shortcuts):
    return DIG.fill(shortcuts, options=options)[0]


def test_a_shortcut_fills_the_field_of_its_object():
    assert dig(depth=3.0) == Outer(Inner(3.0))
    assert dig(inner=Inner(3.0), width=1.0) == Outer(Inner(3.0), 1.0)
    assert dig(start=None) is dig()


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"options": Outer(), "depth": 3.0}, ("options", "depth")),
        ({"options": Outer(), "inner": Inner(3.0)}, ("options", "inner")),
        ({"inner": Inner(), "depth": 3.0}, ("inner", "depth")),
    ],
)
def test_an_object_and_a_shortcut_that_disagree_are_refused(given, names):
    with refuses("conflicting-arguments", *names):
        dig(**given)


def test_an_object_and_a_shortcut_that_agree_are_not():
    assert dig(Outer(Inner(3.0)), depth=3.0) == Outer(Inner(3.0))


def test_an_unknown_keyword_is_refused_with_those_that_fit():
    with refuses("unknown-keyword", "'dept'", "depth, inner, options, start, where, width", kind=TypeError) as caught:
        dig(dept=3.0)
    assert isinstance(caught.value, UnknownKeyword) and caught.value.nearest == ("depth",)


def test_an_object_of_another_kind_is_refused():
    with refuses("wrong-type", "inner", "Inner(depth=…, start=…)"):
        dig(inner=3.0)


def test_options_are_frozen_and_compare_and_hash_by_value_with_arrays():
    a, b, c = (Inner(start=np.array(x)) for x in ([1.0, 2.0], [1.0, 2.0], [1.0, 3.0]))
    assert a == b and hash(a) == hash(b) and a != c
    assert a.replace(depth=2.0) == Inner(2.0, np.array([1.0, 2.0]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.depth = 2.0


# --- functions of the package -----------------------------------------------------------------------------------------

BALL = dl.load("pendulum")
Q, V = np.zeros(BALL.nq), np.zeros(BALL.nv)


def contact_step(**options):
    return dl.contact_dynamics(BALL, Q, V, V, contacts=(), time_step=1e-3, **options)


def compliant_step(**options):
    return dl.stepping.compliant_step(BALL, Q, V, V, time_step=1e-3, **options)


def motion(**options):
    return dl.simulate_motion(BALL, Q, times=[0.0, 0.01], **options)


def simulation(**options):
    return dl.Simulation(BALL, **options)


def problem(**options):
    return dl.ContactProblem(np.eye(3), [0.0, 0.0, -1.0], friction=0.5).solve(**options)


def stepper(**options):
    return dl.particles.Stepper(dl.particles.rope(segments=2), 1e-3, **options)


NUMBERS = [
    (contact_step, ("tolerance", "stabilization", "rest_gap", "rest_speed")),
    (compliant_step, ("tolerance", "alpha", "beta")),
    (motion, ("tolerance", "step")),
    (simulation, ("tolerance", "max_contacts", "max_limits", "time_step")),
    (dl.Ground, ("friction", "restitution", "torsional", "rolling", "height")),
    (problem, ("tolerance",)),
    (stepper, ("alpha", "beta", "tolerance", "contact_tolerance")),
]


@pytest.mark.parametrize("value", [float("nan"), "much"])
@pytest.mark.parametrize(
    ("function", "name"),
    [pytest.param(f, name, id=f"{f.__name__}-{name}") for f, names in NUMBERS for name in names],
)
def test_what_is_no_number_is_refused_by_name(function, name, value):
    with pytest.raises(dl.DelassusError, match=name.removeprefix("rest_").split("_")[0]) as caught:
        function(**{name: value})
    assert caught.value.code != "error"


@pytest.mark.parametrize("name", ["limits", "joint_friction"])
@pytest.mark.parametrize("value", [-1, float("nan"), 0.5, "yes"])
@pytest.mark.parametrize("function", [contact_step, compliant_step])
def test_what_is_neither_true_nor_false_is_refused_by_name(function, name, value):
    with refuses("not-a-boolean", name, value):
        function(**{name: value})


@pytest.mark.parametrize("function", [contact_step, compliant_step])
def test_a_time_that_is_no_number_is_refused(function):
    with pytest.raises(dl.DelassusError, match="time") as caught:
        function(time="noon")
    assert caught.value.code != "error"


@pytest.mark.parametrize(
    ("function", "given", "code", "listed"),
    [
        (contact_step, {"law": "magic"}, "unknown-law", ("'ncp'", "'ccp'", "'lcp'", "'relaxed'", "'soft'")),
        (contact_step, {"method": "magic"}, "unknown-method", ("newton", "pgs", "admm")),
        (contact_step, {"solver": "magic"}, "unknown-method", ("newton", "pgs", "admm")),
        (compliant_step, {"method": "magic"}, "unknown-method", ("newton", "ldl")),
        (compliant_step, {"stabilization": "magic"}, "unknown-option", ("'pre'", "'post'")),
        (problem, {"law": "soft"}, "unknown-law", ("'ncp'", "'ccp'", "'lcp'")),
        (problem, {"solver": "magic"}, "unknown-method", ("newton", "pgs")),
        (stepper, {"contact": "magic"}, "unknown-method", ("'newton'", "'admm'")),
    ],
)
def test_unknown_names_list_those_that_fit(function, given, code, listed):
    with refuses(code, *given.values(), *listed):
        function(**given)


@pytest.mark.parametrize(
    ("function", "given", "names"),
    [
        (contact_step, {"solver": dl.contact.SolverOptions(), "tolerance": 1e-3}, ("solver", "tolerance")),
        (contact_step, {"law": dl.contact.Lcp(), "faces": 6}, ("law", "faces")),
        (contact_step, {"faces": 6}, ("faces", "'lcp'", "'ncp'")),
        (compliant_step, {"scheme": dl.stepping.SchemeOptions(), "alpha": 0.5}, ("scheme", "alpha")),
        (motion, {"integrator": "rk4", "method": "gauss"}, ("integrator", "method")),
        (simulation, {"contacts": dl.ContactSelection(), "max_limits": 1}, ("contacts", "max_limits")),
        (dl.Ground, {"material": dl.ContactParameters(friction=1.0), "friction": 0.5}, ("material", "friction")),
        (dl.Ground, {"material": dl.ContactParameters(restitution=1.0), "restitution": 0.5}, ("restitution",)),
        (stepper, {"rows": dl.particles.RowSolver(), "method": "cg"}, ("rows", "method")),
    ],
)
def test_an_object_and_its_shortcut_cannot_differ(function, given, names):
    with refuses("conflicting-arguments", *names):
        function(**given)


@pytest.mark.parametrize(
    ("function", "options", "shortcuts"),
    [
        (contact_step, {"law": dl.contact.Relaxed(impratio=2.0)}, {"law": "relaxed", "impratio": 2.0}),
        (contact_step, {"solver": "newton"}, {"method": "newton"}),
        (compliant_step, {"scheme": dl.stepping.SchemeOptions(alpha=0.5)}, {"alpha": 0.5}),
        (motion, {"integrator": dl.stepping.IntegratorOptions("rk4", step=1e-3)}, {"method": "rk4", "step": 1e-3}),
    ],
)
def test_objects_and_shortcuts_give_the_same(function, options, shortcuts):
    found, expected = function(**options), function(**shortcuts)
    np.testing.assert_array_equal(found.q, expected.q)


@pytest.mark.parametrize(("function", "name"), [(contact_step, "ncp"), (problem, "ccp")])
def test_the_old_name_of_a_law_works_and_warns(function, name):
    with pytest.warns(DeprecationWarning, match="law"):
        assert function(model=name).law == name
    with warnings.catch_warnings(), refuses("conflicting-arguments", "law", "model"):
        warnings.simplefilter("ignore")
        function(model="lcp", law=name if name != "ncp" else "ccp")
