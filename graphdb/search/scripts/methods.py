"""What scripts may call: methods of strings, lists, maps, numbers, dates.

A name that is not here does not exist for a script. Nothing here reaches a method of a Python object by its
name.
"""

import base64
import binascii
import hashlib
import math
from collections.abc import Callable
from typing import Any

from graphdb.search.scripts.faults import ScriptFault, class_cast, null_pointer, unsupported
from graphdb.search.scripts.moments import (
    MOMENT_MEMBERS,
    MOMENT_METHODS,
    Moment,
    Named,
)
from graphdb.search.scripts.values import (
    Budget,
    compared,
    equal,
    text_of,
    truth,
    type_name,
)

__all__ = [
    "Lambda",
    "Method",
    "as_int",
    "as_number",
    "as_text",
    "call_method",
    "get_member",
    "index_of",
    "joined",
    "listed",
    "sort",
    "to_int",
    "to_long",
]

Lambda = Callable[..., Any]
"""A function that is an argument, as the interpreter has made it."""

_LIST_MAX = 1_000_000  # entries


def as_int(value: Any) -> int:
    if type(value) is not int:
        raise class_cast(f"Cannot cast from [{type_name(value)}] to [int].")
    return value


def as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise class_cast(f"Cannot cast from [{type_name(value)}] to [java.lang.String].")
    return value


def as_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise class_cast(f"Cannot cast from [{type_name(value)}] to [double].")
    return value


def _callable(value: Any) -> Lambda:
    if not callable(value):
        raise class_cast("a lambda is expected")
    function: Lambda = value
    return function


def index_of(values: Any, index: Any) -> int:
    """A place in a list or a string. Negative ones count from its end. Raises ScriptFault."""
    place = as_int(index)
    size = len(values)
    found = place + size if place < 0 else place
    if not 0 <= found < size:
        raise ScriptFault("index_out_of_bounds_exception", f"Index {place} out of bounds for length {size}")
    return found


# Strings.


def _part(text: str, start: Any, end: Any = None) -> str:
    first, last = as_int(start), len(text) if end is None else as_int(end)
    if not 0 <= first <= last <= len(text):
        raise ScriptFault(
            "string_index_out_of_bounds_exception", f"begin {first}, end {last}, length {len(text)}"
        )
    return text[first:last]


def _replaced(budget: Budget, text: str, old: Any, new: Any) -> str:
    count = text.count(as_text(old)) if old else len(text) + 1
    budget.allocate(len(text) + count * len(as_text(new)))
    return budget.string(text.replace(old, new))


def _split(budget: Budget, text: str, token: Any, most: Any = 0) -> list[str]:
    if not as_text(token):
        raise unsupported("[splitOnToken] needs a token that is not empty")
    limit = as_int(most)
    budget.allocate(len(text))
    return text.split(token, limit - 1) if limit > 0 else text.split(token)


def _hash_code(text: str) -> int:
    """Java's, in 32 bits."""
    number = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        number = (31 * number + unit) & 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise unsupported("a string is not Base64 of UTF-8") from None


Method = Callable[..., Any]
_STRINGS: dict[str, Method] = {
    "length": lambda budget, text: len(text),
    "isEmpty": lambda budget, text: not text,
    "isBlank": lambda budget, text: not text.strip(),
    "charAt": lambda budget, text, index: text[index_of(text, index)],
    "contains": lambda budget, text, other: as_text(other) in text,
    "startsWith": lambda budget, text, other: text.startswith(as_text(other)),
    "endsWith": lambda budget, text, other: text.endswith(as_text(other)),
    "indexOf": lambda budget, text, other, start=0: text.find(as_text(other), max(0, as_int(start))),
    "lastIndexOf": lambda budget, text, other: text.rfind(as_text(other)),
    "substring": lambda budget, text, start, end=None: budget.string(_part(text, start, end)),
    "toLowerCase": lambda budget, text: budget.string(text.lower()),
    "toUpperCase": lambda budget, text: budget.string(text.upper()),
    "trim": lambda budget, text: budget.string(text.strip()),
    "strip": lambda budget, text: budget.string(text.strip()),
    "replace": _replaced,
    "concat": lambda budget, text, other: budget.string(text + as_text(other)),
    "splitOnToken": _split,
    "equalsIgnoreCase": lambda budget, text, other: isinstance(other, str) and text.lower() == other.lower(),
    "compareTo": lambda budget, text, other: compared(text, as_text(other)),
    "hashCode": lambda budget, text: _hash_code(text),
    "encodeBase64": lambda budget, text: budget.string(base64.b64encode(text.encode()).decode()),
    "decodeBase64": lambda budget, text: budget.string(_decoded(text)),
    "sha1": lambda budget, text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
    "sha256": lambda budget, text: hashlib.sha256(text.encode()).hexdigest(),
}

