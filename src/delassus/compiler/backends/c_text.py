"""Text of exported C: expressions of operations, surrounding declarations, and checks of names."""

import math
import re
import unicodedata
from typing import Final

from delassus.compiler.graph.precision import DOUBLE, SINGLE, Precision
from delassus.errors import BadArgument

REAL: Final = {DOUBLE: "double", SINGLE: "float"}
"""The type of a number."""

_SUFFIX: Final = {DOUBLE: "", SINGLE: "f"}

OPERATIONS: Final = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "sqrt": "sqrt@f({0})",
    "abs": "fabs@f({0})",
    "floor": "floor@f({0})",
    "ceil": "ceil@f({0})",
    "rint": "rint@f({0})",
    "trunc": "trunc@f({0})",
    "fma": "fma@f({0}, {1}, {2})",
    "fms": "fma@f({0}, {1}, -{2})",
    "fnma": "fma@f(-{0}, {1}, {2})",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "and": "{0} & {1}",
    "xor": "{0} ^ {1}",
    "not": "!{0}",
    "bit0": "$_bit({0}, 0)",
    "bit1": "$_bit({0}, 1)",
    "exponent": "$_exponent({0})",
    "scale": "$_scale({0}, {1})",
    "select": "{0} ? {1} : {2}",
    "word_add": "(@T)(uint32_t)((uint32_t){0} + (uint32_t){1})",
    "word_mul": "(@T)(uint32_t)((uint64_t){0} * (uint64_t){1})",
    "word_mulhi": "(@T)(uint32_t)((uint64_t){0} * (uint64_t){1} >> 32)",
    "word_and": "(@T)((uint32_t){0} & (uint32_t){1})",
    "word_or": "(@T)((uint32_t){0} | (uint32_t){1})",
    "word_xor": "(@T)((uint32_t){0} ^ (uint32_t){1})",
    **{f"philox{k}": f"$_philox({k}, {{0}}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}})" for k in range(4)},
}
"""The expression of each operation; $ is the name of the exported function, see `in_precision` for other marks."""

HELPERS: Final = {
    "$_bit": """/* One of the bits that hold a number. */
static int $_bit(@T x, int position)
{
    @U bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> position & 1);
}
""",
    "$_exponent": """/* e of a number 2^e m, 1 <= m < 2. */
static @T $_exponent(@T x)
{
    @U bits;
    memcpy(&bits, &x, sizeof bits);
    return (@T)((int)(bits >> @D & @E) - @B);
}
""",
    "$_scale": """/* x 2^n for an integer n: the sum with 1.5 2^@D has the digits of n at its end. */
static @T $_scale(@T x, @T n)
{
    const @T sum = n + 0x1.8p+@D@f;
    @U bits, digits;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&digits, &sum, sizeof digits);
    bits += digits << @D;
    memcpy(&x, &bits, sizeof x);
    return x;
}
""",
    "$_philox": """/* One of four random words for a counter and a key: Philox4x32-10. */
static @T $_philox(int word, @T c0, @T c1, @T c2, @T c3, @T k0, @T k1)
{
    uint32_t c[4], k[2];
    int round;
    c[0] = (uint32_t)c0; c[1] = (uint32_t)c1; c[2] = (uint32_t)c2; c[3] = (uint32_t)c3;
    k[0] = (uint32_t)k0; k[1] = (uint32_t)k1;
    for (round = 0; round < 10; round++) {
        const uint64_t first = (uint64_t)c[0] * 0xD2511F53u, second = (uint64_t)c[2] * 0xCD9E8D57u;
        c[0] = (uint32_t)(second >> 32) ^ c[1] ^ k[0];
        c[1] = (uint32_t)second;
        c[2] = (uint32_t)(first >> 32) ^ c[3] ^ k[1];
        c[3] = (uint32_t)first;
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return (@T)(c[word] >> (@D < 31 ? 31 - @D : 0));
}
""",
}
"""Static functions that expressions call. Unused ones are omitted, since compilers warn of them."""

# Without `noinline`, compilers would inline functions that are called once, which results in one giant function.
PREAMBLE: Final = """#include "$.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "this source relies on the rules of IEEE 754: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ == 2 || __FLT_EVAL_METHOD__ == -1)
#error "@Ts are computed in another precision: on 32-bit x86 add -msse2 -mfpmath=sse"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__GNUC__)
#define $_CHUNK static __attribute__((noinline)) void
#else
#define $_CHUNK static void
#endif

typedef char $_needs_@Ts_of_@N_bits[sizeof(@T) == @N / 8 ? 1 : -1];
"""
"""The beginning of the source."""

