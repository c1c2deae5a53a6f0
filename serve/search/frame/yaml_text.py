"""JSON values as YAML, in Elasticsearch's form: texts in quotes, lists no deeper than their names."""

import re
from collections.abc import Iterator
from typing import Any

import orjson

__all__ = ["yaml_text"]

_PLAIN_NAME = re.compile(r"[A-Za-z_.@][\w.@/+-]*", re.ASCII)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # JSON has them, YAML escaped
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})  # not to be read as values


def yaml_text(value: Any) -> str:
    """A document. value is what a JSON parser makes."""
    return "---" + _below(value, 0, "\n") + "\n"


def _below(value: Any, depth: int, start: str) -> str:
    """What follows a name or a dash; start: what stands before a nested value, if that has members."""
    if isinstance(value, dict) and value:
        return start + f"\n{' ' * depth}".join(_members(value, depth))
    if isinstance(value, list) and value:
        return start + f"\n{' ' * depth}".join(f"-{_item(one, depth)}" for one in value)
    return f" {_scalar(value)}"


def _members(value: dict[str, Any], depth: int) -> Iterator[str]:
    for name, one in value.items():
        inner = depth if isinstance(one, list) else depth + 2
        yield f"{_name(name)}:{_below(one, inner, chr(10) + ' ' * inner)}"


def _item(value: Any, depth: int) -> str:
    return _below(value, depth + 2, " ")


def _name(name: str) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and name.lower() not in _WORDS
    return name if is_plain else _scalar(name)


def _scalar(value: Any) -> str:
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", orjson.dumps(value).decode())