# Lists.


def _changeable(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise ScriptFault("unsupported_operation_exception", "the list cannot be changed")
    return values


def _grown(budget: Budget, values: list[Any], count: int) -> None:
    budget.allocate(count)
    if len(values) + count > _LIST_MAX:
        raise ScriptFault("circuit_breaking_exception", f"a list has more than [{_LIST_MAX}] entries")


def _add(budget: Budget, values: Any, first: Any, *second: Any) -> Any:
    into = _changeable(values)
    _grown(budget, into, 1)
    if not second:
        into.append(first)
        return True
    place = as_int(first)
    if not 0 <= place <= len(into):
        raise ScriptFault(
            "index_out_of_bounds_exception", f"Index {place} out of bounds for length {len(into)}"
        )
    budget.spend(len(into) >> 6)
    into.insert(place, second[0])
    return None


def listed(value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise class_cast(f"Cannot cast from [{type_name(value)}] to [java.util.Collection].")
    return value


def _add_all(budget: Budget, values: Any, others: Any) -> bool:
    into = _changeable(values)
    _grown(budget, into, len(listed(others)))
    into.extend(list(others))
    return bool(others)


def _place(budget: Budget, values: Any, wanted: Any) -> int:
    budget.spend(len(values))
    return next((place for place, value in enumerate(values) if equal(value, wanted)), -1)


def _last_place(budget: Budget, values: Any, wanted: Any) -> int:
    budget.spend(len(values))
    return next((n for n in range(len(values) - 1, -1, -1) if equal(values[n], wanted)), -1)


def _removed(budget: Budget, values: Any, wanted: Any) -> Any:
    """By its place where that is a whole number, else the first that is equal."""
    from_list = _changeable(values)
    budget.spend(len(from_list) >> 6)
    if type(wanted) is int:
        return from_list.pop(index_of(from_list, wanted))
    place = _place(budget, from_list, wanted)
    if place >= 0:
        del from_list[place]
    return place >= 0


def _kept(budget: Budget, values: Any, keep: Callable[[Any], bool]) -> bool:
    """Only what is kept stays; whether that is a change."""
    into, before = _changeable(values), len(values)
    budget.spend(before)
    into[:] = [value for value in list(into) if keep(value)]
    return len(into) < before


def sort(budget: Budget, values: Any, order: Any = None) -> None:
    into = _changeable(values)
    budget.spend(len(into) * max(1, len(into).bit_length()))
    compare = compared if order is None else _callable(order)
    into[:] = _merge_sorted(list(into), lambda one, other: as_int(compare(one, other)) <= 0)


def _merge_sorted(values: list[Any], is_before: Callable[[Any, Any], bool]) -> list[Any]:
    """Stable. (Python's own sort would hide which comparison has failed, and loop in C without a step.)"""
    if len(values) < 2:
        return values
    middle = len(values) // 2
    first, second = _merge_sorted(values[:middle], is_before), _merge_sorted(values[middle:], is_before)
    merged: list[Any] = []
    one = other = 0
    while one < len(first) and other < len(second):
        if is_before(first[one], second[other]):
            merged.append(first[one])
            one += 1
        else:
            merged.append(second[other])
            other += 1
    return [*merged, *first[one:], *second[other:]]


def _set(budget: Budget, values: Any, index: Any, value: Any) -> Any:
    into = _changeable(values)
    place = index_of(into, index)
    old, into[place] = into[place], value
    return old


def joined(budget: Budget, values: Any, between: Any = "") -> str:
    texts = [text_of(value, budget) for value in values]
    budget.allocate(len(texts) * (len(as_text(between)) + 1))
    return budget.string(between.join(texts))


def _collected(budget: Budget, values: Any, function: Any) -> list[Any]:
    budget.allocate(len(values))
    return [_callable(function)(value) for value in list(values)]


def _summed(budget: Budget, values: Any) -> float:
    budget.spend(len(values))
    return math.fsum(as_number(value) for value in values)


def _each(budget: Budget, values: Any, function: Any) -> None:
    for value in list(values):
        _callable(function)(value)


def _sublist(budget: Budget, values: Any, start: Any, end: Any) -> list[Any]:
    first, last = as_int(start), as_int(end)
    if not 0 <= first <= last <= len(values):
        raise ScriptFault("index_out_of_bounds_exception", f"fromIndex: {first}, toIndex: {last}")
    budget.allocate(last - first)
    return list(values[first:last])


_LISTS: dict[str, Method] = {
    "size": lambda budget, values: len(values),
    "getLength": lambda budget, values: len(values),
    "isEmpty": lambda budget, values: not values,
    "get": lambda budget, values, index: values[index_of(values, index)],
    "set": _set,
    "add": _add,
    "addAll": _add_all,
    "remove": _removed,
    "removeIf": lambda budget, values, test: _kept(
        budget, values, lambda value: not truth(_callable(test)(value))
    ),
    "removeAll": lambda budget, values, others: _kept(
        budget, values, lambda value: _place(budget, listed(others), value) < 0
    ),
    "retainAll": lambda budget, values, others: _kept(
        budget, values, lambda value: _place(budget, listed(others), value) >= 0
    ),
    "clear": lambda budget, values: _changeable(values).clear(),
    "contains": lambda budget, values, wanted: _place(budget, values, wanted) >= 0,
    "containsAll": lambda budget, values, others: all(
        _place(budget, values, one) >= 0 for one in listed(others)
    ),
    "indexOf": _place,
    "lastIndexOf": _last_place,
    "sort": sort,
    "forEach": _each,
    "each": _each,
    "any": lambda budget, values, test: any(truth(_callable(test)(value)) for value in list(values)),
    "every": lambda budget, values, test: all(truth(_callable(test)(value)) for value in list(values)),
    "find": lambda budget, values, test: next(
        (value for value in list(values) if truth(_callable(test)(value))), None
    ),
    "findAll": lambda budget, values, test: [
        value for value in list(values) if truth(_callable(test)(value))
    ],
    "collect": _collected,
    "sum": _summed,
    "join": joined,
    "subList": _sublist,
}

# Maps. What `keySet` and the like give is a copy that cannot be changed.


def _put(budget: Budget, members: dict[Any, Any], key: Any, value: Any) -> Any:
    if key is not None and not isinstance(key, (str, int, float, bool)):
        raise class_cast(f"Cannot use [{type_name(key)}] as a key of a map.")
    budget.allocate(1)
    old = members.get(key)
    members[key] = value
    return old


def _put_all(budget: Budget, members: dict[Any, Any], others: Any) -> None:
    if not isinstance(others, dict):
        raise class_cast(f"Cannot cast from [{type_name(others)}] to [java.util.Map].")
    budget.allocate(len(others))
    members.update(others)


def _put_if_absent(budget: Budget, members: dict[Any, Any], key: Any, value: Any) -> Any:
    return members[key] if members.get(key) is not None else _put(budget, members, key, value)


def _known(key: Any) -> Any:
    """A key that can be asked for: what is no simple value is in no map."""
    return key if key is None or isinstance(key, (str, int, float, bool)) else _known


def _copied(budget: Budget, values: Any) -> tuple[Any, ...]:
    budget.allocate(len(values))
    return tuple(values)


def _entries(budget: Budget, members: dict[Any, Any]) -> tuple[Any, ...]:
    budget.allocate(2 * len(members))
    return tuple(_Entry(key, value) for key, value in members.items())


def _each_entry(budget: Budget, members: dict[Any, Any], function: Any) -> None:
    for key, value in list(members.items()):
        _callable(function)(key, value)


def _computed(budget: Budget, members: dict[Any, Any], key: Any, function: Any) -> Any:
    if members.get(_known(key)) is None:
        _put(budget, members, key, _callable(function)(key))
    return members[key]


class _Entry:
    """Of a map."""

    __slots__ = ("key", "value")

    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = key, value


_MAPS: dict[str, Method] = {
    "size": lambda budget, members: len(members),
    "isEmpty": lambda budget, members: not members,
    "get": lambda budget, members, key: members.get(_known(key)),
    "getOrDefault": lambda budget, members, key, default: members.get(_known(key), default),
    "put": _put,
    "putAll": _put_all,
    "putIfAbsent": _put_if_absent,
    "computeIfAbsent": _computed,
    "remove": lambda budget, members, key: members.pop(_known(key), None),
    "containsKey": lambda budget, members, key: _known(key) in members,
    "containsValue": lambda budget, members, value: _place(budget, list(members.values()), value) >= 0,
    "keySet": _copied,
    "values": lambda budget, members: _copied(budget, members.values()),
    "entrySet": _entries,
    "forEach": _each_entry,
    "clear": lambda budget, members: members.clear(),
}

# Numbers and booleans.


def to_long(value: float) -> int:
    """Towards zero; what is out of range is the nearest that is in it, as Java casts."""
    if isinstance(value, int):
        return value
    if math.isnan(value):
        return 0
    return int(max(-(2.0**63), min(value, 2.0**63))) if abs(value) < 2.0**63 else _limit(value)


def _limit(value: float) -> int:
    return 2**63 - 1 if value > 0 else -(2**63)


_NUMBERS: dict[str, Method] = {
    "intValue": lambda budget, number: to_int(number),
    "longValue": lambda budget, number: to_long(number),
    "doubleValue": lambda budget, number: float(number),
    "floatValue": lambda budget, number: float(number),
    "compareTo": lambda budget, number, other: compared(number, other),
    "isNaN": lambda budget, number: math.isnan(number),
    "isInfinite": lambda budget, number: math.isinf(number),
}


def to_int(value: float) -> int:
    """In 32 bits: a fraction saturates, a whole number wraps."""
    if isinstance(value, float):
        return max(-(2**31), min(to_long(value), 2**31 - 1))
    return (value + 2**31) % 2**32 - 2**31


# Calls.

_MOMENTS: dict[str, Method] = {
    name: (lambda budget, moment, *arguments, function=function: function(moment, *arguments))
    for name, function in MOMENT_METHODS.items()
}
_TABLES: tuple[tuple[type, dict[str, Method]], ...] = (
    (str, _STRINGS),
    (list, _LISTS),
    (tuple, _LISTS),
    (dict, _MAPS),
    (bool, {}),
    (int, _NUMBERS),
    (float, _NUMBERS),
    (Moment, _MOMENTS),
)
_ANY: dict[str, Method] = {
    "toString": lambda budget, value: text_of(value, budget),
    "equals": lambda budget, value, other: equal(value, other),
}


def call_method(budget: Budget, target: Any, name: str, arguments: list[Any]) -> Any:
    """Raises ScriptFault."""
    if target is None:
        raise null_pointer(f"method [{name}]")
    own = getattr(target, "script_methods", None)
    if own is not None and name in own:
        return _called(own[name], (target, *arguments), name, target)
    for kind, methods in _TABLES:
        if isinstance(target, kind) and name in methods:
            return _called(methods[name], (budget, target, *arguments), name, target)
    if name in _ANY:
        return _called(_ANY[name], (budget, target, *arguments), name, target)
    if not arguments and (member := _getter(name)) is not None and not isinstance(target, dict):
        return get_member(target, member)
    raise unsupported(f"dynamic method [{type_name(target)}, {name}/{len(arguments)}] not found")


def _called(method: Method, arguments: tuple[Any, ...], name: str, target: Any) -> Any:
    try:
        return method(*arguments)
    except TypeError as error:
        if "positional argument" not in str(error):
            raise
        raise unsupported(f"method [{type_name(target)}, {name}] takes other arguments") from None


def _getter(name: str) -> str | None:
    """The member that `getX` or `isX` reads."""
    for prefix in ("get", "is"):
        if name.startswith(prefix) and name[len(prefix) : len(prefix) + 1].isupper():
            rest = name[len(prefix) :]
            return rest[0].lower() + rest[1:]
    return None


def get_member(target: Any, name: str) -> Any:
    """`target.name`. Raises ScriptFault."""
    if isinstance(target, dict):
        return target.get(name)
    if target is None:
        raise null_pointer(f"member [{name}]")
    if isinstance(target, Moment) and name in MOMENT_MEMBERS:
        return MOMENT_MEMBERS[name](target)
    if isinstance(target, (Named, _Entry)) and name in ("name", "key", "value"):
        return getattr(target, name, None)
    if isinstance(target, (list, tuple)) and name in ("length", "empty"):
        return len(target) if name == "length" else not target
    own = getattr(target, "script_member", None)
    if own is not None:
        return own(name)
    raise unsupported(f"dynamic getter [{type_name(target)}, {name}] not found")
