"""ORDER BY, MIN and MAX in the order of `graphdb.sparql.term_order`, where SQL can sort by it.

That is where all literals are of one kind. Other orders are left to a reader.
"""

from graphdb.columns.blocks import Block, lexical
from graphdb.columns.numbers import any_double, exact_number
from graphdb.columns.term_ids import Tag
from graphdb.columns.values import DATES, DOUBLES, NUMBERS, NotExact, Rep, Value, has_tag, inexact

__all__ = ["sort_keys", "sort_value", "tie_keys"]

_TEXTS = (Tag.BLANK_NODE, Tag.IRI)
_EXACT = frozenset((Tag.INTEGER, Tag.DECIMAL, Tag.BIG_INTEGER, Tag.BIG_DECIMAL))
_TYPES = tuple(
    frozenset(pair)
    for pair in (
        (Tag.INTEGER, Tag.BIG_INTEGER),
        (Tag.DECIMAL, Tag.BIG_DECIMAL),
        (Tag.DOUBLE, Tag.BIG_DOUBLE),
    )
)
_INLINE_EXACT = frozenset((Tag.INTEGER, Tag.DECIMAL))
_DECIMALS = frozenset((Tag.DECIMAL, Tag.BIG_DECIMAL))


def sort_keys(block: Block, value: Value, descending: bool) -> list[str]:
    """What sorts by one condition of ORDER BY. Raises NotExact where literals of several kinds may meet."""
    direction = "DESC NULLS LAST" if descending else "ASC NULLS FIRST"
    if value.constant is not None:
        return []  # to DuckDB, a number alone is the place of a column
    if value.rep is not Rep.ID:
        return [f"{sort_value(block, value)} {direction}"]
    kinds = _kinds(value)
    if not kinds:
        return []
    if len(kinds) == 1:
        return [f"{_key(block, value, kinds[0])} {direction}"]
    ranks = " ".join(f"WHEN {has_tag(value, kind)} THEN {rank}" for rank, kind in enumerate(kinds))
    keys = [f"CASE {ranks} END {direction}"]
    for kind in kinds:
        keys.append(f"CASE WHEN {has_tag(value, kind)} THEN {_key(block, value, kind)} END {direction}")
    return keys


def tie_keys(value: Value, descending: bool) -> list[str]:
    """What tells terms of equal value apart, once all conditions of an ORDER BY tie."""
    if value.rep is not Rep.ID:
        return []
    later = value.tags & _DECIMALS if value.tags & (_EXACT - _DECIMALS) else frozenset[Tag]()
    if Tag.BIG_DOUBLE in value.tags:  # a zero among these is the negative one
        later = value.tags & {Tag.DOUBLE}
    direction = "DESC" if descending else "ASC"
    return [f"CASE WHEN {has_tag(value, later)} THEN 1 ELSE 0 END {direction}"] if later else []


def sort_value(block: Block, value: Value) -> str:
    """One expression that sorts terms of one kind; the value itself where it sorts as its terms do."""
    match value.rep:
        case Rep.BOOLEAN:
            raise NotExact("an order of truth values")
        case Rep.DOUBLE | Rep.FLOAT:
            return f"CASE WHEN isnan({value.sql}) THEN {inexact('an order with NaN')} ELSE {value.sql} END"
        case Rep.ID:
            kinds = _kinds(value)
            if len(kinds) > 1:
                raise NotExact("the least of terms of several kinds")
            if kinds and any(
                len(kinds[0] & each) < len(kinds[0] & NUMBERS) for each in _TYPES if kinds[0] & each
            ):
                raise NotExact("the least of numbers of several types")
            return _key(block, value, kinds[0]) if kinds else value.sql
    return value.sql


def _kinds(value: Value) -> list[frozenset[Tag]]:
    """The tags in groups that sort one after the other."""
    if Tag.TRIPLE in value.tags:
        raise NotExact("an order of triple terms")
    kinds = [frozenset((tag,)) for tag in _TEXTS if tag in value.tags]
    literals = value.tags.difference(_TEXTS)
    if literals:
        kinds.append(literals)
    return kinds


def _key(block: Block, value: Value, kind: frozenset[Tag]) -> str:
    if kind <= frozenset(_TEXTS) or kind == {Tag.STRING}:
        return lexical(block, value)
    if kind == {Tag.LANGUAGE_STRING}:
        if len(block.names.catalog.languages()) > 1:
            raise NotExact("an order of strings of several languages")
        return lexical(block, value)
    if len(kind) == 1 and kind <= DATES | _INLINE_EXACT | {Tag.DOUBLE, Tag.FLOAT}:
        return value.sql
    if kind <= _EXACT:
        number = exact_number(block, value)
        assert number is not None
        return number.sql
    if kind <= DOUBLES:
        double = any_double(block, value)
        return f"CASE WHEN isnan({double}) THEN {inexact('an order with NaN')} ELSE {double} END"
    raise NotExact("an order of literals of several kinds")
