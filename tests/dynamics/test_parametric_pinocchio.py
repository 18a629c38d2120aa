"""Kernels with parameters against Pinocchio, whose models are changed in place instead."""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.compiler.backends.interpreter import evaluate
from joint_cases import Case, mechanisms, random_inertia, random_placement, with_all_kinds
from joint_checks import CHECKS, NAMES, check_aba, check_centroid, check_crba, check_energies, check_rnea, verify

ALL = ("gravity", "inertia", "placement", "frame", "armature")


def changed(c: Case, seed: int) -> Case:
    """The same mechanism with other numbers in Pinocchio; `model` keeps the old ones."""
    rng = np.random.default_rng(seed)
    theirs = c.theirs.copy()
    theirs.gravity = pin.Motion(rng.normal(size=3), np.zeros(3))
    theirs.armature = rng.uniform(0.1, 1.0, theirs.nv)
    for i in range(1, theirs.njoints):
        theirs.inertias[i] = random_inertia(rng)
        theirs.jointPlacements[i] = random_placement(rng)
    for frame in theirs.frames:
        if frame.type == pin.FrameType.OP_FRAME:
            frame.placement = random_placement(rng)
    return replace(c, theirs=theirs)


def parameters_of(c: Case):
    """The parameters of Pinocchio's model, in Pinocchio's own order, after the names of ALL."""
    theirs = c.theirs
    frames = [theirs.frames[theirs.getFrameId(frame.name)] for frame in c.model.frame_list]
    return np.concatenate(
        [
            theirs.gravity.linear,
            *(inertia.toDynamicParameters() for inertia in theirs.inertias[1:]),
            *(pin.SE3ToXYZQUAT(placement) for placement in theirs.jointPlacements[1:]),
            *(pin.SE3ToXYZQUAT(frame.placement) for frame in frames),
            theirs.armature,
        ]
    )


def traced(model, p):
    """Runs the graph that is compiled, without compiling it."""

    def run(kernel, *arrays, **options):
        given = {name: options.pop(name) for name in ("forces",) if name in options}
        results = evaluate(kernel.program(model, inputs=tuple(given), **options), *arrays, *given.values(), p)
        return results if len(results) > 1 else results[0]

    return run


@cache
def changed_with_all_kinds() -> Case:
    return changed(with_all_kinds(False), 9)


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@settings(max_examples=8, deadline=None, database=None)
@given(c=mechanisms(), seed=st.integers(0, 2**32 - 1))
def test_any_mechanism_with_other_parameters_agrees_with_pinocchio(check, c, seed):
    other = changed(c, seed)
    verify(other, check, traced(c.model.parametric(*ALL), parameters_of(other)))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_a_compiled_mechanism_with_other_parameters_agrees_with_pinocchio(check):
    c = changed_with_all_kinds()
    model, p = c.model.parametric(*ALL), parameters_of(c)
    verify(c, check, lambda kernel, *arrays, **options: kernel(model, *arrays, parameters=p, **options))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_plain_numpy_with_other_parameters_agrees_with_pinocchio(check):
    c = changed_with_all_kinds()
    model, p = c.model.parametric(*ALL), parameters_of(c)
    verify(c, check, lambda kernel, *arrays, **options: kernel.python(model, *arrays, parameters=p, **options))


def test_default_parameters_are_those_of_pinocchio():
    c = with_all_kinds(True)
    model = c.model.parametric(*ALL)
    found, expected = (same_signs(model, p) for p in (model.parameters(), parameters_of(c)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def same_signs(model: dl.ParametricModel, p):
    """Parameters with w >= 0 in all quaternions, of which q and -q are the same rotation."""
    p = p.copy()
    for part in model.parts:
        if part.kind in ("placement", "frame") and p[part.at][-1] < 0.0:
            p[part.at.start + 3 : part.at.stop] *= -1.0
    return p


def test_a_mass_scales_its_body():
    c = with_all_kinds(False)
    masses = np.random.default_rng(3).uniform(0.5, 5.0, c.model.njoints)
    theirs = c.theirs.copy()
    for i, mass in enumerate(masses, 1):
        body = theirs.inertias[i]
        theirs.inertias[i] = pin.Inertia(mass, body.lever, body.inertia * (mass / body.mass))
    other, model = replace(c, theirs=theirs), c.model.parametric("mass")
    for check in (check_rnea, check_crba, check_aba, check_energies, check_centroid):
        verify(other, check, lambda kernel, *arrays: kernel(model, *arrays, parameters=masses))
        verify(other, check, lambda kernel, *arrays: kernel.python(model, *arrays, parameters=masses))
