"""Types of scripts: what a variable of one may have, casts; elements of lists and maps."""

from collections.abc import Callable
from typing import Any

from graphdb.search.scripts.faults import ScriptFault, class_cast, null_pointer
from graphdb.search.scripts.methods import index_of
from graphdb.search.scripts.values import Budget, type_name

__all__ = ["DEFAULTS", "NEW", "TYPES", "cast", "converted", "element", "iterated", "map_key", "put_element"]

# Types.

_WHOLE = {"byte": 8, "short": 16, "int": 32, "long": 64}
_WHOLE |= {"Byte": 8, "Short": 16, "Integer": 32, "Long": 64}
_FRACTION = {"float", "double", "Float", "Double"}
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("byte", "short", "int", "long"), 0),
    "float": 0.0,
    "double": 0.0,
    "boolean": False,
}
TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_WHOLE, (int,)),
    **dict.fromkeys(_FRACTION, (float,)),
    **dict.fromkeys(("Number",), (int, float)),
    **dict.fromkeys(("boolean", "Boolean"), (bool,)),
    **dict.fromkeys(("String", "CharSequence", "char"), (str,)),
    **dict.fromkeys(("List", "ArrayList", "Collection", "Iterable", "Set"), (list, tuple)),
    **dict.fromkeys(("Map", "HashMap", "LinkedHashMap"), (dict,)),
    **dict.fromkeys(("def", "Object"), (object,)),
}
NEW: dict[str, Callable[..., Any]] = {
    "ArrayList": lambda *values: list(
        *(values if not values or isinstance(values[0], (list, tuple)) else ())
    ),
    "HashMap": lambda *members: dict(*(members if not members or isinstance(members[0], dict) else ())),
    "LinkedHashMap": lambda *members: dict(*(members if not members or isinstance(members[0], dict) else ())),
}


def converted(value: Any, kind: str, at: int) -> Any:
    """A value as a variable of a type has it. Raises ScriptFault where it cannot have it."""
    if kind in ("def", "Object"):
        return value
    if kind in _FRACTION and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if value is None and kind not in DEFAULTS:
        return None
    types = TYPES.get(kind)
    if types is None:
        return value
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise class_cast(f"Cannot cast from [{type_name(value)}] to [{kind}].").placed(at)
    return value


def cast(value: Any, kind: str, at: int) -> Any:
    """`(kind) value`: of numbers also to narrower types."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in _WHOLE and is_number:
        return _narrowed(value, _WHOLE[kind])
    if kind == "String" and isinstance(value, str):
        return value
    return converted(value, kind, at)


def _narrowed(value: float, bits: int) -> int:
    """A fraction saturates, a whole number wraps, as Java's casts."""
    whole = value
    if isinstance(whole, float):
        most = 63 if bits == 64 else 31
        if whole != whole:
            return 0
        whole = min(int(max(-(2.0**most), min(whole, 2.0**most))), 2**most - 1)
    low: int = 2 ** (bits - 1)
    narrow: int = (whole + low) % (2 * low) - low
    return narrow


# Elements.


def iterated(values: Any, at: int) -> Any:
    """What a loop goes over: as it is at the start."""
    if isinstance(values, (list, tuple)):
        return list(values)
    if values is None:
        raise null_pointer("the values of a loop").placed(at)
    if (own := getattr(values, "script_values", None)) is not None:
        return own()
    raise class_cast(f"Cannot iterate over [{type_name(values)}]").placed(at)


def element(target: Any, key: Any) -> Any:
    if isinstance(target, dict):
        return target.get(map_key(key, None))
    if isinstance(target, (list, tuple)):
        return target[index_of(target, key)]
    if target is None:
        raise null_pointer("an element")
    own = getattr(target, "script_element", None)
    if own is not None:
        return own(key)
    raise class_cast(f"Attempting to address a non-array-like type [{type_name(target)}] as an array.")


def put_element(budget: Budget, target: Any, key: Any, value: Any) -> None:
    if isinstance(target, dict):
        budget.allocate(1)
        target[map_key(key, None)] = value
    elif isinstance(target, list):
        target[index_of(target, key)] = value
    elif target is None:
        raise null_pointer(f"member [{key}]")
    else:
        raise ScriptFault(
            "unsupported_operation_exception", f"a value of type [{type_name(target)}] cannot be changed"
        )


def map_key(key: Any, at: int | None) -> Any:
    if key is None or isinstance(key, (str, int, float)):
        return key
    raise ScriptFault("class_cast_exception", f"Cannot use [{type_name(key)}] as a key of a map.", at)
