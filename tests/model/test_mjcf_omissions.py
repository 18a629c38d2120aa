"""What MJCF has and a model has not is said where the model is used: once a feature, by name, with what to do."""

import warnings

import pytest

import delassus as dl
from delassus.errors import DelassusWarning

XML = """<mujoco model="toy"><worldbody>
  <body><joint name="one" stiffness="1 2" damping="1 2"/><geom size=".1"/></body>
  <body pos="1 0 0"><joint name="two" stiffness="1 2"/><geom size=".1"/></body></worldbody></mujoco>"""


def said(use):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    return [str(warning.message) for warning in caught if issubclass(warning.category, DelassusWarning)]


@pytest.mark.parametrize(
    "use",
    [
        lambda robot: dl.Simulation(robot, max_contacts=0),
        lambda robot: dl.simulate_motion(robot, robot.neutral(), times=[0.0, 1e-3]),
    ],
    ids=["Simulation", "simulate_motion"],
)
def test_each_feature_is_said_once_with_names_and_a_remedy(use):
    springs, dampers = said(lambda: use(dl.load(XML)))
    assert springs.startswith("'toy': springs that are not linear are taken as linear (2): one, two.")
    assert dampers.startswith(
        "'toy': damping that is not linear is taken as linear (1): one. Add the rest of the force"
    )


def test_loading_says_nothing_aloud():
    assert said(lambda: dl.load(XML)) == []


def test_what_is_doubtful_in_a_file_is_no_omission():
    assert dl.load(XML).omissions == dl.load(XML).warnings
