"""Shapes, equality constraints, actuators and tendons of a compiled MuJoCo model.

A shape that can collide has the role "collision", others are "visual". Ellipsoids have three half-axes; planes, across
z of their frame, half their lengths along x and y, zero if they have no end. MuJoCo moves a mesh to its center of mass;
its placement here is that of the file's own frame again. A mesh without a file that can be read here, such as one with
vertices in the model's own file, keeps MuJoCo's frame and the vertices of MuJoCo's hull.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from delassus.model.equality import Connect, Equality, JointCoupling, TendonCoupling, WeldEquality
from delassus.model.parts import HEIGHT_FIELD, WORLD, Frame, Geometry
from delassus.model.placement import ZERO, vector
from delassus.model.readers.documents.meshes import is_readable
from delassus.model.readers.mjcf_contact import contact_fields
from delassus.model.readers.mjcf_names import MjcfNames, text_at
from delassus.model.readers.mjcf_tree import BALL, FREE, MjcfTree, placement
from delassus.model.transmission import CARRIED, PULLEY, STATELESS, Actuator, Obstacle, Tendon

_GREY = (0.5, 0.5, 0.5, 1.0)  # MuJoCo's default color, which gives way to that of a material
_CONNECT, _WELD, _JOINT, _TENDON = range(4)  # mjtEq
_SITE = 6  # mjOBJ_SITE
_WRAP_JOINT, _WRAP_PULLEY, _WRAP_SITE, _WRAP_SPHERE = 1, 2, 3, 4  # mjtWrap
_LEAST = 1e-15  # mjMINVAL
_GROUPS = 30  # actuators of groups up to this number can be switched off
_IN_PARENT = 1  # mjTRN_JOINTINPARENT
_DRIVES = ("joint", "joint", "slider-crank", "tendon", "site", "body")  # mjtTrn


def shapes(mujoco: Any, m: Any, tree: MjcfTree, names: MjcfNames) -> list[Geometry]:
    """The shapes; signed distance fields, and height fields that move, are left out."""
    result = []
    for g in range(m.ngeom):
        joint, at = tree.placed(m.geom_bodyid[g], m.geom_pos[g], m.geom_quat[g])
        shape, size = _shape(mujoco.mjtGeom, m, g)
        if not shape:
            continue
        mesh, k = "", m.geom_dataid[g]
        role, contact = contact_fields(mujoco, m, tree, g)
        if shape == HEIGHT_FIELD:
            if joint != WORLD or role != "collision":
                continue
            contact |= {"heights": _heights(m, k)}
        if shape == "mesh":
            mesh = _path(m, k)
            if is_readable(mesh):
                at *= placement(m.mesh_pos[k], m.mesh_quat[k]).inverse()
            else:
                size, contact = (1.0, 1.0, 1.0), contact | {"vertices": _hull_vertices(m, k)}
        result.append(Geometry(names.geoms[g], joint, at, shape, size, role, mesh, _color(m, g), **contact))
    return result


def _heights(m: Any, field: int) -> tuple[tuple[float, ...], ...]:
    """The heights (rows, columns) [m] of a height field with rows along x, as MuJoCo's columns are."""
    rows, columns, start = int(m.hfield_nrow[field]), int(m.hfield_ncol[field]), int(m.hfield_adr[field])
    data = m.hfield_data[start : start + rows * columns].reshape(rows, columns).T.astype(float)
    return tuple(map(tuple, (float(m.hfield_size[field, 2]) * data).tolist()))


def _hull_vertices(m: Any, mesh: int) -> tuple[tuple[float, ...], ...]:
    """The vertices of a mesh's hull in MuJoCo's frame; all of its vertices if MuJoCo has found no hull."""
    start, graph = int(m.mesh_vertadr[mesh]), int(m.mesh_graphadr[mesh])
    rows = np.arange(m.mesh_vertnum[mesh])
    if graph >= 0:  # numbers of vertices and faces, where edges of each vertex begin, then the vertices themselves
        count = int(m.mesh_graph[graph])
        rows = m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count]
    vertices = np.unique(m.mesh_vert[start + rows].astype(float), axis=0)
    return tuple(map(tuple, vertices.tolist()))


