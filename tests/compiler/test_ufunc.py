"""A specialized kernel is a NumPy ufunc: any layout of memory gives the same numbers, misuse gives an exception."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.target import Target

TARGET = Target.host().with_opt(0)


@dl.kernel("(5),(5,2),()->(5),(2,5),()")
def mixed(model, x, A, s):
    """A vector, a matrix and a scalar in and out."""
    return x * s + A[:, 0], A.T * s, dnp.sum(x) - s


@dl.kernel("(3)->(3)")
def cubes(model, x):
    return x * x * x + 1.0


def expected_mixed(x, A, s):
    x, A, s = np.asarray(x, float), np.asarray(A, float), np.asarray(s, float)
    return x * s[..., None] + A[..., 0], A.swapaxes(-1, -2) * s[..., None, None], x.sum(-1) - s


MIXED, CUBES = (k.compiled(None, target=TARGET).ufunc for k in (mixed, cubes))


def arrays(*batch, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*batch, 5)), rng.normal(size=(*batch, 5, 2)), rng.normal(size=batch)


def check_mixed(x, A, s, **kwargs):
    results = MIXED(x, A, s, **kwargs)
    for actual, wanted in zip(results, expected_mixed(x, A, s), strict=True):
        assert actual.shape == wanted.shape
        np.testing.assert_allclose(actual, wanted, rtol=1e-13, atol=1e-13)


def vectors(*batch, seed=0):
    return np.random.default_rng(seed).normal(size=(*batch, 3))


def cubed(x):
    """What CUBES gives for plain contiguous memory."""
    return CUBES(np.ascontiguousarray(x, float))


def unaligned(x):
    """The same numbers at an odd address."""
    memory = np.empty(x.nbytes + 1, np.uint8)
    y = memory[1:].view(float).reshape(x.shape)
    y[...] = x
    assert not y.flags.aligned
    return y


def test_specialize_gives_a_numpy_ufunc():
    assert type(cubes.specialize(None)) is np.ufunc


def test_core_sizes_are_frozen_in_the_signature():
    assert MIXED.signature == "(5),(5,2),()->(5),(2,5),()"


def test_the_ufunc_carries_name_and_documentation():
    assert MIXED.__name__ == "mixed"
    assert "A vector, a matrix and a scalar" in MIXED.__doc__


@pytest.mark.parametrize("batch", [(), (1,), (2,), (17,), (3, 4), (2, 1, 9), (1, 1, 1, 1)])
def test_any_number_of_batch_axes(batch):
    check_mixed(*arrays(*batch))


@pytest.mark.parametrize(
    "batches", [((4, 1), (19,), ()), ((), (3, 1, 2), (1, 2)), ((1,), (1, 1), (33,)), ((2, 3), (), (2, 1))]
)
def test_batch_axes_broadcast(batches):
    x, A, s = (arrays(*batch)[k] for k, batch in enumerate(batches))
    batch = np.broadcast_shapes(*batches)
    full = np.broadcast_to(x, (*batch, 5)), np.broadcast_to(A, (*batch, 5, 2)), np.broadcast_to(s, batch)
    for actual, wanted in zip(MIXED(x, A, s), expected_mixed(*full), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-13, atol=1e-13)


def test_one_state_gives_a_scalar_for_a_scalar_output():
    assert type(MIXED(*arrays())[2]) is np.float64


@pytest.mark.parametrize("batch", [(0,), (3, 0), (0, 3)])
def test_an_empty_batch_gives_empty_outputs(batch):
    assert [y.shape for y in MIXED(*arrays(*batch))] == [(*batch, 5), (*batch, 2, 5), batch]


def test_lists_are_taken():
    np.testing.assert_array_equal(CUBES([1.0, 2.0, 3.0]), [2.0, 9.0, 28.0])


def test_out_receives_the_result_and_is_returned():
    x, out = vectors(19), np.empty((19, 3))
    assert CUBES(x, out=out) is out
    np.testing.assert_array_equal(out, cubed(x))


def test_several_outputs_go_to_a_tuple_of_out():
    x, A, s = arrays(19)
    outs = np.empty((19, 5)), np.empty((19, 2, 5)), np.empty(19)
    assert all(a is b for a, b in zip(MIXED(x, A, s, out=outs), outs, strict=True))
    np.testing.assert_array_equal(outs[1], MIXED(x, A, s)[1])


def test_some_of_several_outs_may_be_none():
    x, A, s = arrays(19)
    out = np.empty((19, 2, 5))
    result = MIXED(x, A, s, out=(None, out, None))
    assert result[1] is out
    np.testing.assert_array_equal(result[0], MIXED(x, A, s)[0])


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x[..., ::-1].copy()[..., ::-1],
        lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
        unaligned,
        lambda x: x.astype(">f8"),
    ],
    ids=[
        "Fortran order",
        "every other state",
        "every other element",
        "states backwards",
        "elements backwards",
        "rows apart",
        "unaligned",
        "byte-swapped",
    ],
)
def test_the_layout_of_inputs_does_not_matter(layout):
    x, A, s = arrays(19)
    expected = MIXED(x, A, s)
    for actual, wanted in zip(MIXED(layout(x), layout(A), layout(s)), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("axes", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_matrices_may_be_transposed_views(axes):
    x, A, s = arrays(19)
    scattered = A.transpose(axes).copy().transpose(np.argsort(axes))
    np.testing.assert_array_equal(MIXED(x, scattered, s)[1], MIXED(x, A, s)[1])


def test_inputs_may_repeat_with_zero_stride():
    x = np.broadcast_to(vectors(), (19, 3))
    np.testing.assert_array_equal(CUBES(x), np.broadcast_to(cubed(x[0]), (19, 3)))


def test_elements_may_repeat_with_zero_stride():
    x = np.broadcast_to(vectors(19)[:, :1], (19, 3))
    np.testing.assert_array_equal(CUBES(x), cubed(x))


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: np.empty(shape, order="F"),
        lambda shape: np.empty((2 * shape[0], 2 * shape[1]))[::2, ::2],
        lambda shape: np.empty(shape)[::-1, ::-1],
        lambda shape: unaligned(np.empty(shape)),
        lambda shape: np.empty(shape, ">f8"),
    ],
    ids=["Fortran order", "scattered", "backwards", "unaligned", "byte-swapped"],
)
def test_the_layout_of_out_does_not_matter(make):
    x = vectors(19)
    out = make((19, 3))
    CUBES(x, out=out)
    np.testing.assert_array_equal(out, cubed(x))


@pytest.mark.parametrize("step", [2, 3])
def test_what_lies_between_the_elements_of_out_stays(step):
    memory = np.full((19 * step, 3 * step), 7.0)
    CUBES(vectors(19), out=memory[::step, ::step])
    memory[::step, ::step] = 7.0
    assert np.all(memory == 7.0)


def test_nothing_is_written_around_out():
    memory = np.full((21, 3), 7.0)
    CUBES(vectors(19), out=memory[1:-1])
    assert np.all(memory[[0, -1]] == 7.0)


def test_out_may_be_the_input():
    x = vectors(19)
    expected = cubed(x)
    CUBES(x, out=x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("shift", [1, 2, 8, -1, -9])
def test_out_may_overlap_the_input_by_some_states(shift):
    memory = vectors(40)
    source, target = slice(10, 30), slice(10 + shift, 30 + shift)
    expected = cubed(memory[source])
    CUBES(memory[source], out=memory[target])
    np.testing.assert_array_equal(memory[target], expected)


def test_out_may_overlap_the_input_by_some_elements():
    memory = np.random.default_rng(0).normal(size=60)
    x, out = memory[:57].reshape(19, 3), memory[1:58].reshape(19, 3)
    expected = cubed(x)
    CUBES(x, out=out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint32, bool])
def test_real_dtypes_are_cast(dtype):
    x = (np.arange(57).reshape(19, 3) % 2).astype(dtype)
    np.testing.assert_array_equal(CUBES(x), cubed(x.astype(float)))


def test_float32_out_gets_rounded_results():
    x, out = vectors(19), np.empty((19, 3), np.float32)
    CUBES(x, out=out)
    np.testing.assert_array_equal(out, cubed(x).astype(np.float32))


@pytest.mark.parametrize("shape", [(2,), (4,), (19, 4), (3, 1), (), (0,), (3, 0)])
def test_a_wrong_core_size_is_refused(shape):
    with pytest.raises(ValueError, match="dimension"):
        CUBES(np.zeros(shape))


def test_a_scalar_for_a_matrix_is_refused():
    with pytest.raises(ValueError, match="enough dimensions"):
        MIXED(np.zeros(5), 1.0, 1.0)


def test_batches_that_do_not_broadcast_are_refused():
    x, A, _ = arrays(3)
    with pytest.raises(ValueError, match="broadcast"):
        MIXED(x, A, np.zeros(2))


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_a_wrong_number_of_arrays_is_refused(count):
    with pytest.raises(TypeError, match="positional arguments"):
        MIXED(*[np.zeros(5)] * count)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(3, complex),
        np.zeros(3, object),
        np.array(["1", "2", "3"]),
        np.zeros(3, "datetime64[s]"),
        np.zeros(3, [("a", float)]),
        [None, 1.0, 2.0],
    ],
    ids=["complex", "object", "string", "date", "record", "None"],
)
def test_dtypes_that_are_not_real_numbers_of_64_bits_are_refused(x):
    with pytest.raises(TypeError, match="not supported for the input types"):
        CUBES(x)


@pytest.mark.parametrize("shape", [(19, 4), (18, 3), (19, 1), (3,), (19,), ()])
def test_an_out_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"dimension|broadcast"):
        CUBES(vectors(19), out=np.empty(shape))


def test_a_read_only_out_is_refused():
    out = np.empty((19, 3))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        CUBES(vectors(19), out=out)


def test_an_out_of_integers_is_refused():
    with pytest.raises(TypeError, match="Cannot cast"):
        CUBES(vectors(19), out=np.empty((19, 3), int))


def test_an_out_that_is_no_array_is_refused():
    with pytest.raises(TypeError, match="return arrays must be"):
        CUBES(vectors(19), out=[[0.0] * 3] * 19)


def test_a_wrong_number_of_outs_is_refused():
    with pytest.raises((TypeError, ValueError), match="out"):
        MIXED(*arrays(19), out=(np.empty((19, 5)),))


@pytest.mark.parametrize("method", ["reduce", "accumulate", "at", "outer"])
def test_methods_of_elementwise_ufuncs_are_refused(method):
    with pytest.raises((TypeError, RuntimeError), match="signature"):
        getattr(CUBES, method)(vectors(3), vectors(3))


def test_axes_of_the_core_may_be_named():
    x = vectors(19)
    np.testing.assert_array_equal(CUBES(x.T, axes=[0, 0]), cubed(x).T)
