"""The command line: `delassus info`, `delassus doctor`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from delassus import doctor as checks
from delassus.errors import DelassusError
from delassus.model.load import load
from delassus.model.model import WORLD, Joint, Model
from delassus.model.urdf import MimicMode, Root

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Constrained robot dynamics, compiled.")


@app.command()
def info(
    source: Annotated[str, typer.Argument(help="A URDF file, or a name of robot_descriptions.")],
    root: Annotated[Root, typer.Option(help="Whether the root link moves.")] = "fixed",
    mimic: Annotated[MimicMode, typer.Option(help="What joints that mimic others do.")] = "reduce",
) -> None:
    """Print a robot: its tree of joints with dofs and masses, totals, warnings."""
    console = Console()
    try:
        model = load(source, root=root, mimic=mimic)
    except (DelassusError, ValueError) as error:
        console.print(f"[bold red]error[/]  {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    console.print(_tree(model))
    mass = sum(joint.inertia.mass for joint in model.joints)
    mimics = len(model.joints) - len(model.independent)
    console.print(
        f"{len(model.joints)} joints ({mimics} mimic others), nq {model.nq}, nv {model.nv}, {model.nframes} frames, "
        f"{len(model.geometries)} shapes, {mass:.6g} kg moving, {model.base_inertia.mass:.6g} kg fixed"
    )
    for warning in model.warnings:
        console.print(f"[yellow]warning[/]  {escape(warning)}", highlight=False, soft_wrap=True)


def _tree(model: Model) -> Tree:
    """The joints as a tree, each with its kind, coordinates, mass and limits."""
    branches = {WORLD: Tree(f"[bold]{escape(model.name)}[/]")}
    for i, joint in enumerate(model.joints):
        branches[i] = branches[joint.parent].add(_line(model, i, joint), highlight=False)
    return branches[WORLD]


def _line(model: Model, i: int, joint: Joint) -> str:
    kind = "continuous" if getattr(joint.kind, "continuous", False) else joint.kind.label
    axis = getattr(joint.kind, "axis", None)
    about = "" if axis is None else " " + " ".join(f"{x:.3g}" for x in axis)
    v, nv = model.v_starts[i], joint.kind.nv
    dofs = f"v[{v}]" if nv == 1 else f"v[{v}:{v + nv}]"
    if joint.mimic:
        dofs = f"{joint.mimic.ratio:g}·{model.joints[joint.mimic.source].name} + {joint.mimic.offset:g}"
    limits = f"  [{joint.lower[0]:.3g}, {joint.upper[0]:.3g}]" if joint.lower and joint.upper else ""
    return f"{escape(joint.name)}  [dim]{kind}{about}  {escape(dofs + limits)}  {joint.inertia.mass:.4g} kg[/]"


@app.command()
def doctor() -> None:
    """Print versions, CPU, lanes and cache, then compile a small kernel and check it."""
    console = Console()
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for label, value in checks.facts().items():
        table.add_row(label, value)
    console.print(table)
    problem = checks.problem()
    if problem:
        console.print(f"[bold red]problem[/]  {problem}", highlight=False)
        raise typer.Exit(1)
    console.print("[bold green]ok[/]  a kernel was compiled and gives the interpreter's bits, one state and a batch")
