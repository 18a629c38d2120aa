"""The command line: `delassus info`, `export`, `compare`, `learn`, `play`, `doctor`."""

import difflib
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import delassus
from delassus import doctor as checks
from delassus import info as tables
from delassus.compiler.host.c99 import export_c
from delassus.compiler.host.kernel import Kernel, check_kernel, kernel_behind
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.errors import BadArgument, DelassusError
from delassus.model.equality import describe_equality
from delassus.model.model import Model
from delassus.model.readers.documents.xml import MAX_BYTES
from delassus.model.readers.load import load
from delassus.model.readers.urdf import MimicMode, Root
from delassus.model.reports.comparison import compare
from delassus.model.reports.mass_report import mass_report
from delassus.terminal import App, console, escape_text, format_table

app = App(add_completion=False, no_args_is_help=True, help="Constrained robot dynamics, compiled.")


@app.command()
def info(
    source: Annotated[
        str | None,
        typer.Argument(help="A URDF or MJCF file, the name of a robot, or - for standard input; none lists robots."),
    ] = None,
    root: Annotated[Root, typer.Option(help="Whether the root link moves.")] = "fixed",
    mimic: Annotated[MimicMode, typer.Option(help="What joints that mimic others do.")] = "reduce",
    masses: Annotated[bool, typer.Option("--masses", help="Also print masses and moments, and check them.")] = False,
    against: Annotated[str | None, typer.Option(help="Another robot: print what differs from it instead.")] = None,
) -> None:
    """Print a robot: its joints with coordinates and limits, frames, postures, constraints, totals, warnings."""
    screen = console()
    if source is None:
        _print_table(screen, tables.robot_table())
        return
    try:
        model = _load(source, root, mimic)
        other = None if against is None else _load(against, root, mimic)
    except (DelassusError, ValueError) as error:
        raise _report_failure(error) from None
    if other is not None:
        _print_differences(screen, model, other)
        return
    screen.print(tables.tree(model), soft_wrap=True)
    report = mass_report(model) if masses else None
    for table in (tables.joint_table(model), tables.frame_table(model), tables.posture_table(model)):
        _print_table(screen, table)
    _print_table(screen, tables.mass_table(report) if report else [])
    screen.print()
    for constraint in model.constraints:
        screen.print(f"constraint  {escape_text(describe_equality(constraint))}", highlight=False, soft_wrap=True)
    for line in tables.closures(model):
        screen.print(escape_text(line), highlight=False, soft_wrap=True)
    mimics = len(model.joints) - len(model.independent)
    screen.print(
        f"{len(model.joints)} joints ({mimics} mimic others), nq {model.nq}, nv {model.nv}, {model.nframes} frames, "
        f"{len(model.geometries)} shapes, {model.mass:.6g} kg moving, {model.base_inertia.mass:.6g} kg fixed",
        soft_wrap=True,
    )
    if model.constraints or model.actuators or model.tendons:
        counts = ((model.constraints, "constraints"), (model.actuators, "actuators"), (model.tendons, "tendons"))
        screen.print(", ".join(f"{len(parts)} {what}" for parts, what in counts), soft_wrap=True)
    _warn((*model.warnings, *(report.warnings if report else ())))


def _load(source: str, root: Root, mimic: MimicMode) -> Model:
    """The model of a file, a name, or, for "-", of what standard input has."""
    if source != "-":
        return load(source, root=root, mimic=mimic)
    text = sys.stdin.buffer.read(MAX_BYTES + 1).decode(errors="replace").lstrip("\ufeff \t\r\n")
    if not text.startswith("<"):
        raise DelassusError(
            "standard input is neither URDF nor MJCF; its first character must be <.", code="unreadable-file"
        )
    return load(text, root=root, mimic=mimic)


def _print_table(screen: Console, lines: list[str]) -> None:
    """Print a table after an empty line, its titles first; nothing if there is nothing but titles."""
    for k, line in enumerate(lines if len(lines) > 1 else ()):
        screen.print(
            f"\n[bold]{escape_text(line)}[/]" if k == 0 else escape_text(line), highlight=False, soft_wrap=True
        )


def _print_differences(screen: Console, model: Model, other: Model) -> None:
    """Print what differs between two robots; exit code 1 if anything does, as with diff."""
    differences = compare(model, other)
    for difference in differences:
        screen.print(escape_text(str(difference)), highlight=False, soft_wrap=True)
    screen.print(f"{len(differences)} differences" if differences else "no differences")
    if differences:
        raise typer.Exit(1)


def _warn(warnings: Iterable[str]) -> None:
    screen = console(stderr=True)
    for warning in warnings:
        screen.print(f"[yellow]warning[/]  {escape_text(warning)}", highlight=False, soft_wrap=True)


def _report_failure(error: Exception) -> typer.Exit:
    """Print an error; the result is to be raised."""
    console(stderr=True).print(f"[bold red]error[/]  {escape_text(str(error))}", highlight=False, soft_wrap=True)
    return typer.Exit(1)