_WORDS: Final = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
alignas alignof and and_eq asm bitand bitor bool catch class compl concept consteval constexpr constinit const_cast
co_await co_return co_yield decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert static_cast
template this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq
HUGE_VAL INFINITY NAN linux unix memcpy
"""
"""Keywords of C, keywords of C++, since the header must be valid C++ too, macros, and the function that is called."""

_LIBRARY: Final = """
acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p log2
logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint llrint round
lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim fmax fmin fma j0 j1 jn y0 y1 yn gamma
drem scalb significand finite isinf isnan isfinite isnormal signbit memmove memcmp memchr memset strcpy strcat strcmp
strchr strspn strstr strtok strlen index rindex abs labs div ldiv malloc calloc realloc free abort exit system rand
qsort printf scanf puts putc getc gets remove rename time clock signal raise conj cabs csqrt cexp clog cpow main
"""
"""Functions of the C library, which compiler or linker know."""

CHECK: Final = """/* Runs $ on {states} stored states, and says ok if every output has the bits that it should have. */
#include "$.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

{tables}
/* The same bits; all NaN count as the same. */
static int $_same(@T a, @T b)
{
    @U x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y || (a != a && b != b);
}

static int $_differs(int state, const char *name, const @T *got, const @T *right, int count)
{
    int k;
    for (k = 0; k < count; k++) {
        if (!$_same(got[k], right[k])) {
            printf("state %d: %s[%d] is %a (%.17g), not %a (%.17g)\\n", state, name, k, got[k], got[k], right[k],
                   right[k]);
            return 1;
        }
    }
    return 0;
}

int main(void)
{
{variables}
    int state;
    for (state = 0; state < {states}; state++) {
        $({arguments});
{comparisons}
    }
    printf("ok\\n");
    return 0;
}
"""
"""The check program; marks in braces are replaced."""


def c_name(text: str, what: str, function: bool = False) -> str:
    """`text` as an identifier of C: Greek letters are replaced by their names, other invalid characters by `_`."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", "".join(_latin(c) for c in text))
    if not re.match(r"[A-Za-z]", name):
        raise BadArgument(
            f"{what} {text!r} is not a name in C, which must start with a letter: choose another one.",
            code="bad-c-name",
        )
    if name in _WORDS.split():
        raise BadArgument(f"{what} {name!r} is a keyword or macro of C or C++: choose another name.", code="bad-c-name")
    if function and re.fullmatch(rf"({'|'.join(_LIBRARY.split())})[fl]?", name):
        raise BadArgument(
            f"{what} {name!r} is the name of a function of the C library: choose another one.", code="bad-c-name"
        )
    return name


def _latin(letter: str) -> str:
    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(letter, ""))
    if match is None:
        return letter
    name = match[2].replace("LAMDA", "LAMBDA")
    return name.lower() if match[1] == "SMALL" else name.capitalize()


def in_precision(text: str, precision: Precision) -> str:
    """Replace the marks that depend on the precision.

    @T is the type of a number, @U that of an unsigned integer of the same size, @f the suffix of functions and
    constants. @N is the number of bits of a number, @D that of its fraction, @E the mask and @B the bias of its
    exponent.
    """
    fillings = {
        "@T": REAL[precision],
        "@U": str(precision.unsigned) + "_t",
        "@f": _SUFFIX[precision],
        "@N": str(8 * precision.bytes),
        "@D": str(precision.digits),
        "@E": str(precision.exponents),
        "@B": str(precision.bias),
    }
    for mark, filling in fillings.items():
        text = text.replace(mark, filling)
    return text


def literal(number: float, precision: Precision = DOUBLE) -> str:
    """A C constant with exactly the bits of a number; booleans are integers."""
    if isinstance(number, bool):
        return str(int(number))
    text = "NAN" if math.isnan(number) else "INFINITY" if math.isinf(number) else abs(number).hex() + _SUFFIX[precision]
    return f"(-{text})" if math.copysign(1.0, number) < 0.0 else text


def comment_line(line: str) -> str:
    """Text that is safe in a comment: it neither ends nor starts one, and has no trigraphs and control characters."""
    line = "".join(c if c.isprintable() and c != "\\" else " " for c in line)
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", line)