def _shape(kinds: Any, m: Any, g: int) -> tuple[str, tuple[float, ...]]:
    """The name and the lengths of a shape; no name if it has none here."""
    a, b, c = m.geom_size[g].tolist()
    match kinds(int(m.geom_type[g])):
        case kinds.mjGEOM_SPHERE:
            return "sphere", (a,)
        case kinds.mjGEOM_BOX:
            return "box", (2.0 * a, 2.0 * b, 2.0 * c)
        case kinds.mjGEOM_CAPSULE:
            return "capsule", (a, 2.0 * b)
        case kinds.mjGEOM_CYLINDER:
            return "cylinder", (a, 2.0 * b)
        case kinds.mjGEOM_ELLIPSOID:
            return "ellipsoid", (a, b, c)
        case kinds.mjGEOM_PLANE:
            return "plane", (a, b)
        case kinds.mjGEOM_MESH:
            return "mesh", tuple(m.mesh_scale[m.geom_dataid[g]].tolist())
        case kinds.mjGEOM_HFIELD:
            return HEIGHT_FIELD, tuple((2.0 * m.hfield_size[m.geom_dataid[g], :2]).tolist())
        case _:
            return "", ()


def _path(m: Any, mesh: int) -> str:
    """The file of a mesh; empty if the vertices are in the model's own file."""
    start = m.mesh_pathadr[mesh]
    return text_at(m.paths, start) if start >= 0 else ""


def _color(m: Any, g: int) -> tuple[float, ...]:
    color, material = tuple(m.geom_rgba[g].tolist()), m.geom_matid[g]
    return tuple(m.mat_rgba[material].tolist()) if material >= 0 and color == _GREY else color


@dataclass(frozen=True)
class Equalities:
    """Constraints, the frames at their anchors, and the names of those that are not carried, by their kind."""

    constraints: tuple[Equality, ...]
    frames: tuple[Frame, ...]
    skipped: tuple[tuple[str, str], ...]


def equalities(mujoco: Any, m: Any, tree: MjcfTree, names: MjcfNames, taken: set[str]) -> Equalities:
    """The equality constraints that are active at the start; `taken` are the names that frames have already.

    Frames at the anchors are called after the constraint, with _1 and _2; those between sites use their frames.
    """
    constraints: list[Equality] = []
    frames: list[Frame] = []
    skipped: list[tuple[str, str]] = []
    for i in range(m.neq):
        name, kind, data = names.equalities[i], int(m.eq_type[i]), m.eq_data[i]
        first, second = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        if not m.eq_active0[i]:
            skipped.append(("inactive", name))
        elif kind in (_CONNECT, _WELD):
            make = Connect if kind == _CONNECT else WeldEquality
            if m.eq_objtype[i] == _SITE:
                constraints.append(make(name, names.sites[first], names.sites[second]))
                continue
            # A connect has its anchor in body 1, then in body 2; a weld in body 2, then in body 1, and the turn there.
            one, two = (data[:3], data[3:6]) if kind == _CONNECT else (data[3:6], data[:3])
            turn = data[6:10] if kind == _WELD else (1.0, 0.0, 0.0, 0.0)
            pair = (_anchor(name, "1", taken), _anchor(name, "2", taken))
            frames += [Frame(pair[0], *tree.placed(first, one, turn)), Frame(pair[1], *tree.placed(second, two))]
            constraints.append(make(name, *pair))
        elif kind == _JOINT:
            other = names.joints[second] if second >= 0 else None
            r1, r2 = (float(m.qpos0[m.jnt_qposadr[j]]) if j >= 0 else 0.0 for j in (first, second))
            constraints.append(JointCoupling(name, names.joints[first], other, tuple(data[:5].tolist()), r1, r2))
        elif kind == _TENDON:
            other = names.tendons[second] if second >= 0 else None
            r1, r2 = (float(m.tendon_length0[t]) if t >= 0 else 0.0 for t in (first, second))
            constraints.append(TendonCoupling(name, names.tendons[first], other, tuple(data[:5].tolist()), r1, r2))
        else:
            skipped.append((_enum(mujoco.mjtEq, kind), name))
    return Equalities(tuple(constraints), tuple(frames), tuple(skipped))