@app.command()
def export(
    source: Annotated[str, typer.Argument(help="A URDF or MJCF file, the name of a robot, or - for standard input.")],
    algorithm: Annotated[str, typer.Argument(help="A kernel, such as aba, rnea or frame_jacobian.")],
    out: Annotated[Path, typer.Option(help="The folder for the files; made if needed.")],
    root: Annotated[Root, typer.Option(help="Whether the root link moves.")] = "fixed",
    mimic: Annotated[MimicMode, typer.Option(help="What joints that mimic others do.")] = "reduce",
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the kernel: frame=tool. May be repeated.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="An optional input of the kernel that the function takes: mask. May be repeated."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The name of the C function; the kernel's unless given.")] = None,
    fma: Annotated[bool, typer.Option(help="Whether products are fused into sums.")] = True,
    float32: Annotated[bool, typer.Option("--float32", help="Numbers are float instead of double.")] = False,
) -> None:
    """Write an algorithm for one robot as C99: name.h, name.c and a program name_check.c that checks the bits."""
    screen = console()
    try:
        kernel = _kernel(algorithm)
        options = dict(_option(kernel, text) for text in option or ())
        model = _load(source, root, mimic)
        dtype = "float32" if float32 else "float64"
        given = _mechanism(kernel, model) if kernel.takes is Mechanism else model
        files = export_c(kernel, given, out, name=name, fma=fma, dtype=dtype, inputs=inputs or (), **options)
    except (DelassusError, ValueError, TypeError, OSError) as error:
        raise _report_failure(error) from None
    _warn(model.warnings)
    for file in files:
        screen.print(f"[bold green]wrote[/]  {escape_text(str(file))}", highlight=False, soft_wrap=True)
    sources = " ".join(file.name for file in files if file.suffix == ".c")
    screen.print(
        f"check there: cc -std=c99 -O2 -ffp-contract=off {sources} -lm && ./a.out", highlight=False, soft_wrap=True
    )


def _kernel(name: str) -> Kernel[..., Any]:
    """The kernel of this name among those that the package exports, or that its functions are around."""
    public = {n: getattr(delassus, n) for room in delassus.NAMESPACES for n in getattr(delassus, room).__all__}
    kernels = {n: x for n, x in public.items() if isinstance(x, Kernel)}
    kernels |= {k.name: k for x in public.values() if (k := kernel_behind(x)) is not None}
    if name not in kernels:
        if kernel_behind(public.get(name)) is not None:
            check_kernel(public[name])
        near = difflib.get_close_matches(name, kernels, n=5, cutoff=0.4) or sorted(kernels)
        raise BadArgument(f"there is no algorithm {name!r}. The nearest are: {', '.join(near)}.", code="unknown-name")
    return kernels[name]


def _mechanism(kernel: Kernel[..., Any], model: Model) -> Mechanism:
    """A robot with the constraints that it comes with, for kernels of mechanisms."""
    if not model.constraints:
        raise BadArgument(
            f"{kernel.name} is of a mechanism, and {model.name!r} comes without constraints: add them in Python, and "
            "export it by delassus.compiler.export_c.",
            code="not-supported",
        )
    return Mechanism(model)


def _option(kernel: Kernel[..., Any], text: str) -> tuple[str, Any]:
    """An option from its text, `name=value`, with the type of its default; options without one are text."""
    name, sign, value = text.partition("=")
    if not sign:
        raise BadArgument(f"the option {text!r} cannot be read: write name=value.", code="bad-argument")
    if name not in kernel.options and name not in kernel.signature.optional:
        known = ", ".join((*kernel.options, *kernel.signature.optional)) or "none"
        raise BadArgument(f"{kernel.name} has no option {name!r}; its options are: {known}.", code="unknown-option")
    default = kernel.options.get(name, 0.0)  # an optional input whose numbers are to be compiled in
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise BadArgument(f"the option {name} is true or false, not {value!r}.", code="not-a-boolean")
        return name, value.lower() == "true"
    if isinstance(default, int | float):
        try:
            return name, type(default)(value)
        except ValueError:
            raise BadArgument(f"the option {name} is a number, not {value!r}.", code="not-a-number") from None
    if default is None or default is inspect.Parameter.empty or isinstance(default, str):
        return name, value
    raise BadArgument(
        f"the option {name} cannot be given on the command line: use delassus.compiler.export_c in Python.",
        code="not-supported",
    )


