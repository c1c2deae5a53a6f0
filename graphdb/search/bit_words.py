"""What a processor says of a word of 64 bits in one instruction, for compiled loops (Numba)."""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

__all__ = ["lowest_bit", "set_bits"]


def _set_bits(typing_context: Any, word: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), emit


def _lowest_bit(typing_context: Any, word: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), emit


set_bits: Any = intrinsic(_set_bits)
"""set_bits(word): how many bits of an uint64 are 1; for compiled code only."""

lowest_bit: Any = intrinsic(_lowest_bit)
"""lowest_bit(word): the place of the lowest bit that is 1 of an uint64, not 0; for compiled code only."""