def _anchor(name: str, number: str, taken: set[str]) -> str:
    return free_name(f"{name}_{number}", taken)


def free_name(frame: str, taken: set[str]) -> str:
    """A free name for a frame, which is reserved from then on."""
    while frame in taken:
        frame += "_anchor"
    taken.add(frame)
    return frame


def tendons(
    m: Any, tree: MjcfTree, names: MjcfNames, taken: set[str], left_out: Collection[str] = ()
) -> tuple[tuple[Tendon, ...], tuple[Frame, ...]]:
    """The tendons, without some of their fields, and frames at the shapes that strings run around."""
    none = {"stiffness": 0.0, "rest": (), "damping": 0.0, "range": (), "friction": 0.0}
    defaults: dict[str, Any] = {name: value for name, value in none.items() if name in left_out}
    wrapped = sorted(set(m.wrap_objid[m.wrap_type > _WRAP_SITE].tolist()))
    frames = {
        g: Frame(free_name(names.geoms[g], taken), *tree.placed(m.geom_bodyid[g], m.geom_pos[g], m.geom_quat[g]))
        for g in wrapped
    }
    all_tendons = (_tendon(m, names, {g: frame.name for g, frame in frames.items()}, t) for t in range(m.ntendon))
    return tuple(replace(tendon, **defaults) for tendon in all_tendons), tuple(frames.values())


def _tendon(m: Any, names: MjcfNames, frames: dict[int, str], t: int) -> Tendon:
    terms: list[tuple[str, float]] = []
    path: list[str | Obstacle] = []
    for w in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
        kind, k, number = m.wrap_type[w], int(m.wrap_objid[w]), float(m.wrap_prm[w])
        if kind == _WRAP_JOINT:
            terms.append((names.joints[k], number))
        elif kind == _WRAP_PULLEY:
            path.append(f"{PULLEY}{number!r}")
        elif kind == _WRAP_SITE:
            path.append(names.sites[k])
        else:
            side = names.sites[round(number)] if number >= 0.0 else ""
            shape = "sphere" if kind == _WRAP_SPHERE else "cylinder"
            path.append(Obstacle(frames[k], shape, float(m.geom_size[k, 0]), side))
    stiffness = float(m.tendon_stiffness[t])
    return Tendon(
        names.tendons[t],
        tuple(terms),
        tuple(path),
        stiffness,
        float(m.tendon_damping[t]),
        tuple(m.tendon_lengthspring[t].tolist()) if stiffness else (),
        _tendon_range(m, t),
        float(m.tendon_frictionloss[t]),
    )


def _tendon_range(m: Any, t: int) -> tuple[float, ...]:
    """The limits of a tendon, which push to the margin from the ends of its range."""
    if not m.tendon_limited[t]:
        return ()
    margin = float(m.tendon_margin[t])
    return float(m.tendon_range[t, 0]) + margin, float(m.tendon_range[t, 1]) - margin


def actuators(mujoco: Any, m: Any, names: MjcfNames) -> tuple[Actuator, ...]:
    """The actuators; those that the file switches off, all or by their group, have no force."""
    disable_bits, flags = mujoco.mjtDisableBit, int(m.opt.disableflags)
    all_actuators = [_actuator(mujoco, m, names, i) for i in range(len(names.actuators))]
    if flags & int(disable_bits.mjDSBL_CLAMPCTRL):
        all_actuators = [replace(one, control_range=()) for one in all_actuators]
    for i, one in enumerate(all_actuators):
        group = int(m.actuator_group[i])
        if flags & int(disable_bits.mjDSBL_ACTUATION) or (0 <= group <= _GROUPS and m.opt.disableactuator >> group & 1):
            zero_force: dict[str, Any] = {"gain": ZERO, "bias": ZERO, "law": "affine", "law_parameters": ()}
            all_actuators[i] = replace(one, **zero_force, kind="affine", force_range=())
    return tuple(all_actuators)


