"""MuJoCo's law of contact, held against MuJoCo itself at states of its rollouts."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from mujoco_law import compare_states, reference_model, rollout_states

BALLS = """<mujoco><option timestep="0.002" impratio="{impratio}" gravity="0.5 0.3 -9.81"/>
<worldbody><geom name="floor" type="plane" size="5 5 1" {floor}/>
<body pos="0 0 .11"><freejoint/><geom name="a" type="sphere" size=".1" mass="1" {first}/></body>
<body pos=".1 0 .30"><freejoint/><geom name="b" type="sphere" size=".1" mass=".3" {second}/></body>
</worldbody>{more}</mujoco>"""


def balls(floor="", first="", second="", more="", impratio=1.0):
    return BALLS.format(floor=floor, first=first, second=second, more=more, impratio=impratio)


CONTACTS = {
    "condim 1": balls(first='condim="1"', floor='condim="1"', second='condim="1"'),
    "condim 3": balls(),
    "condim 4": balls(first='condim="4" friction="0.4 0.02 0.001"'),
    "condim 6": balls(first='condim="6" friction="0.4 0.02 0.01"', second='condim="6"'),
    "impratio": balls(impratio=10.0, first='friction="0.2 0 0"'),
    "margin": balls(floor='margin="0.004"', first='margin="0.003" solimp="0.5 0.9 0.01 0.4 3"'),
    "priority": balls(floor='solref="0.01 1"', first='priority="1" solref="0.05 0.5" friction="0.3 0 0"'),
    "solmix": balls(floor='solmix="3" solref="0.01 1"', first='solref="0.06 0.4" solimp="0.3 0.8 0.02"'),
    "stiffness and damping": balls(floor='solref="-2000 -30"', first='solref="-500 -60"'),
    "pair": balls(
        more='<contact><pair geom1="floor" geom2="a" condim="4" friction="0.3 0.3 0.01 0 0" margin="0.002" '
        'solref="0.03 0.8" solreffriction="0.06 1" solimp="0.6 0.9 0.01 0.5 2"/></contact>'
    ),
}

ROWS = """<mujoco><option timestep="0.002"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
<body pos="0 0 1"><joint name="one" axis="0 1 0" range="-40 40" limited="true" {limit} {friction}/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
<body name="arm" pos=".4 0 0"><joint name="two" axis="0 1 0" {second}/>
<geom type="capsule" fromto="0 0 0 .3 .05 0" size=".02"/><site name="tip" pos=".3 0 0"/></body></body>
<body name="post" pos=".8 0 1.1"><joint name="three" type="ball" {ball}/>
<geom type="box" size=".05 .04 .1" pos="0.1 0 0"/><site name="end" pos=".02 0 0"/></body>
</worldbody>{more}</mujoco>"""


def rows(limit="", friction="", second="", more="", ball=""):
    return ROWS.format(limit=limit, friction=friction, second=second, more=more, ball=ball)


CONSTRAINTS = {
    "joint limits": rows(limit='margin="0.1" solreflimit="0.05 0.7" solimplimit="0.5 0.95 0.1 0.5 2"'),
    "joint friction": rows(friction='frictionloss="0.6"', second='frictionloss="0.2" solreffriction="0.05 1"'),
    "connect": rows(more='<equality><connect body1="arm" body2="post" anchor=".35 0 0" solref="0.05 0.8"/></equality>'),
    "connect sites": rows(more='<equality><connect site1="tip" site2="end" solimp="0.5 0.9 0.1"/></equality>'),
    "weld": rows(more='<equality><weld body1="arm" body2="post" solref="0.06 1" solimp="0.7 0.9 0.05"/></equality>'),
    "joint coupling": rows(
        more='<equality><joint joint1="two" joint2="one" polycoef="0.1 0.5 0.2 0 0" solref="0.04 1"/></equality>'
    ),
    "tendon limits": rows(
        more='<tendon><fixed name="t" limited="true" range="-0.3 0.2" solreflimit="0.05 1" margin="0.02">'
        '<joint joint="one" coef="1"/><joint joint="two" coef="-0.5"/></fixed></tendon>'
    ),
    "tendon friction": rows(
        more='<tendon><fixed name="t" frictionloss="0.4" solreffriction="0.05 1"><joint joint="one" coef="1"/>'
        '<joint joint="two" coef="-0.5"/></fixed><spatial name="s" frictionloss="0.3"><site site="tip"/>'
        '<site site="end"/></spatial></tendon>',
        second='frictionloss="0.1"',
    ),
    "ball limit": rows(ball='range="0 20" limited="true" margin="0.05" solreflimit="0.03 1"'),
    "spatial tendon": rows(
        more='<tendon><spatial name="t" limited="true" range="0 0.12"><site site="tip"/><site site="end"/></spatial>'
        "</tendon>"
    ),
}


@pytest.mark.parametrize("name", [*CONTACTS, *CONSTRAINTS])
def test_accelerations_and_constraint_forces_are_those_of_mujoco(name):
    text = (CONTACTS | CONSTRAINTS)[name]
    mj = reference_model(mujoco.MjModel.from_xml_string(text))
    sim = dl.Simulation.from_file(text, law="mujoco", tolerance=1e-10)
    states = rollout_states(mj, count=40, seconds=0.8)
    difference = compare_states(sim, mj, states)
    assert states.constraint.any()
    assert difference.acceleration < 1e-6
    assert difference.constraint < 1e-6


def test_the_option_that_overrides_contacts_is_read():
    text = balls().replace('impratio="1.0"', 'o_solref="0.05 1" o_solimp="0.5 0.9 0.01 0.5 2" o_margin="0.003"')
    text = text.replace("<worldbody>", "", 1).replace("/>\n", '><flag override="enable"/></option><worldbody>\n', 1)
    mj = reference_model(mujoco.MjModel.from_xml_string(text))
    difference = compare_states(dl.Simulation.from_file(text, law="mujoco"), mj, rollout_states(mj, 20, 0.4))
    assert max(difference) < 1e-6


def test_friction_that_overrides_that_of_all_contacts_is_read():
    text = balls().replace('impratio="1.0"', 'o_friction="0.3 0.3 0.02 0.001 0.001"')
    text = text.replace("<worldbody>", "", 1).replace("/>\n", '><flag override="enable"/></option><worldbody>\n', 1)
    assert {shape.friction for shape in dl.load(text).geometries if shape.role == "collision"} == {(0.3, 0.02, 0.001)}


def test_a_step_leads_where_mujoco_steps():
    text = CONTACTS["condim 6"]
    mj = reference_model(mujoco.MjModel.from_xml_string(text))
    data = mujoco.MjData(mj)
    for _ in range(200):
        mujoco.mj_step(mj, data)
    log = dl.Simulation.from_file(text, law="mujoco", tolerance=1e-10).run(steps=200)
    position = np.concatenate([log.q[-1][:3], log.q[-1][7:10]])
    np.testing.assert_allclose(position, [*data.qpos[:3], *data.qpos[7:10]], atol=2e-4)


def test_limited_servos_saturate_inside_the_solve():
    text = """<mujoco><option timestep="0.002"/><worldbody><body><joint name="j" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" contype="0" conaffinity="0"/></body></worldbody>
    <actuator><position joint="j" kp="500" kv="20" forcerange="-3 3"/></actuator></mujoco>"""
    sim = dl.Simulation.from_file(text, law="mujoco")
    state = sim.step(sim.start(np.array([0.0])), np.array([1.0]))
    M = dl.crba(sim.model, np.array([0.0]))[0, 0]
    weight = dl.rnea(sim.model, np.array([0.0]), np.zeros(1), np.zeros(1))[0]
    np.testing.assert_allclose(state.v, 0.002 * (3.0 - weight) / M, rtol=1e-8)


def test_batches_have_the_bits_of_single_items():
    sim = dl.Simulation.from_file(CONTACTS["condim 6"], law="mujoco")
    rng = np.random.default_rng(1)
    v = 0.5 * rng.normal(size=(11, sim.model.nv))
    many = sim.run(np.tile(sim.keyframe.q, (11, 1)), v, steps=60)
    one = sim.run(sim.keyframe.q, v[4], steps=60)
    assert np.array_equal(many.q[:, 4], one.q)


def test_masses_that_differ_by_item_change_how_contacts_give_way():
    text = CONTACTS["condim 3"]
    model = dl.load(text)
    heavy = text.replace('mass="1"', 'mass="4"')
    sim = dl.Simulation(model.parametric("mass:*"), time_step=0.002, law="mujoco", tolerance=1e-10)
    given = sim.parametric.pack({})
    q, v = model.posture("qpos0").copy(), np.zeros(model.nv)
    q[2] -= 0.012
    assert given.size == 2
    a = sim.accelerations(sim.start(q, v, parameters=np.array([4.0, given[1]]))).acceleration
    other = dl.Simulation.from_file(heavy, law="mujoco", tolerance=1e-10)
    b = other.accelerations(other.start(q, v)).acceleration
    np.testing.assert_allclose(a[2], b[2], rtol=1e-8)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_an_unknown_law_lists_those_that_there_are():
    with pytest.raises(dl.DelassusError, match=r"law.*'soft'.*rigid.*mujoco"):
        dl.Simulation(dl.load("quadruped"), law="soft")


def test_restitution_is_refused():
    with pytest.raises(dl.DelassusError, match="restitution"):
        dl.Simulation(dl.load("quadruped"), dl.Ground(restitution=0.5), law="mujoco")


@pytest.mark.parametrize("method", ["dual", "articulated", "sweeps", "pgs"])
def test_methods_of_the_rigid_law_are_refused(method):
    with pytest.raises(dl.DelassusError, match='cannot solve law="mujoco"'):
        dl.Simulation(dl.load("quadruped"), law="mujoco", method=method)


def test_accelerations_are_refused_under_the_rigid_law():
    sim = dl.Simulation(dl.load("quadruped"))
    with pytest.raises(dl.DelassusError, match='law="mujoco"'):
        sim.accelerations(sim.start())
