"""Shorthand for common IR: access to fields of records, and ends of counting loops.

    %slots <- i64 %kernel[2]                        word 2 of the record at %kernel, eight bytes each
    count %k below %n: %operand, then %exit         %k1 = %k + 1, then on to %operand while that is below %n

A loop that is counted begins with `%k = phi i64 [ 0, … ], [ %k1, … ]`.
"""

import re
from typing import Final

_FIELD: Final = re.compile(r"^  %(\S+) <- (\S+) %([^\s\[]+)\[(\S+)\]$", re.MULTILINE)
_COUNT: Final = re.compile(r"^  count %(\S+) below (\S+): %(\S+), then %(\S+)$", re.MULTILINE)


def expand_ir(text: str) -> str:
    """Expand the shorthand in a text of IR."""
    text = _FIELD.sub(
        r"  %\1.at = getelementptr i64, ptr %\3, i64 \4\n  %\1 = load \2, ptr %\1.at, align 8",
        text,
    )
    return _COUNT.sub(
        r"  %\g<1>1 = add i64 %\1, 1\n  %\1.goes.on = icmp slt i64 %\g<1>1, \2\n"
        r"  br i1 %\1.goes.on, label %\3, label %\4",
        text,
    )