@app.command("compare")
def compare_engines(
    source: Annotated[str, typer.Argument(help="An MJCF file.")],
    seconds: Annotated[float, typer.Option(help="How long to simulate, in seconds.")] = 1.0,
    noise: Annotated[float, typer.Option(help="Size of random controls, as a share of their range.")] = 0.0,
    plot: Annotated[Path | None, typer.Option(help="Write a plot of both motions to this file.")] = None,
) -> None:
    """Simulate an MJCF file here and in MuJoCo: print when the motions diverge, and which quantities differ."""
    from delassus.against_mujoco import compare_with_mujoco, plot_comparison  # imports all of simulation

    screen = console()
    try:
        result = compare_with_mujoco(source, seconds, noise)
        if plot is not None:
            plot_comparison(result, plot)
    except (DelassusError, ValueError, OSError, ImportError) as error:
        raise _report_failure(error) from None
    rows = [(i.name, "agrees" if i.agrees else "differs", f"{i.difference:.2g}", i.remark) for i in result.ingredients]
    _print_table(screen, format_table(("at MuJoCo's states", "", "by", ""), rows))
    screen.print()
    if result.parted_at is None:
        screen.print(f"the motions agree to 1 mm and 1 mrad for {seconds:g} s", soft_wrap=True)
    else:
        screen.print(
            f"the motions diverge after {result.parted_at:g} s, joint {escape_text(result.parted_joint)} first"
        )


@app.command()
def learn(
    task: Annotated[
        str | None, typer.Argument(help="A task, such as quadruped-walk. Omit it to list the tasks.")
    ] = None,
    robot: Annotated[str | None, typer.Option(help="Another robot: its name, or a URDF or MJCF file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    minutes: Annotated[
        float, typer.Option(help="Time limit, not counting the first iteration, which may compile.")
    ] = 3.0,
    out: Annotated[Path, typer.Option(help="Folder for checkpoint, policy, curves and film.")] = Path("run"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint in the folder.")] = False,
    until: Annotated[str, typer.Option(help="When to end: goal, halfway, or none (at the time limit only).")] = "goal",
) -> None:
    """Train a policy; write it with learning curves and a film. Ctrl-C ends training and keeps the policy."""
    from delassus.learning.learner.training import Budget, Progress, train
    from delassus.learning.results.session import FILM, PAGE, progress_line, show
    from delassus.learning.tasks.catalog import find_task, task_names

    screen = console()
    if task is None:
        _print_table(screen, format_table(("task", ""), list(task_names().items())))
        return

    def tell(progress: Progress) -> None:
        if progress.iteration % 10 == 0 or progress.verdict is not None:
            screen.print(progress_line(task or "", progress, minutes), highlight=False, soft_wrap=True)

    try:
        found = find_task(task, robot)
        budget = Budget(minutes=minutes, goal=until)
        screen.print(f"compiling for {escape_text(found.robot.name)}; the first time takes longest", highlight=False)
        training = train(task, found, seed=seed, budget=budget, out=out, resume=resume, progress=tell)
        seconds = training.history[-1].seconds if training.history else 0.0
        screen.print(f"{training.ending} after {seconds:.1f} s", soft_wrap=True)
        verdict = show(out, task, found, training)
    except (DelassusError, ValueError, OSError) as error:
        raise _report_failure(error) from None
    screen.print(f"four robots that follow the policy: {verdict}", highlight=False, soft_wrap=True)
    for file in (out / PAGE, out / FILM):
        screen.print(f"[bold green]wrote[/]  {escape_text(str(file))}", highlight=False, soft_wrap=True)


@app.command()
def play(
    run: Annotated[
        Path, typer.Argument(help="A folder written by learn, a policy file, or a task with a bundled policy.")
    ],
    robot: Annotated[str | None, typer.Option(help="The robot of the training, if it was not the task's own.")] = None,
    command: Annotated[str | None, typer.Option(help="Command to the robots, such as 0.5,0,0 for a velocity.")] = None,
    out: Annotated[Path, typer.Option(help="File of the film.")] = Path("film.html"),
    export_as: Annotated[
        str | None, typer.Option("--export", help="Also export the policy as c, numpy or onnx.")
    ] = None,
) -> None:
    """Film robots that follow a policy and a command; export the policy."""
    from delassus.learning.results.export import export_policy
    from delassus.learning.results.session import film, load_run, parse_command

    screen = console()
    try:
        task, policy = load_run(run, robot)
        told = None if command is None else parse_command(task, command)
        verdict = film(out, task, policy, told)
        files = [out] if export_as is None else [out, *export_policy(policy, out.parent, export_as)]
    except (DelassusError, ValueError, OSError) as error:
        raise _report_failure(error) from None
    screen.print(verdict, highlight=False, soft_wrap=True)
    for file in files:
        screen.print(f"[bold green]wrote[/]  {escape_text(str(file))}", highlight=False, soft_wrap=True)


@app.command()
def doctor() -> None:
    """Print versions, CPU, lanes and cache, then compile a small kernel and check it."""
    screen = console()
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    try:
        for label, value in checks.facts().items():
            table.add_row(label, escape_text(value))
        screen.print(table)
        problem = checks.problem()
    except DelassusError as error:
        raise _report_failure(error) from None
    if problem:
        screen.print(f"[bold red]problem[/]  {escape_text(problem)}", highlight=False, soft_wrap=True)
        raise typer.Exit(1)
    screen.print(
        "[bold green]ok[/]  a kernel was compiled and gives the interpreter's bits, one state and a batch",
        soft_wrap=True,
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(delassus.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Constrained robot dynamics, compiled."""
