"""Old names of large systems work, and warn with the new ones."""

import numpy as np
import pytest

import delassus as dl
import delassus.particles as P


class Below:
    """An obstacle with the old name of its method."""

    def touched(self, x):
        return x[..., 2], np.broadcast_to([0.0, 0.0, 1.0], x.shape)


def test_an_obstacle_with_the_old_method_is_adapted():
    with pytest.warns(DeprecationWarning, match="gap_and_normal"):
        rope = P.rope(segments=2, obstacles=[Below()])
    assert rope.obstacles[0].gap_and_normal(np.zeros((1, 3)))[0] == 0.0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("energy_of", "total_energy"),
        ("elastic_energy_of", "total_elastic_energy"),
        ("kinetic_energy_of", "total_kinetic_energy"),
        ("momentum_of", "total_momentum"),
        ("start_of", "initial_state"),
    ],
)
def test_old_functions_warn_with_the_new_name(old, new):
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(P, old) is getattr(P, new)


def test_old_attributes_warn_with_the_new_name():
    body = dl.model.Inertia.of(1.0)
    with pytest.warns(DeprecationWarning, match="transform"):
        assert body.moved(dl.Placement()) == body
