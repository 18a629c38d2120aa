"""Templates of LLVM IR: placeholders for the number of lanes, filled in for each width."""

import struct

from delassus.compiler.graph.precision import Precision

# Placeholders:
#     $T $B $I       types of a value, of a boolean, and of an integer with the size of a value, for all lanes
#     $E $W          types of a value and of such an integer in one lane
#     $J $Q          types of integers of 32 and 64 bits, for all lanes
#     $N             suffix of intrinsics
#     $A $S          alignment of a slot; bytes of a value in one lane
#     $X $L          number of lanes; indices of the lanes
#     $ANY … $?      whether a boolean is true in any lane
#     $( … $)        a constant for all lanes, with its type in front
#     $[ … $]        a load from addresses, one for each lane
#     $| … $, … $/   a store of a value to addresses, one for each lane
#     $< … $;        insertion of a number into the first lane; no operation for a single state
#     $> … $:        broadcast of the first lane to all; no operation for a single state
#     $0 … $1        the first lane of an integer of 32 bits


def fill_in(text: str, lanes: int, precision: Precision) -> str:
    """Replace the placeholders for one number of lanes and one precision."""
    scalar = lanes == 1
    real, bits = "double" if precision.bytes == 8 else "float", 8 * precision.bytes
    if scalar:
        for kind in ("$E", "i1", "i32", "i64", "$W"):
            text = text.replace(f"$({kind} ", "")
    for mark, filling in (
        ("$ANY", "and i1 true, " if scalar else "call i1 @llvm.vector.reduce.or.v$Xi1($B "),
        ("$?", "" if scalar else ")"),
        ("$<", "select i1 false, $E 0.0, $E " if scalar else "insertelement $T poison, $E "),
        ("$;", "" if scalar else ", i64 0"),
        ("$>", "select i1 false, $E 0.0, $E " if scalar else "shufflevector $T "),
        ("$:", "" if scalar else ", $T poison, <$X x i32> zeroinitializer"),
        ("$0", "add i32 0, " if scalar else "extractelement $J "),
        ("$1", "" if scalar else ", i64 0"),
        ("$[", "load $T, ptr " if scalar else "call $T @llvm.masked.gather.$N.v$Xp0(<$X x ptr> "),
        ("$]", ", align $S" if scalar else ", i32 $S, $B splat (i1 true), $T poison)"),
        ("$|", "store $T " if scalar else "call void @llvm.masked.scatter.$N.v$Xp0($T "),
        ("$,", ", ptr " if scalar else ", <$X x ptr> "),
        ("$/", ", align $S" if scalar else ", i32 $S, $B splat (i1 true))"),
        ("$Q", "i64" if scalar else "<$X x i64>"),
        ("$J", "i32" if scalar else "<$X x i32>"),
        ("$L", "0" if scalar else f"<{', '.join(f'i32 {k}' for k in range(lanes))}>"),
        ("$T", real if scalar else f"<{lanes} x {real}>"),
        ("$B", "i1" if scalar else f"<{lanes} x i1>"),
        ("$I", f"i{bits}" if scalar else f"<{lanes} x i{bits}>"),
        ("$E", real),
        ("$W", f"i{bits}"),
        ("$N", f"f{bits}" if scalar else f"v{lanes}f{bits}"),
        ("$A", str(precision.bytes * lanes)),
        ("$S", str(precision.bytes)),
        ("$X", str(lanes)),
        ("$(", "splat ("),
        ("$)", "" if scalar else ")"),
    ):
        text = text.replace(mark, filling)
    return text


def constant(number: float) -> str:
    """A constant for every lane; LLVM requires the bits of a double, also for a float."""
    if isinstance(number, bool):
        return f"$(i1 {str(number).lower()}$)"
    return f"$($E 0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}$)"
