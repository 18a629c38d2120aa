"""What differs between two models."""

from dataclasses import replace

import pytest

import delassus as dl
from delassus.model.generators import chain
from delassus.model.parts import Frame
from delassus.model.placement import Placement


def changed(model: dl.Model, i: int = 1, **fields) -> dl.Model:
    joints = list(model.joints)
    joints[i] = replace(joints[i], **fields)
    return replace(model, joints=tuple(joints))


def said(first: dl.Model, second: dl.Model) -> list[str]:
    return [str(difference) for difference in dl.compare(first, second)]


def test_a_model_does_not_differ_from_itself():
    assert dl.compare(chain(3), chain(3)) == ()


def test_names_of_models_and_warnings_do_not_count():
    assert dl.compare(chain(3), replace(chain(3), name="other", warnings=("something",))) == ()


def test_another_mass_is_told_of_the_body_and_of_the_whole():
    model = chain(3)
    heavier = changed(model, inertia=replace(model.joints[1].inertia, mass=model.joints[1].inertia.mass + 1.0))
    found = dl.compare(model, heavier)
    assert [(d.part, d.name, d.field) for d in found] == [("model", "", "mass"), ("joint", "joint1", "mass")]


def test_rounding_is_no_difference():
    model = chain(3)
    p = model.joints[1].placement
    assert dl.compare(model, changed(model, placement=Placement.of(p.R, p.p + 1e-13))) == ()


def test_a_small_inertia_that_is_twice_another_differs():
    tiny = dl.Inertia.of(1.0, rotational=1e-11 * dl.Placement().R)
    twice = dl.Inertia.of(1.0, rotational=2e-11 * dl.Placement().R)
    found = dl.compare(changed(chain(3), inertia=tiny), changed(chain(3), inertia=twice))
    assert [d.field for d in found] == ["rotational inertia"]


def test_limits_are_told_with_both_values():
    first, second = (changed(chain(2), lower=(-1.0,), upper=(upper,)) for upper in (1.0, 2.0))
    assert said(first, second) == ["joint 'joint1': upper (1) → (2)"]


def test_infinite_limits_are_equal():
    assert dl.compare(changed(chain(2), upper=(float("inf"),)), changed(chain(2), upper=(float("inf"),))) == ()


def test_joints_and_frames_that_only_one_model_has_are_named():
    found = said(chain(2), replace(chain(2), frame_list=(*chain(2).frame_list, Frame("camera", 0))))
    assert found == ["frame 'camera' is only in the second"]


def test_a_joint_that_hangs_elsewhere_is_told_by_names():
    assert said(chain(3), changed(chain(3), 2, parent=0)) == ["joint 'joint2': parent joint1 → joint0"]


def test_another_order_of_joints_is_told():
    model = chain(2)
    loose = tuple(replace(joint, parent=-1) for joint in model.joints)
    first, second = (replace(model, joints=joints, frame_list=()) for joints in (loose, loose[::-1]))
    assert said(first, second) == ["model: order of joints joint0, joint1 → joint1, joint0"]


@pytest.mark.parametrize(("field", "value"), [("gravity", (0.0, 0.0, -1.62)), ("frame_list", ())])
def test_other_parts_are_told(field, value):
    assert said(chain(1), replace(chain(1), **{field: value}))
