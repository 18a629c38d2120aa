"""Kernels exported as C compile without warnings and have the bits of the interpreter and of compiled kernels."""

import ctypes
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import delassus as dl
import delassus.numpy as dnp
from c_code import COMPILERS, check, compile_c, library, needs_compiler, normal_numbers
from delassus.cli import app
from delassus.compiler.backends.c_program import emit_c, emit_check
from delassus.compiler.backends.c_text import OPERATIONS, c_name, literal
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import CHUNK
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.program import Operand, Program
from delassus.compiler.host.c99 import export_c, random_states
from delassus.compiler.host.kernel import Kernel
from delassus.constrained.solvers.kkt import dense_system
from delassus.model.generators import random_tree
from how_many import examples
from loop_programs import SIZE, nests
from loop_programs import run as run_nest
from native_bits import assert_same_bits
from programs import programs
from refusals import refuses

TREE = random_tree(4, seed=3)
HELD = dl.Mechanism(TREE, (dl.Point(TREE.frame_list[-1].name),))
URDF = """<robot name="arm"><link name="base"/><link name="tool"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="tool"/><axis xyz="0 0 1"/>
<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/></joint></robot>"""


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("optimize", ["-O0", "-O2"])
@pytest.mark.parametrize("kernel", [dl.aba, dl.rnea, dl.crba, dl.forward_kinematics], ids=lambda k: k.name)
def test_algorithms_have_the_bits_of_the_interpreter(kernel, compiler, optimize, tmp_path):
    states = random_states(kernel, TREE, 7)
    check(kernel, tmp_path, *states, model=TREE, compiler=compiler, optimize=optimize)


@needs_compiler
@pytest.mark.parametrize("kernel", [dl.aba, dl.rnea], ids=lambda k: k.name)
def test_algorithms_have_the_bits_of_the_compiled_kernel(kernel, tmp_path):
    states = random_states(kernel, TREE, 20)
    call = library(kernel.program(TREE), tmp_path, fma=Target.host().fma)
    expected = kernel.specialize(TREE)(*states)
    for k in range(20):
        assert_same_bits(call(*[x[k] for x in states])[0], expected[k])


@needs_compiler
@pytest.mark.parametrize("fma", [True, False], ids=["fused", "unfused"])
def test_algorithms_in_float32_have_the_bits_of_the_interpreter(fma, tmp_path):
    states = [x.astype(np.float32) for x in random_states(dl.aba, TREE, 7)]
    check(dl.aba, tmp_path, *states, model=TREE, fma=fma, dtype=np.float32)
    source = (tmp_path / "f.c").read_text() + (tmp_path / "f.h").read_text()
    assert not re.search(r"\bdouble\b|\bfma\(|\bsqrt\(|p[+-]\d+\b", source)


@needs_compiler
def test_algorithms_in_float32_have_the_bits_of_the_compiled_kernel(tmp_path):
    states = [x.astype(np.float32) for x in random_states(dl.aba, TREE, 20)]
    call = library(dl.aba.program(TREE), tmp_path, fma=Target.host().fma, dtype=np.float32)
    expected = dl.aba(TREE, *states, dtype=np.float32)
    for k in range(20):
        assert_same_bits(call(*[x[k] for x in states])[0], expected[k])


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_check_program_of_float32_says_ok(compiler, tmp_path):
    _, *sources = export_c(dl.aba, TREE, tmp_path, dtype=np.float32)
    program = compile_c(tmp_path, "check", *sources, compiler=compiler, shared=False)
    assert subprocess.run([program], capture_output=True, text=True, check=False).stdout == "ok\n"


@needs_compiler
def test_a_kernel_with_parameters_says_ok(tmp_path):
    _, *sources = export_c(dl.aba, TREE.parametric("inertia", "placement"), tmp_path)
    program = compile_c(tmp_path, "check", *sources, shared=False)
    assert subprocess.run([program], capture_output=True, text=True, check=False).stdout == "ok\n"


@needs_compiler
def test_every_kernel_of_the_package_says_ok(tmp_path):
    rooms = (dl.dynamics, dl.constrained, dl.derivatives)
    kernels = [k for room in rooms for name in room.__all__ if isinstance(k := getattr(room, name), Kernel)]
    for kernel in kernels:
        frame = {"frame": TREE.frame_list[-1].name} if "frame" in kernel.options else {}
        _, *sources = export_c(kernel, HELD if kernel.takes is dl.Mechanism else TREE, tmp_path, states=2, **frame)
        program = compile_c(tmp_path, kernel.name, *sources, shared=False, optimize="-O0")
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        assert done.stdout == "ok\n", f"{kernel.name}: {done.stdout}"
    assert len(kernels) > 40


