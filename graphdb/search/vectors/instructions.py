"""`prefetch`, an instruction of processors that Numba has no name for; for compiled code only."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["prefetch"]

_tools: Any = cgutils  # without type hints
_BYTE, _INT, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
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


prefetch: Any = intrinsic(_prefetch)
"""prefetch(rows, row): ask for the beginning of rows[row] to be brought near; row is an int64, and there."""
