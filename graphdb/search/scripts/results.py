"""What scripts return, as JSON has it."""

from typing import Any

from graphdb.search.scripts.documents import FieldValues, Point
from graphdb.search.scripts.faults import class_cast
from graphdb.search.scripts.moments import Moment, Named
from graphdb.search.scripts.values import type_name

__all__ = ["json_value", "json_values"]

_PLAIN = (str, bool, int, float)


def json_value(value: Any) -> Any:
    """Raises ScriptFault for what JSON does not have. The extent is bounded before (`check_extent`)."""
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, dict):
        return {str(key): json_value(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(one) for one in value]
    if isinstance(value, FieldValues):
        return [json_value(one) for one in value.values]
    if isinstance(value, Point):
        return {"lat": value.lat, "lon": value.lon}
    if isinstance(value, (Moment, Named)):
        return str(value)
    raise class_cast(f"a script cannot return a value of type [{type_name(value)}]")


def json_values(value: Any) -> list[Any]:
    """As a field of a hit has it: a list, empty for null."""
    found = json_value(value)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]
