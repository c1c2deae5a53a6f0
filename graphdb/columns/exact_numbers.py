"""The integers and decimals that terms are, as whole numbers of 64 bits: `ExactNumbers`."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
from duckdb import DuckDBPyConnection

from graphdb.columns.quad_arrays import Ids
from graphdb.columns.term_ids import OFFSET, PAYLOAD_BITS, PAYLOAD_MASK, Tag
from graphdb.columns.values import DICTIONARY, Rep

__all__ = ["DECIMALS", "INTEGERS", "NUMBER_MAX", "ExactNumbers", "exact_numbers"]

NUMBER_MAX: Final = 1 << 62  # so that sums of two stay within 64 bits
INTEGERS: Final = frozenset((Tag.INTEGER, Tag.BIG_INTEGER))
DECIMALS: Final = frozenset((Tag.DECIMAL, Tag.BIG_DECIMAL))
_PLACES: Final = 6  # of Tag.DECIMAL
_READ_MAX: Final = 10_000  # that are in the dictionary


@dataclass(frozen=True, slots=True, eq=False)
class ExactNumbers:
    """values are the numbers times 10^scale, (n,) int64; rep says of which type, None of both."""

    values: Ids
    scale: int
    rep: Rep | None

    @property
    def nbytes(self) -> int:
        return self.values.nbytes


def exact_numbers(ids: Ids, connection: DuckDBPyConnection | None) -> ExactNumbers | None:
    """Of terms by their numbers; None where some are not exact, or are too large or too many.

    The connection is asked for those of the dictionary; without one these are too many.
    """
    tags = {Tag(int(tag)) for tag in np.unique(ids >> PAYLOAD_BITS)}
    if not tags or not tags <= INTEGERS | DECIMALS:
        return None
    big = np.isin(ids >> PAYLOAD_BITS, [int(tag) for tag in tags & DICTIONARY])
    read: Mapping[int, Decimal] = {}
    if big.any():
        wanted = ids[big].tolist()
        if connection is None or len(wanted) > _READ_MAX:
            return None
        rows = connection.execute(
            "SELECT id, lexical FROM terms WHERE id IN (SELECT unnest(?::BIGINT[]))", [wanted]
        ).fetchall()
        read = {number: Decimal(lexical) for number, lexical in rows}
        if len(read) < len(wanted):
            return None
    rep = Rep.INTEGER if tags <= INTEGERS else Rep.DECIMAL if tags <= DECIMALS else None
    own = 0 if rep is Rep.INTEGER else _PLACES
    scale = max([own, *(-int(value.as_tuple().exponent) for value in read.values())])
    factors = np.where(
        ids >> PAYLOAD_BITS == int(Tag.DECIMAL), 10 ** (scale - _PLACES) if scale else 0, 10**scale
    )
    values = np.where(big, 0, (ids & PAYLOAD_MASK) - OFFSET)
    if (np.abs(values).astype(np.float64) * factors).max() >= NUMBER_MAX:
        return None
    values *= factors
    large = [int(read[number].scaleb(scale)) for number in ids[big].tolist()]
    if large and max(map(abs, large)) >= NUMBER_MAX:
        return None
    values[big] = large
    return ExactNumbers(values, scale, rep)
