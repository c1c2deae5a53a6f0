"""Fields of type completion: the inputs that a suggester completes, with their weights and contexts.

An input is kept as one term: its key (the tokens of its analysis, joined), its weight, the input itself and
its contexts. Terms are sorted, so the inputs whose keys begin with a prefix are a range of the dictionary.

Source: Elasticsearch's documentation of the completion suggester and of its contexts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, NamedTuple

import orjson

from graphdb.search.errors import illegal_argument, mapper_parsing
from graphdb.search.mapping.readers import geohash_cell, points_of, text_of

__all__ = ["Completion", "ContextMapping", "cell_of", "completion_of", "completion_terms", "contexts_checked",
    "keys_of", "mappings_of", "neighbours_of", "precision_of", "shown_contexts"]  # fmt: skip

_SEPARATOR, _HOLE, _END = "\x1f", "\x1e", "\x00"
_RESERVED = re.compile(f"[{_SEPARATOR}{_HOLE}{_END}]")
_WEIGHT_MAX = 2**31 - 1
_CONTEXTS_MAX = 10  # of one field
_CONTEXT_VALUES_MAX = 1_000  # of one input
_INPUTS_MAX = 10_000  # of one field of one document
_KEYS_MAX = 32  # of one input, whose tokens may stand at the same position
_PRECISION = 6
_PRECISION_MAX = 12
_EQUATOR_M, _MERIDIAN_M = 40_075_016.68557849, 19_970_326.371122  # WGS 84: around, and from pole to pole
_UNITS_M = {
    "mm": 0.001,
    "cm": 0.01,
    "m": 1,
    "km": 1000,
    "in": 0.0254,
    "ft": 0.3048,
    "yd": 0.9144,
    "mi": 1609.344,
}
_DISTANCE = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(mm|cm|m|km|in|ft|yd|mi)?")
_DIGITS = "0123456789bcdefghjkmnpqrstuvwxyz"


class Completion(NamedTuple):
    """One input of one or more documents. contexts: their values by name, a cell's geohash for a place."""

    key: str
    weight: int
    text: str
    contexts: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class ContextMapping:
    """One of a field's contexts. path: the field of the document that has its values, beside the input."""

    name: str
    is_geo: bool
    path: str | None
    precision: int  # characters of a geohash


# Terms.


def keys_of(terms: Sequence[str], positions: Sequence[int], separated: bool, with_holes: bool) -> list[str]:
    """The keys of an analyzed text; several where tokens stand at the same position.

    separated: a separator stands between tokens. with_holes: so does a mark for each token left out.
    """
    at: dict[int, list[str]] = {}
    for term, position in zip(terms, positions, strict=True):
        at.setdefault(position, []).append(_RESERVED.sub(" ", term))
    if not at:
        return []
    last = max(at)
    places = [at.get(position, [_HOLE]) for position in range(last + 1) if with_holes or position in at]
    joint = _SEPARATOR if separated else ""
    return list(dict.fromkeys(joint.join(parts) for parts in islice(product(*places), _KEYS_MAX)))


def completion_of(term: str) -> Completion:
    """What a term of the field says."""
    key, weight, text, contexts = term.split(_END, 3)
    return Completion(key, int(weight), text, orjson.loads(contexts) if contexts else {})


def _term(one: Completion) -> str:
    contexts = orjson.dumps(one.contexts, option=orjson.OPT_SORT_KEYS).decode() if one.contexts else ""
    return _END.join((one.key, str(one.weight), one.text, contexts))


# Documents.


def completion_terms(
    value: Any,
    path: str,
    options: Mapping[str, Any],
    analyzed: Callable[[str], tuple[list[str], list[int]]],
    source: Mapping[str, Any],
) -> list[str]:
    """The terms of a field's value. analyzed: from a text to its terms and positions. source: the whole
    document, whose fields may be contexts.

    Errors: illegal_argument_exception.
    """
    mappings = mappings_of(options)
    terms: list[str] = []
    separated, holes = options["preserve_separators"], options["preserve_position_increments"]
    for text, weight, given in _inputs(value, mappings):
        if len(terms) > _INPUTS_MAX:
            raise illegal_argument(f"field [{path}] has more than [{_INPUTS_MAX}] inputs")
        contexts = _contexts(given, mappings, source, path)
        cut = text.encode("utf-16-le", "surrogatepass")[: 2 * options["max_input_length"]]
        text = cut.decode("utf-16-le", "ignore")
        found, positions = analyzed(text)
        keys = keys_of(found, positions, separated, holes)
        terms += [_term(Completion(key, weight, text, contexts)) for key in keys]
    return terms


