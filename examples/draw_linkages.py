"""Draws the linkages of docs/closed_loops.md from where the library places their frames; `make pictures` runs it.

Red is where a constraint closes a loop: the tree of joints is cut open there.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sticks import FACE, FROM_THE_SIDE, INK, LOOP, View

import delassus as dl

OUTPUT = Path(__file__).parent.parent / "docs" / "images"
HOEKEN = Path(__file__).parent / "hoeken.urdf"
PALE, PATH = "#dfe6ec", "#e67e22"
ABOVE = View(-65.0, 22.0)

matplotlib.rcParams.update({"font.size": 10, "svg.hashsalt": "delassus"})


# --- what drawings are made of --------------------------------------------------------------------------------------


class Drawing:
    """Links, pivots and labels on a plot, of a model in a configuration."""

    def __init__(self, axis, model: dl.Model, q, view: View, *, labels: bool = True):
        self.axis, self.view, self.labels = axis, view, labels
        _, positions = dl.dynamics.frame_placements(model, q)
        self.positions = {frame.name: p for frame, p in zip(model.frame_list, positions, strict=True)}
        axis.set_aspect("equal")
        axis.axis("off")

    def at(self, place):
        """A frame by its name, or a point (3,) of the world, on the paper (2,)."""
        return self.view(self.positions[place] if isinstance(place, str) else np.array(place))

    def link(self, *places, width: float = 7.0, color: str = FACE, edge: str = INK) -> None:
        """A rigid bar through some places."""
        line = np.transpose([self.at(place) for place in places])
        shared = {"solid_capstyle": "round", "solid_joinstyle": "round", "zorder": 2}
        self.axis.plot(*line, color=edge, linewidth=width + 2.0, **shared)
        self.axis.plot(*line, color=color, linewidth=width, **shared)

    def area(self, *places, color: str = FACE, edge: str = INK, zorder: float = 1) -> None:
        """A plate with some corners."""
        corners = np.transpose([self.at(place) for place in places])
        self.axis.fill(*corners, facecolor=color, edgecolor=edge, linewidth=1.2, joinstyle="round", zorder=zorder)

    def pivot(self, *places, size: float = 6.0) -> None:
        """Joints of the tree."""
        for place in places:
            self.axis.plot(*self.at(place), "o", color="white", markeredgecolor=INK, markersize=size, zorder=4)

    def closure(self, *places, size: float = 8.0) -> None:
        """Where a loop is closed."""
        for place in places:
            self.axis.plot(
                *self.at(place),
                "o",
                color="white",
                markeredgecolor=LOOP,
                markeredgewidth=2.2,
                markersize=size,
                zorder=5,
            )

    def ground(self, *places, size: float = 0.022) -> None:
        """What stands still."""
        for place in places:
            x, z = self.at(place)
            self.axis.fill([x, x - size, x + size], [z, z - 1.6 * size, z - 1.6 * size], facecolor=PALE, edgecolor=INK)
            for k in np.linspace(-1.2, 0.9, 5):
                ends = [[x + k * size, x + (k - 0.35) * size], [z - 1.6 * size, z - 2.2 * size]]
                self.axis.plot(*ends, color=INK, linewidth=0.9)

    def label(self, text: str, place, offset, color: str = INK, **style) -> None:
        """Words [points away from a place], with a thin line to it."""
        if self.labels:
            line = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "shrinkB": 4.0} if any(offset) else None
            self.axis.annotate(
                text, self.at(place), offset, textcoords="offset points", color=color, arrowprops=line, zorder=6,
                **{"ha": "center", "va": "center", **style},
            )  # fmt: skip

    def middle(self, first, second, share: float = 0.5):
        """A point of the world between two frames."""
        return (1.0 - share) * self.positions[first] + share * self.positions[second]


# --- the linkages ---------------------------------------------------------------------------------------------------


def four_bar(axis, labels: bool = True) -> None:
    """The bundled four-bar: a crank turns, a rocker swings."""
    model = dl.load("four_bar")
    d = Drawing(axis, model, model.posture("home"), FROM_THE_SIDE, labels=labels)
    pivots = ("crank", "rocker")
    angles = np.linspace(0.0, 2 * np.pi, 100)
    axis.plot(0.15 * np.cos(angles), 0.15 * np.sin(angles), "--", color="#b8c4cf", linewidth=1.0, zorder=0)
    d.ground(*pivots)
    d.link("crank", "coupler")
    d.link("coupler", "coupler_end")
    d.link("rocker", "rocker_end")
    d.pivot(*pivots, "coupler")
    d.closure("coupler_end")
    d.label("crank", d.middle("crank", "coupler"), (-34, 0))
    d.label("coupler", d.middle("coupler", "coupler_end"), (0, 26))
    d.label("rocker", d.middle("rocker", "rocker_end"), (36, -6))
    d.label("the loop is closed here:\ncoupler_end on rocker_end", "coupler_end", (44, 32), LOOP)


def biped_leg(axis, labels: bool = True) -> None:
    """A leg of the bundled biped from the side: its knee is driven from the hip."""
    model = dl.load("biped")
    d = Drawing(axis, model, model.posture("home"), FROM_THE_SIDE, labels=labels)
    hip, knee, ankle = "left_thigh", "left_shin", "left_ankle"
    x, _, z = d.positions["pelvis"]
    d.area(*[(x + a, 0.0, z + b) for a, b in ((-0.1, -0.08), (0.1, -0.08), (0.1, 0.08), (-0.1, 0.08))], color=PALE)
    d.link((x, 0.0, z - 0.08), hip, width=12.0, color=PALE)
    d.link(hip, knee, width=10.0)
    d.link(knee, ankle, width=9.0)
    foot_x, _, foot_z = d.positions["left_sole"]
    d.area(ankle, (foot_x + 0.11, 0.0, foot_z), (foot_x - 0.11, 0.0, foot_z))
    d.link(knee, "left_lever", width=6.0)
    d.link(hip, "left_rod", width=5.0, color="#a9c6dd")
    d.link("left_rod", "left_rod_end", width=5.0, color="#a9c6dd")
    d.pivot(hip, knee, ankle, "left_rod")
    d.closure("left_rod_end")
    d.label("pelvis", (x + 0.1, 0.0, z + 0.04), (32, 0))
    d.label("crank,\nturned by a motor", "left_rod", (-72, 6))
    d.label("rod", d.middle("left_rod", "left_rod_end"), (-44, -4))
    d.label("thigh", d.middle(hip, knee), (44, 10))
    d.label("shin", d.middle(knee, ankle), (44, -6))
    d.label("the loop is closed here:\nrod_end on lever", "left_rod_end", (-60, -36), LOOP)
    d.label("foot", (foot_x + 0.06, 0.0, foot_z + 0.015), (44, 14))


def delta(axis, labels: bool = True) -> None:
    """The bundled delta: three arms move a platform that does not turn."""
    model = dl.load("delta")
    d = Drawing(axis, model, model.posture("home"), View(-78.0, 24.0), labels=labels)
    d.area(*[f"arm{k}" for k in range(3)], color=PALE, edge="#8395a7", zorder=0)
    sides = [f"{k}{side}" for k in range(3) for side in "ab"]
    for k in range(3):
        d.area(f"arm{k}", f"rod{k}a", f"rod{k}b", color="#a9c6dd", zorder=2)
        d.pivot(f"arm{k}", size=8.0)
    for side in sides:
        d.link(f"rod{side}", f"rod{side}_end", width=2.0)
        d.pivot(f"rod{side}", size=5.0)
    around = [f"rod{side}_socket" for side in ("0b", "0a", "1b", "1a", "2b", "2a")]
    d.area(*around, zorder=3)
    d.closure(*(f"rod{side}_end" for side in sides), size=5.5)
    d.label("base", (0.0, 0.0, 0.0), (0, 0))
    d.label("arm, turned by a motor", d.middle("arm0", "rod0a", 0.7), (0, 48))
    d.label("rod on a\nuniversal joint", d.middle("rod0a", "rod0a_end", 0.4), (52, -22))
    d.label("platform", (0.0, 0.0, d.positions["platform"][2]), (0, -36))
    d.label("six loops are closed here:\nends of rods on sockets", "rod1a_end", (-104, -12), LOOP)


def stewart(axis, labels: bool = True) -> None:
    """The bundled Stewart platform: six legs that grow and shrink."""
    model = dl.load("stewart")
    d = Drawing(axis, model, model.posture("home"), ABOVE, labels=labels)
    d.area(*[f"cylinder{k}" for k in range(6)], color=PALE, edge="#8395a7", zorder=0)
    for k in range(6):
        d.link(f"cylinder{k}", d.middle(f"cylinder{k}", f"piston{k}_end", 0.5), width=7.0)
        d.link(d.middle(f"cylinder{k}", f"piston{k}_end", 0.5), f"piston{k}_end", width=2.5, color="#a9c6dd")
        d.pivot(f"cylinder{k}")
    d.area(*[f"socket{k}" for k in range(6)], zorder=3)
    d.closure(*[f"socket{k}" for k in range(6)], size=6.5)
    d.label("base", (0.0, 0.0, 0.0), (0, 0))
    d.label("platform", (0.0, 0.0, 0.5), (0, 0))
    d.label("cylinder on a\nuniversal joint", d.middle("cylinder1", "piston1_end", 0.25), (64, 4))
    d.label("piston", d.middle("cylinder1", "piston1_end", 0.75), (46, 14))
    d.label("six loops are closed here:\nends of pistons on sockets", "socket4", (-70, 40), LOOP)


def hoeken(axis, labels: bool = True) -> None:
    """The linkage of examples/hoeken.urdf, and the path of its pen over a turn of the crank."""
    model = dl.load(HOEKEN)
    linkage = dl.Mechanism(model, dl.Point("coupler_middle", "rocker_end", rows="xz"))
    turn = np.linspace(0.0, 2 * np.pi, 181)
    up = np.full_like(turn, -np.pi / 2)
    q = dl.assemble(linkage, np.stack([turn, up - turn, up], -1), locked=["crank_joint"]).q
    d = Drawing(axis, model, q[110], FROM_THE_SIDE, labels=labels)
    axis.plot(*FROM_THE_SIDE(dl.frame_placement(model, q, frame="pen")[1]).T, color=PATH, linewidth=2.0, zorder=1)
    d.ground("crank", "rocker")
    d.link("crank", "coupler")
    d.link("coupler", "pen")
    d.link("rocker", "rocker_end")
    d.pivot("crank", "rocker", "coupler")
    d.closure("coupler_middle")
    axis.plot(*d.at("pen"), "o", color=PATH, markersize=7, zorder=5)
    d.label("crank", d.middle("crank", "coupler"), (-34, 6))
    d.label("coupler", d.middle("coupler_middle", "pen"), (-46, 0))
    d.label("rocker", d.middle("rocker", "rocker_end"), (44, 4))
    d.label("pen", "pen", (30, -22), PATH)
    d.label("the loop is closed here:\ncoupler_middle on rocker_end", "coupler_middle", (118, -4), LOOP)


def save(name: str, size: tuple[float, float], draw) -> None:
    """One drawing with its labels."""
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    draw(axis)
    axis.margins(0.08)
    write(name, figure)


def write(name: str, figure) -> None:
    """An SVG without a date: the same for the same drawing."""
    figure.savefig(OUTPUT / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=0.1)
    plt.close(figure)


def overview() -> None:
    """Four linkages side by side, named and without labels."""
    drawings = {"four-bar": four_bar, "delta robot": delta, "Stewart platform": stewart, "leg of a biped": biped_leg}
    figure, axes = plt.subplots(1, 4, figsize=(11.0, 3.2), gridspec_kw={"width_ratios": (3.0, 3.4, 3.0, 1.4)})
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.14, top=0.99, wspace=0.04)
    for axis, (title, draw) in zip(axes, drawings.items(), strict=True):
        draw(axis, labels=False)
        axis.margins(0.12, 0.04)
        box = axis.get_position()
        figure.text((box.x0 + box.x1) / 2, 0.03, title, color=INK, ha="center", fontsize=12)
    write("linkages", figure)


def main() -> None:
    """All pictures."""
    save("four_bar", (5.2, 3.4), four_bar)
    save("delta", (6.4, 4.6), delta)
    save("stewart", (6.0, 4.4), stewart)
    save("biped_leg", (4.8, 5.6), biped_leg)
    save("hoeken", (5.2, 4.8), hoeken)
    overview()


if __name__ == "__main__":
    main()