def _actuator(mujoco: Any, m: Any, names: MjcfNames, i: int) -> Actuator:
    dynamics, gain, bias = (
        _enum(kinds, values[i])
        for kinds, values in (
            (mujoco.mjtDyn, m.actuator_dyntype),
            (mujoco.mjtGain, m.actuator_gaintype),
            (mujoco.mjtBias, m.actuator_biastype),
        )
    )
    left_out = [word for word in (dynamics, gain, bias) if word not in ("none", "fixed", "affine")]
    transmission, target = int(m.actuator_trntype[i]), int(m.actuator_trnid[i, 0])
    drives = _DRIVES[transmission] if transmission < len(_DRIVES) else _enum(mujoco.mjtTrn, transmission)
    if transmission == _IN_PARENT and m.jnt_type[target] in (FREE, BALL):
        drives = "joint-in-parent"
    other = int(m.actuator_trnid[i, 1]) if drives in ("site", "slider-crank") else -1
    targets = {
        "joint": names.joints,
        "joint-in-parent": names.joints,
        "tendon": names.tendons,
        "body": names.bodies,
    }.get(drives, names.sites)
    muscle = _muscle(m, i, bias) if gain == "muscle" else ()
    if "muscle" in (gain, bias) and not muscle:
        left_out.append("mixed")
    g0, g1, g2 = (0.0, 0.0, 0.0) if muscle else m.actuator_gainprm[i, :3].tolist()
    control = m.actuator_ctrladr[i]
    return Actuator(
        names.actuators[i],
        drives,
        targets[target] if 0 <= target < len(targets) else "",
        (g0, 0.0, 0.0) if gain == "fixed" else (g0, g1, g2),
        vector(m.actuator_biasprm[i, :3]) if bias == "affine" else (0.0, 0.0, 0.0),
        vector(m.actuator_gear[i, :3]),
        vector(m.actuator_gear[i, 3:]),
        tuple(m.actuator_ctrlrange[control].tolist()) if m.actuator_ctrllimited[control] else (),
        tuple(m.actuator_forcerange[i].tolist()) if m.actuator_forcelimited[i] else (),
        " ".join(dict.fromkeys(left_out)) or "affine",
        dynamics if dynamics in CARRIED else STATELESS,
        tuple(m.actuator_dynprm[i, :3].tolist()) if dynamics in CARRIED else (),
        tuple(m.actuator_actrange[i].tolist()) if m.actuator_actlimited[i] else (),
        bool(m.actuator_actearly[i]),
        "muscle" if muscle else "affine",
        muscle,
        names.sites[other] if other >= 0 else "",
        float(m.actuator_cranklength[i]),
    )


def _muscle(m: Any, i: int, bias: str) -> tuple[float, ...]:
    """The parameters of a muscle's force law; empty if gain and bias are not of one muscle."""
    start, end, peak, scale, shortest, longest, fastest, passive, most = m.actuator_gainprm[i, :9].tolist()
    if bias == "none":
        passive = 0.0
    elif bias != "muscle" or not np.array_equal(m.actuator_biasprm[i, :9], m.actuator_gainprm[i, :9]):
        return ()
    peak = scale / max(float(m.actuator_acc0[i]), _LEAST) if peak < 0.0 else peak
    return start, end, peak, shortest, longest, fastest, passive, most, *m.actuator_lengthrange[i].tolist()


def _enum(kinds: Any, value: int) -> str:
    """MuJoCo's own word for a value, in lower case: mjDYN_FILTER is "filter"."""
    return str(kinds(int(value)).name).partition("_")[2].lower()