def _inputs(value: Any, mappings: Sequence[ContextMapping]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """(input, weight, contexts as they were given)."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield _checked(item), 1, {}
        elif isinstance(item, dict):
            yield from _described(item, mappings)
        else:
            raise illegal_argument(
                f"failed to parse [{str(item)[:100]}]: expected text or object, but got {type(item).__name__}"
            )


def _described(
    item: Mapping[str, Any], mappings: Sequence[ContextMapping]
) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    allowed = ("input", "weight", "contexts") if mappings else ("input", "weight")
    for name in item:
        if name not in allowed:
            raise illegal_argument(
                f"unknown field name [{name[:100]}], must be one of [{', '.join(sorted(allowed))}]"
            )
    given = item.get("input")
    inputs = given if isinstance(given, list) else [given]
    contexts = item.get("contexts") or {}
    if not isinstance(contexts, dict):
        raise illegal_argument("contexts must be an object or an array , but was [VALUE]")
    weight = _weight(item.get("weight"))
    for text in inputs:
        if not isinstance(text, str):
            raise illegal_argument("input must be a string or an array of strings")
        yield _checked(text), weight, contexts


def _checked(text: str) -> str:
    if not text:
        raise illegal_argument("value must have a length > 0")
    if found := _RESERVED.search(text):
        raise illegal_argument(
            f"Illegal input [{text[:100]!r}] UTF-16 codepoint [0x{ord(found[0]):x}] at position "
            f"{found.start()} is a reserved character"
        )
    return text


def _weight(value: Any) -> int:
    if value is None:
        return 1
    try:
        weight = int(value) if not isinstance(value, bool | float) else None
    except (TypeError, ValueError):
        raise illegal_argument(f"weight must be an integer, but was [{str(value)[:100]}]") from None
    if weight is None:
        raise illegal_argument("weight must be a string or an integer")
    if not 0 <= weight <= _WEIGHT_MAX:
        raise illegal_argument(f"weight must be in the interval [0..2147483647], but was [{weight}]")
    return weight


def _contexts(
    given: Mapping[str, Any], mappings: Sequence[ContextMapping], source: Mapping[str, Any], path: str
) -> dict[str, list[str]]:
    """The values by the names of the contexts."""
    unknown = given.keys() - {mapping.name for mapping in mappings}
    if unknown:
        raise illegal_argument(f"Unknown context name [{min(unknown)[:100]}], must be one of the field's")
    found: dict[str, list[str]] = {}
    for mapping in mappings:
        values = list(_values(given.get(mapping.name), mapping))
        if mapping.path is not None:
            values += [
                one for value in _at(source, mapping.path.split(".")) for one in _values(value, mapping)
            ]
        if len(values) > _CONTEXT_VALUES_MAX:
            raise illegal_argument(f"context [{mapping.name}] has more than [{_CONTEXT_VALUES_MAX}] values")
        if values:
            found[mapping.name] = sorted(set(values))
    if mappings and not found:
        raise illegal_argument(f"Contexts are mandatory in context enabled completion field [{path}]")
    return found


def _values(value: Any, mapping: ContextMapping) -> Iterator[str]:
    if value is None:
        return
    if mapping.is_geo:
        for latitude, longitude in points_of(value, mapping.name):
            yield cell_of(latitude, longitude, mapping.precision)
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict | list) or item is None:
            raise illegal_argument(
                "context must be a string, number or boolean or a list of string, number or boolean"
            )
        yield text_of(item)


def _at(source: Any, parts: list[str]) -> Iterator[Any]:
    """What stands at a path, through objects and lists."""
    if isinstance(source, list) and parts:
        for item in source:
            yield from _at(item, parts)
    elif not parts:
        yield source
    elif isinstance(source, dict):
        for length in range(1, len(parts) + 1):
            name = ".".join(parts[:length])
            if name in source:
                yield from _at(source[name], parts[length:])


# Places.


def cell_of(latitude: float, longitude: float, precision: int) -> str:
    """The geohash of the cell that a point is in."""
    low, high, point = [-180.0, -90.0], [180.0, 90.0], (longitude, latitude)
    digits = []
    for at in range(precision):
        digit = 0
        for bit in range(at * 5, at * 5 + 5):
            axis = bit % 2
            middle = (low[axis] + high[axis]) / 2
            upper = point[axis] >= middle
            (low if upper else high)[axis] = middle
            digit = digit * 2 + upper
        digits.append(_DIGITS[digit])
    return "".join(digits)


def neighbours_of(cell: str) -> list[str]:
    """The cells around a cell: eight, or fewer beside a pole."""
    (south, west), (north, east) = geohash_cell(cell)
    height, width = north - south, east - west
    latitude, longitude = (south + north) / 2, (west + east) / 2
    around = set()
    for up, right in product((-1, 0, 1), repeat=2):
        there = latitude + up * height
        if -90 <= there <= 90:
            turned = (longitude + right * width + 180) % 360 - 180
            around.add(cell_of(there, turned, len(cell)))
    return sorted(around - {cell})


def precision_of(value: Any) -> int:
    """Characters of a geohash, of their number or of a distance that cells should not exceed ("5km")."""
    if isinstance(value, int) and not isinstance(value, bool):
        level = value
    elif (found := _DISTANCE.fullmatch(str(value).strip())) is None:
        raise illegal_argument(f"[precision] must be a number or a distance, but was [{str(value)[:100]}]")
    elif found[2] is None:
        level = int(float(found[1]))
    else:
        level = _levels(float(found[1]) * _UNITS_M[found[2]])
    if not 1 <= level <= _PRECISION_MAX:
        raise illegal_argument(f"precision value [{level}] must be in the range [1, {_PRECISION_MAX}]")
    return level


def _levels(meters: float) -> int:
    """The first length whose cells are at most so wide and so high."""
    for level in range(1, _PRECISION_MAX):
        halvings = divmod(5 * level, 2)
        width, height = _EQUATOR_M / 2 ** sum(halvings), _MERIDIAN_M / 2 ** halvings[0]
        if max(width, height) <= meters:
            return level
    return _PRECISION_MAX


# The mapping.


def contexts_checked(value: Any) -> list[dict[str, Any]]:
    """The parameter `contexts` in its normal form: a list of objects."""
    items = value if isinstance(value, list) else [value]
    if len(items) > _CONTEXTS_MAX:
        raise illegal_argument(f"Limit of completion field contexts [{_CONTEXTS_MAX}] has been exceeded")
    checked = []
    for item in items:
        if not isinstance(item, dict):
            raise mapper_parsing("contexts must be a list of objects")
        checked.append(_context_checked(item))
    names = [item["name"] for item in checked]
    if len(set(names)) < len(names):
        raise illegal_argument("Context type of the same name is defined more than once")
    return checked


def shown_contexts(contexts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As mappings show them: types in capitals."""
    return [{**one, "type": str(one["type"]).upper()} for one in contexts]


def _context_checked(item: Mapping[str, Any]) -> dict[str, Any]:
    name, kind, path = item.get("name"), str(item.get("type")).lower(), item.get("path")
    if not isinstance(name, str) or not name:
        raise mapper_parsing("[name] is required for a context")
    if kind not in ("category", "geo"):
        raise mapper_parsing(f"unknown context type [{str(kind)[:100]}]")
    if path is not None and not isinstance(path, str):
        raise mapper_parsing("[path] of a context must be the name of a field")
    allowed = {"name", "type", "path"} | ({"precision"} if kind == "geo" else set())
    unknown = item.keys() - allowed
    if unknown:
        raise mapper_parsing(f"unknown parameter [{min(unknown)[:100]}] of the context [{name}]")
    node: dict[str, Any] = {"name": name, "type": kind}
    if path is not None:
        node["path"] = path
    if item.get("precision") is not None:
        node["precision"] = precision_of(item["precision"])
    return node


def mappings_of(options: Mapping[str, Any]) -> tuple[ContextMapping, ...]:
    """The contexts of a field, of its options."""
    return tuple(
        ContextMapping(one["name"], one["type"] == "geo", one.get("path"), one.get("precision", _PRECISION))
        for one in options["contexts"] or ()
    )
