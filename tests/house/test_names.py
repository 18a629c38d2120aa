"""Where names are: what one meets first in `dl`, all of it in namespaces, and old names where they were."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import delassus as dl

ROOT = Path(__file__).parents[2]
SPACES = [*dl.NAMESPACES, *dl.OWN_NAMES, "compiler"]
FIXED = re.findall(
    r"\w+",
    """
    load Model Mechanism kernel threads rnea crba aba forward_kinematics frame_jacobian kinetic_energy
    potential_energy integrate difference Point Weld Hinge Distance Coupling Implicit constrained_dynamics kkt
    prox_ltl prox_ltls prox_pv caba pv_soft pv_early delassus_matrix assemble impact project Status
    DelassusError
    """,
)
"""What scripts outside of the package rely on, in the front row."""
ELSEWHERE = re.findall(
    r"\w+",
    """
    Assembly DelassusWarning Inertia Kinematics ParameterCheck ParameterStatus ParametricModel Solution
    Velocities a_from_mujoco a_to_mujoco aba_derivatives bias_torques center_of_mass center_of_mass_jacobian
    centroidal_momentum centroidal_momentum_matrix centroidal_momentum_matrix_rate check_parameters
    clear_kernels compare constrained_derivatives constraint_bias constraint_error constraint_jacobian
    coriolis_matrix delassus_apply delassus_solve difference_derivatives frame_acceleration
    frame_acceleration_derivatives frame_bias frame_placements frame_velocity frame_velocity_derivatives
    from_mujoco from_pinocchio gravity_torques integrate_derivatives interpolate inverse_mass_matrix
    kernel_memory mass_report normalize operational_inertia passive_forces q_from_mujoco q_from_pinocchio
    q_to_mujoco q_to_pinocchio rnea_derivatives spring_energy three_steps torque_regressor udu udu_solve
    v_from_mujoco v_to_mujoco
    """,
)
"""Names that were in the front row once."""


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_front_row_has_some_forty_names():
    assert len(dl.__all__) <= 55 and set(FIXED) <= set(dl.__all__)


def test_a_directory_shows_the_front_row_and_the_namespaces():
    assert set(dir(dl)) == {*dl.__all__, *SPACES, "numpy"}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_that_moved_are_found_where_they_were(name):
    homes = [space for space in SPACES if name in getattr(dl, space).__all__] or ["errors"]
    assert len(homes) == 1
    assert getattr(dl, name) is getattr(getattr(dl, homes[0]), name)
    assert name not in dir(dl)


def test_every_name_has_one_home():
    names = [name for space in SPACES for name in getattr(dl, space).__all__]
    assert len(names) == len(set(names))
    assert set(dl.__all__) - set(names) == {"DelassusError", "__version__"}


@pytest.mark.parametrize("space", SPACES)
def test_a_type_checker_sees_the_names_that_are_there(space):
    module = getattr(dl, space)
    tree = ast.parse(Path(module.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {(node.module, alias.name) for node in block.body for alias in node.names}
    assert {name for _, name in seen} == set(module.__all__) == set(dir(module))
    for home, name in seen:
        assert getattr(import_module(home), name) is getattr(module, name)


def test_names_that_do_not_exist_are_attribute_errors():
    for module in (dl, dl.dynamics):
        with pytest.raises(AttributeError, match="abba"):
            module.abba  # noqa: B018


def test_an_import_waits_with_what_nobody_asked_for():
    loaded = in_a_new_process("import delassus, sys; print(*sys.modules)").split()
    assert not {"numpy", "llvmlite"} & set(loaded)
    loaded = in_a_new_process("import delassus as dl, sys; dl.load, dl.aba; print(*sys.modules)").split()
    assert not {"delassus.constrained.solvers", "delassus.model.converters.mujoco", "typer"} & set(loaded)


USED_IN_A_KERNEL = """
import delassus as dl
from delassus.model.generators import random_tree

@dl.kernel("(nq),(nv),(nv)->(nv),(m)")
def first(mechanism, q, v, tau):
    return dl.prox_pv(mechanism, q, v, tau)

tree = random_tree(3, seed=1)
first.program(dl.Mechanism(tree, dl.Point(tree.frame_list[-1].name)))
from delassus.dynamics.tree.sweep import ZERO
print(*(type(half).__name__ for half in ZERO))
"""


def test_a_module_that_a_kernel_is_first_to_ask_for_keeps_plain_numbers():
    assert in_a_new_process(USED_IN_A_KERNEL) == "ndarray ndarray"


def test_the_table_of_names_is_complete():
    page = (ROOT / "docs" / "names.md").read_text()
    rows = dict(re.findall(r"^\| `dl\.(\w+)` \|[^|]*\|(.*)\|$", page, re.MULTILINE))
    assert {space: sorted(re.findall(r"`(\w+)`", row)) for space, row in rows.items()} == {
        space: sorted(getattr(dl, space).__all__) for space in SPACES
    }


def test_the_table_of_the_front_row_is_complete():
    page = (ROOT / "docs" / "names.md").read_text().partition("All public names")[0].partition("|---|")[2]
    assert sorted(re.findall(r"`(\w+)`", page)) == sorted(set(dl.__all__) - {"__version__"})


@pytest.mark.parametrize(
    ("typo", "nearest"),
    [
        (lambda: dl.constrained_dynamic, "constrained_dynamics"),
        (lambda: dl.control.equilibrum, "equilibrium"),
        (lambda: dl.particles.clothe, "cloth"),
    ],
)
def test_typos_in_names_are_answered_with_the_nearest(typo, nearest):
    with pytest.raises(AttributeError, match=nearest):
        typo()
