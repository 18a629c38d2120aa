"""Robots of a few lines of URDF."""

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'
MESH = "<visual><geometry><mesh filename='{}'/></geometry></visual>"


def joint(name, parent, child, inside=LIMIT, kind="revolute"):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def link(name, inside=MASS):
    return f'<link name="{name}">{inside}</link>'


def robot(*parts):
    """A robot whose parts are on lines 2, 3, and so on."""
    return "\n".join(['<robot name="r">', *parts, "</robot>"])


def arm(inside=LIMIT, kind="revolute", tip=MASS):
    """A link "a" on line 2, "b" on line 3, and the joint between them on line 4."""
    return robot(link("a"), link("b", tip), joint("j", "a", "b", inside, kind))


def mimicking(*inside, kind="revolute"):
    """Joints j0, j1, ... in a row with these contents, on lines 2, 3, and so on."""
    joints = [joint(f"j{k}", f"l{k}", f"l{k + 1}", text + LIMIT, kind) for k, text in enumerate(inside)]
    return robot(*joints, *(link(f"l{k}") for k in range(len(inside) + 1)))


FIXED = robot(
    link("a"),
    link("b"),
    link("c", MASS.replace("1", "2")),
    joint("j", "a", "b"),
    joint("f", "b", "c", '<origin xyz="0 0 3"/>', "fixed"),
)