@needs_compiler
def test_optional_inputs_are_arguments_after_the_others(tmp_path):
    header, *sources = export_c(dl.caba, HELD, tmp_path, inputs=("time", "mask"), states=3)
    assert "const double *tau, const double *mask, const double *time, double *out0" in header.read_text()
    program = compile_c(tmp_path, "check", *sources, shared=False)
    assert subprocess.run([program], capture_output=True, text=True, check=False).stdout == "ok\n"


@needs_compiler
def test_optional_inputs_come_before_parameters(tmp_path):
    @dl.kernel("(nq)->(nq)", inputs={"gain": "()"})
    def scaled(model, q, *, gain=None):
        return q * gain * model.gravity[2]

    header, *sources = export_c(scaled, TREE.parametric("gravity"), tmp_path, inputs="gain", states=3)
    assert "const double *q, const double *gain, const double *parameters" in header.read_text()
    program = compile_c(tmp_path, "check", *sources, shared=False)
    assert subprocess.run([program], capture_output=True, text=True, check=False).stdout == "ok\n"


def test_an_unknown_optional_input_is_refused(tmp_path):
    with pytest.raises(TypeError, match="each of these at most once: mask, force, acceleration, time, proximal"):
        export_c(dl.caba, HELD, tmp_path, inputs=("weights",))


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (dl.constrained_dynamics, {"method": "prox_pv", "inputs": ("force",)}),
        (dl.assemble, {}),
        (dl.project, {}),
        (dl.impact, {"inputs": ("mask",)}),
        (dense_system, {}),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_kernels_with_named_results_say_ok(kernel, options, tmp_path):
    _, *sources = export_c(kernel, HELD, tmp_path, states=2, **options)
    program = compile_c(tmp_path, "check", *sources, shared=False, optimize="-O0")
    assert subprocess.run([program], capture_output=True, text=True, check=False).stdout == "ok\n"


