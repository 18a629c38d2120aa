"""Activation dynamics and force laws of actuators, against MuJoCo."""

from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.model.transmission import Actuator
from delassus.step.actuators.activation import (
    ACTIVATIONS,
    ActivationDynamics,
    clip_control,
    count_activations,
    next_activation,
    register_activation,
)
from delassus.step.actuators.checks import ActuatorError, check_actuators
from delassus.step.actuators.force_law import LAWS, ForceLaw, clip_force, register_law
from refusals import refuses

STEP = 2e-3
KINDS = {
    "motor": "<motor joint='hinge' gear='2' ctrlrange='-1 1'/>",
    "integrator": "<general joint='hinge' dyntype='integrator' gainprm='3'/>",
    "integrator with limits": "<intvelocity joint='hinge' kp='5' actrange='-.1 .1' ctrlrange='-20 20'/>",
    "filter": "<general joint='slide' dyntype='filter' dynprm='.05' gainprm='4' biastype='affine' biasprm='1 -2 -.3'/>",
    "filter with limits": "<general joint='slide' dyntype='filter' dynprm='.003' gainprm='4' actlimited='true' "
    "actrange='-.2 .1' forcelimited='true' forcerange='-.3 .3'/>",
    "exact filter": "<position joint='hinge' kp='7' timeconst='.01'/>",
    "early filter": "<general joint='slide' dyntype='filterexact' dynprm='.004' gainprm='4' actearly='true'/>",
    "cylinder": "<cylinder joint='slide' timeconst='.02' area='.5' bias='.1 .2 .3'/>",
    "muscle": "<muscle joint='slide' lengthrange='-.5 .6' force='40'/>",
    "smooth muscle": "<muscle joint='slide' lengthrange='-.2 .3' tausmooth='.4' scale='50' vmax='.8' fpmax='1.7'/>",
    "early muscle": "<general joint='slide' dyntype='muscle' dynprm='.01 .04 0' gaintype='muscle' biastype='none' "
    "gainprm='.75 1.05 30 200 .5 1.6 1.5 1.3 1.2' lengthrange='-.5 .5' actearly='true'/>",
    "muscle without dynamics": "<general joint='slide' gaintype='muscle' biastype='muscle' "
    "gainprm='.75 1.05 30 200 .5 1.6 1.5 1.3 1.2' biasprm='.75 1.05 30 200 .5 1.6 1.5 1.3 1.2' lengthrange='-.5 .5'/>",
    "muscle activation of a motor": "<general joint='hinge' dyntype='muscle' dynprm='.01 .04 .2' gainprm='2'/>",
}
XML = f"""
<mujoco>
  <option timestep="{STEP}"/>
  <worldbody>
    <body><joint name="hinge" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
      <body pos=".4 0 0"><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1"/></body>
    </body>
  </worldbody>
  <actuator>{{}}</actuator>
</mujoco>
"""


def world(kind):
    return XML.format(KINDS[kind])


def states(kind, count=40):
    """An actuator, and MuJoCo's data after a step with random controls, from random states."""
    m = mujoco.MjModel.from_xml_string(world(kind))
    (actuator,), rng = dl.load(world(kind)).actuators, np.random.default_rng(0)
    for _ in range(count):
        d = mujoco.MjData(m)
        d.qpos, d.qvel = rng.uniform(-0.6, 0.6, m.nq), rng.normal(size=m.nv)
        d.ctrl, d.act = 2.0 * rng.normal(size=m.nu), rng.uniform(-0.3, 1.3, m.na)
        act = d.act.copy()
        mujoco.mj_forward(m, d)
        yield m, d, actuator, (act[0] if m.na else None), d.ctrl[0]


