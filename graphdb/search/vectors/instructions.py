"""Two instructions of processors that Numba has no name for; for compiled code only."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["prefetch", "trailing_zeros"]

_tools: Any = cgutils  # without type hints
_BIT, _BYTE, _INT, _LONG = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LINES, _LINE_BYTES = 2, 64  # what follows them processors fetch by themselves
_READ, _KEEP, _DATA = ir.Constant(_INT, 0), ir.Constant(_INT, 3), ir.Constant(_INT, 1)


def _prefetch(typing_context: Any, rows: Any, row: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = _tools.unpack_tuple(builder, array.strides)[0]
        start = builder.bitcast(array.data, _BYTE.as_pointer())
        place = builder.gep(start, [builder.mul(arguments[1], stride)])
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
        function = _tools.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for line in range(_LINES):
            at = builder.gep(place, [ir.Constant(_LONG, line * _LINE_BYTES)])
            builder.call(function, [at, _READ, _KEEP, _DATA])
        return context.get_dummy_value()

    return types.void(rows, types.int64), emit


def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_LONG, [_LONG, _BIT])
        function = _tools.get_or_insert_function(builder.module, kind, "llvm.cttz.i64")
        return builder.call(function, [arguments[0], ir.Constant(_BIT, 1)])

    return types.int64(types.uint64), emit


prefetch: Any = intrinsic(_prefetch)
"""prefetch(rows, row): ask for the beginning of rows[row] to be brought near; row is an int64, and there."""

trailing_zeros: Any = intrinsic(_trailing_zeros)
"""trailing_zeros(word): the number of the lowest bit that is 1 in 64 that are not all 0."""