@pytest.mark.parametrize(
    ("function", "kernel"),
    [
        (dl.kkt, "delassus.constrained.solvers.kkt.dense_system"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_function_around_a_kernel_names_it(function, kernel, tmp_path):
    with pytest.raises(dl.DelassusError) as caught:
        export_c(function, HELD, tmp_path)
    assert str(caught.value) == (
        f"{function.__name__} is a function that calls a kernel; only kernels can be exported, so use {kernel}."
    )


@pytest.mark.parametrize("other", [np.sin, lambda x: x, None, "aba"], ids=["ufunc", "function", "none", "text"])
def test_what_is_no_kernel_cannot_be_exported(other, tmp_path):
    with refuses("not-a-kernel"):
        export_c(other, TREE, tmp_path)


def test_a_mechanism_is_exported_as_its_model(tmp_path):
    one, other = (export_c(dl.aba, of, tmp_path, states=0)[1].read_text() for of in (TREE, HELD))
    assert one == other


@needs_compiler
def test_without_fused_operations_it_has_the_bits_of_the_interpreter(tmp_path):
    check(dl.aba, tmp_path, *random_states(dl.aba, TREE, 5), model=TREE, fma=False)
    assert "fma(" not in (tmp_path / "f.c").read_text()


@dl.kernel("(4),(4,4)->(4),(4),(),(2,4),()")
def everything(model, x, A):
    turn = dnp.arctan2(dnp.sin(3.0 * x), dnp.cos(x))
    y = dnp.linalg.solve(A @ A.T + dnp.eye(4), turn, assume_a="pos")
    small = abs(x) < 0.5
    z = dnp.where(small ^ (y > 0.0), dnp.maximum(x, y), -dnp.sqrt(abs(y)))
    return z, small & ~(x == y), dnp.any(x > 1.0), dnp.stack([dnp.sign(x), dnp.minimum(x, 0.25)]), x @ y


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("chunk", [1, 7, CHUNK])
def test_a_kernel_of_everything_has_the_bits_of_the_interpreter(chunk, compiler, tmp_path):
    check(everything, tmp_path, normal_numbers(30, 4), normal_numbers(30, 4, 4, seed=1), chunk=chunk, compiler=compiler)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_elementary_functions_have_the_bits_of_the_interpreter(compiler, dtype, tmp_path):
    @dl.kernel("(),()->(8),(8)")
    def f(model, x, y):
        first = [dnp.exp(x), dnp.expm1(x), dnp.sinh(x), dnp.cosh(x), dnp.tanh(x), dnp.log(x), dnp.log1p(x), x**y]
        second = [dnp.sin(x), dnp.cos(x), dnp.tan(x), dnp.arcsin(x), dnp.arctan(x), dnp.hypot(x, y), -x, dnp.sqrt(x)]
        return dnp.stack(first), dnp.stack(second)

    x, y = normal_numbers(200).astype(dtype), normal_numbers(200, seed=1).astype(dtype)
    check(f, tmp_path, x, y, compiler=compiler, dtype=np.dtype(dtype))


@needs_compiler
@pytest.mark.parametrize("chunk", [1, CHUNK])
def test_outputs_may_be_inputs_constants_or_twice_the_same(chunk, tmp_path):
    @dl.kernel("(3),(),(2,2),(2)->(3),(),(5),(2,2),(),()")
    def f(model, x, y, A, unused):
        product = y * x[0]
        return x, y, dnp.array([0.0, -1.5, np.inf, -np.inf, np.nan]), A.T, dnp.array(True), product + product

    check(
        f,
        tmp_path,
        normal_numbers(9, 3),
        normal_numbers(9, seed=1),
        normal_numbers(9, 2, 2, seed=2),
        normal_numbers(9, 2),
        chunk=chunk,
    )


@needs_compiler
def test_arrays_may_be_empty(tmp_path):
    @dl.kernel("(0),(2)->(0),()")
    def f(model, x, y):
        return x, y[0]

    check(f, tmp_path, np.zeros((3, 0)), normal_numbers(3, 2))
    compile_check(f.program(None), [np.zeros((3, 0)), np.ones((3, 2))], tmp_path)


@needs_compiler
def test_an_output_may_be_the_array_of_an_input(tmp_path):
    program = dl.aba.program(TREE)
    q, v, tau = (x[0] for x in random_states(dl.aba, TREE, 1))
    library(program, tmp_path, chunk=20)
    function = ctypes.CDLL(str(tmp_path / "f.so")).f
    (expected,) = evaluate(program, q, v, tau)
    function(*[ctypes.c_void_p(x.ctypes.data) for x in (q, v, tau, q)])
    assert_same_bits(q, expected)


@needs_compiler
def test_threads_may_call_it_at_once(tmp_path):
    call = library(dl.aba.program(TREE), tmp_path, chunk=20)
    states = np.array(random_states(dl.aba, TREE, 2))
    expected = [call(*states[:, k])[0] for k in range(2)]
    wrong = []

    def run(k):
        for _ in range(2000):
            if not np.array_equal(call(*states[:, k])[0], expected[k]):
                wrong.append(k)

    workers = [threading.Thread(target=run, args=(k,)) for k in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@needs_compiler
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    program=programs(),
    chunk=st.sampled_from([1, 3, CHUNK]),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_random_programs_have_the_bits_of_the_interpreter(program, chunk, seed, dtype, tmp_path_factory):
    f = dl.kernel(f"({program.inputs})->({program.outputs})")(lambda model, x: program.function(x))
    folder = tmp_path_factory.mktemp("random")
    x = normal_numbers(10, program.inputs, seed=seed).astype(dtype)
    check(f, folder, x, chunk=chunk, optimize="-O0", dtype=dtype)


@needs_compiler
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(statements=nests(), chunk=st.sampled_from([3, CHUNK]), seed=st.integers(0, 99))
def test_loops_have_the_bits_of_the_interpreter(statements, chunk, seed, tmp_path_factory):
    def f(model, x):
        return run_nest(statements, x)

    x = np.random.default_rng(seed).normal(size=(5, SIZE))
    check(dl.kernel("(3)->(3)")(f), tmp_path_factory.mktemp("loops"), x, chunk=chunk, optimize="-O0")


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_large_product_has_the_bits_of_the_compiled_kernel(compiler, tmp_path):
    product = dl.kernel("(20,20),(20,20)->(20,20)")(lambda model, a, b: a @ b)
    a, b = normal_numbers(3, 20, 20), normal_numbers(3, 20, 20, seed=1)
    call = library(product.program(None), tmp_path, compiler=compiler, fma=Target.host().fma)
    for k in range(3):
        assert_same_bits(call(a[k], b[k])[0], product(None, a[k], b[k]))


def test_subnormals_are_numbers_in_c_and_zero_in_kernels(tmp_path):
    f = dl.kernel("()->()")(lambda model, x: 0.25 * x)
    assert library(f.program(None), tmp_path)(3e-308)[0] == 0.75e-308
    assert f(None, 3e-308) == 0.0


def compile_check(program, states, folder, compiler=None):
    """Compile and run the check program; returns what it said."""
    header, source = emit_c(program, "f")
    for name, text in {"f.h": header, "f.c": source, "f_check.c": emit_check(program, "f", states)}.items():
        (folder / name).write_text(text)
    path = compile_c(folder, "check", "f.c", "f_check.c", compiler=compiler, shared=False)
    return subprocess.run([path], capture_output=True, text=True, check=False)


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_check_program_says_ok(compiler, tmp_path):
    states = [normal_numbers(6, 4), normal_numbers(6, 4, 4)]
    done = compile_check(everything.program(None), states, tmp_path, compiler)
    assert (done.returncode, done.stdout) == (0, "ok\n")


@needs_compiler
def test_the_check_program_tells_the_first_difference(tmp_path):
    export_c(dl.aba, TREE, tmp_path, states=3)
    path = tmp_path / "aba_check.c"
    before, table, rows = path.read_text().partition("aba_right_out0[3][4] = {")
    last = list(re.finditer(r"0x1\.[0-9a-f]{13}p", rows.partition("};")[0]))[-1]
    digit = last.end() - 2
    path.write_text(before + table + rows[:digit] + ("1" if rows[digit] == "0" else "0") + rows[digit + 1 :])
    program = compile_c(tmp_path, "check", "aba.c", "aba_check.c", shared=False)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("state 2: out0[3] is ")


@needs_compiler
@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
def test_the_header_can_be_read_by_cpp(tmp_path):
    export_c(dl.aba, TREE, tmp_path)
    (tmp_path / "user.cpp").write_text('#include "aba.h"\ndouble q[aba_q_size];\nvoid (*f)() = (void (*)())aba;\n')
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Werror", "-c", "user.cpp"], cwd=tmp_path, check=True)


@needs_compiler
def test_inexact_arithmetic_is_refused(tmp_path):
    export_c(dl.aba, TREE, tmp_path)
    command = [COMPILERS[0], "-ffast-math", "-c", "aba.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "without -ffast-math" in done.stderr


def test_the_header_states_sizes_and_stack():
    header, _ = emit_c(dl.rnea.program(TREE), "torques", about="ends */ here /* and\\ ??/ there")
    assert "void torques(const double *q, const double *v, const double *a, double *out0);" in header
    assert "torques_q_size = 4," in header
    assert re.search(r"torques_stack_bytes = \d+\n", header)
    assert header.count("/*") == header.count("*/") == 1


def test_the_text_is_the_same_each_time():
    assert emit_c(dl.aba.program(TREE), "aba") == emit_c(dl.aba.program(TREE), "aba")


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.5, np.pi, 1e-300, -1e300])
def test_literals_have_the_bits_of_their_number(x):
    assert_same_bits(np.float64(float.fromhex(literal(x).strip("()"))), np.float64(x))


@pytest.mark.parametrize(
    ("text", "name"), [("aba", "aba"), ("arm 7-dof", "arm_7_dof"), ("τ", "tau"), ("λΔ", "lambdaDelta"), ("q̇", "q_")]
)
def test_names_become_identifiers(text, name):
    assert c_name(text, "the function") == name


@pytest.mark.parametrize("text", ["", "7dof", "_x", "机", "double", "class", "sin", "sinf", "memcpy", "main", "NAN"])
def test_impossible_names_are_refused_with_a_sentence(text):
    with refuses("bad-c-name"):
        c_name(text, "the function", function=True)


def test_arguments_need_names_of_their_own():
    def program(*names):
        return Program((("constant",),), (0.0,), tuple(Operand(n, ()) for n in names), (Operand("o", ()),), ((0,),))

    for names in (("x y", "x_y"), ("out_o",)):
        with refuses("bad-c-name"):
            emit_c(program(*names), "f")
    with refuses("bad-c-name", "'new'"):
        emit_c(program("new"), "f")
    assert "double slots_[3]" in emit_c(program("slots", "y0"), "f")[1]


def test_options_that_clash_with_those_of_the_export_are_refused(tmp_path):
    f = dl.kernel("()->()")(lambda model, x, *, states=1: x)
    with refuses("conflicting-arguments", "'states'"):
        export_c(f, None, tmp_path)


def test_an_operation_without_a_form_in_c_is_named(monkeypatch):
    monkeypatch.delitem(OPERATIONS, "sqrt")
    with refuses("not-supported", "'sqrt'"):
        emit_c(everything.program(None), "f")


def test_a_program_that_would_fill_the_stack_is_refused():
    @dl.kernel("(200000)->()")
    def f(model, x):
        return x[0]

    with refuses("kernel-too-large", "200001"):
        emit_c(f.program(None), "f")


# --- the command line -------------------------------------------------------------------------------------------


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    return path


def run(*words):
    done = CliRunner().invoke(app, ["export", *map(str, words)])
    return done.exit_code, " ".join(done.output.split())


@needs_compiler
def test_the_command_writes_files_that_check_themselves(urdf, tmp_path):
    out = tmp_path / "new" / "folder"
    code, said = run(
        urdf, "frame_velocity", "--out", out, "--root", "free", "--option", "frame=tool", "--name", "speed"
    )
    assert code == 0, said
    assert sorted(path.name for path in out.iterdir()) == ["speed.c", "speed.h", "speed_check.c"]
    assert "frame_velocity of arm, frame = 'tool'" in (out / "speed.h").read_text()
    assert "speed_q_size = 8" in (out / "speed.h").read_text()
    program = compile_c(out, "check", "speed.c", "speed_check.c", shared=False)
    assert subprocess.run([program], capture_output=True, check=False).stdout == b"ok\n"


def test_the_command_passes_options_by_type(urdf, tmp_path):
    words = ("--option", "frame=tool", "--option", "classical=true", "--no-fma")
    assert run(urdf, "frame_acceleration", "--out", tmp_path, *words)[0] == 0
    assert "classical = True, frame = 'tool', nothing fused" in (tmp_path / "frame_acceleration.h").read_text()


def test_the_command_writes_float32(urdf, tmp_path):
    assert run(urdf, "aba", "--out", tmp_path, "--float32")[0] == 0
    assert (
        "void aba(const float *q, const float *v, const float *tau, float *out0);" in (tmp_path / "aba.h").read_text()
    )


@needs_compiler
def test_the_command_takes_optional_inputs_and_the_loops_of_a_robot(tmp_path):
    words = ("--input", "mask", "--input", "acceleration", "--option", "iterations=2")
    code, said = run("four_bar", "prox_ltl", "--out", tmp_path, *words)
    assert code == 0, said
    assert "prox_ltl_mask_size" in (tmp_path / "prox_ltl.h").read_text()
    program = compile_c(tmp_path, "check", "prox_ltl.c", "prox_ltl_check.c", shared=False)
    assert subprocess.run([program], capture_output=True, check=False).stdout == b"ok\n"


def test_the_command_knows_kernels_with_named_results(tmp_path):
    code, said = run("four_bar", "project", "--out", tmp_path)
    assert code == 0, said
    assert (tmp_path / "project.c").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["kkt"], "kkt is a function that calls a kernel; only kernels can be exported, so use"),
        (["caba"], "caba is of a mechanism, and 'arm' comes without constraints"),
        (["aba", "--input", "mask"], "aba cannot take the optional inputs"),
        (["abba"], "no algorithm 'abba'. The nearest are: aba"),
        (["load"], "no algorithm 'load'"),
        (["frame_velocity"], "needs a value for the option 'frame'"),
        (["frame_velocity", "--option", "frame"], "write name=value"),
        (["frame_velocity", "--option", "frame=toll"], "tool"),
        (["aba", "--option", "frame=tool"], "aba has no option 'frame'"),
        (["frame_acceleration", "--option", "classical=yes"], "true or false"),
        (["aba", "--name", "double"], "'double' is a keyword"),
    ],
)
def test_the_command_explains_mistakes(words, sentence, urdf, tmp_path):
    code, said = run(urdf, *words, "--out", tmp_path / "out")
    assert code == 1
    assert sentence in said
    assert not (tmp_path / "out").exists()