STATEFUL = [kind for kind in KINDS if kind not in ("motor", "muscle without dynamics")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_actuator_has_as_many_states_as_in_mujoco(kind):
    model = dl.load(world(kind))
    assert count_activations(model.actuators) == (kind in STATEFUL)
    assert not model.warnings
    check_actuators(model, model.actuators)


@pytest.mark.parametrize("kind", STATEFUL)
def test_the_rate_of_an_activation_is_that_of_mujoco(kind):
    for _, d, actuator, act, u in states(kind):
        dynamics, control = ACTIVATIONS[actuator.dynamics], clip_control(actuator, u)
        rate = dynamics.rate(actuator.dynamics_parameters, act, control)
        np.testing.assert_allclose(rate, d.act_dot[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", STATEFUL)
def test_an_activation_after_a_step_is_that_of_mujoco(kind):
    for m, d, actuator, act, u in states(kind):
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(next_activation(actuator, act, u, STEP), d.act[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_force_of_an_actuator_is_that_of_mujoco(kind):
    for _, d, actuator, act, u in states(kind):
        signal = np.clip(u, *(actuator.control_range or (-np.inf, np.inf))) if act is None else act
        signal = next_activation(actuator, act, u, STEP) if actuator.early else signal
        force = clip_force(actuator, signal, d.actuator_length[0], d.actuator_velocity[0])
        np.testing.assert_allclose(force, d.actuator_force[0], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("law", sorted(LAWS))
def test_the_slope_of_a_force_law_is_its_derivative(law):
    kind = "muscle" if law == "muscle" else "filter"
    (actuator,) = dl.load(world(kind)).actuators
    signal, length, rate, h, e = 0.4, 0.13, -0.2, 0.01, 1e-6
    ahead, behind = (LAWS[law].force(actuator, signal, length + s * h, rate + s) for s in (e, -e))
    np.testing.assert_allclose(
        LAWS[law].slope(actuator, signal, length, rate, h), (ahead - behind) / (2 * e), rtol=1e-6
    )


def test_a_kind_that_is_not_registered_is_refused_with_those_that_are():
    model = dl.load(XML.format("<general name='u' joint='hinge' dyntype='user' actdim='1'/>"))
    with pytest.raises(ActuatorError, match=r"kind 'user'; .* affine, filter, filterexact, integrator, muscle"):
        check_actuators(model, model.actuators)


def test_control_takes_affine_actuators_alone():
    model = dl.load(world("filter"))
    with pytest.raises(ActuatorError, match="of the kind 'filter'"):
        dl.control.ActuatedMechanism(model, actuation=model.actuators)


@dataclass(frozen=True)
class Leaky(ActivationDynamics):
    """ȧ = u - a/τ."""

    name = "leaky"

    def rate(self, parameters, activation, control):
        return control - activation / parameters[0]


def test_one_registration_adds_activation_dynamics():
    register_activation(Leaky())
    try:
        model = dl.load(world("motor"))
        leaky = replace(model.actuators[0], dynamics="leaky", dynamics_parameters=(0.5,))
        check_actuators(model, (leaky,))
        np.testing.assert_allclose(next_activation(leaky, 0.2, 0.6, 0.01), 0.2 + 0.01 * (0.6 - 0.4))
    finally:
        del ACTIVATIONS["leaky"]


@pytest.mark.parametrize("part", [{"dynamics": "leaky"}, {"law": "leaky"}])
def test_an_actuator_of_parts_that_are_not_registered_is_refused(part):
    model = dl.load(world("motor"))
    with refuses("not-supported", "leaky"):
        check_actuators(model, (replace(model.actuators[0], **part),))


def test_names_are_registered_once():
    @dataclass(frozen=True)
    class Other(ActivationDynamics):
        name = "filter"

    @dataclass(frozen=True)
    class Law(ForceLaw):
        name = "affine"

    with pytest.raises(ValueError, match="'filter' are registered already"):
        register_activation(Other())
    with pytest.raises(ValueError, match="'affine' is registered already"):
        register_law(Law())


def test_a_muscle_on_a_site_is_refused():
    (muscle,) = dl.load(world("muscle")).actuators
    model = dl.load(world("motor"))
    with pytest.raises(ActuatorError, match="drives a site, which has no length"):
        check_actuators(model, (replace(muscle, drives="site"),))


def test_actuators_have_no_state_by_default():
    assert count_activations((Actuator("a", "joint", "hinge", (1.0, 0.0, 0.0)),)) == 0
