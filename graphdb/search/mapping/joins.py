"""`join`: a field that says which relation a document is of, and the id of its parent."""

from collections.abc import Iterable, Mapping
from typing import Any

from graphdb.search.errors import illegal_argument
from graphdb.search.fields import FieldSpec

__all__ = ["children_of", "join_field", "join_of", "parent_path", "relations"]

_RELATIONS_MAX = 1_000


def relations(value: Any) -> dict[str, Any]:
    """The parameter, checked: a name, or a list of names, of children by the name of their parent."""
    if not isinstance(value, dict) or len(value) > _RELATIONS_MAX:
        raise illegal_argument("[relations] must be an object: the names of children by the name of a parent")
    met: set[str] = set()
    for parent, given in value.items():
        names = given if isinstance(given, list) else [given]
        for name in names:
            if not isinstance(name, str) or name == parent:
                raise illegal_argument(f"[relations] of [{parent[:100]}] must be other names")
            if name in met:
                raise illegal_argument(f"[{name[:100]}] cannot have multiple parents")
            met.add(name)
    return value


def children_of(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The names of children by their parent's."""
    return {parent: tuple(names) if isinstance(names, list) else (names,) for parent, names in given.items()}


def join_field(specs: Iterable[FieldSpec]) -> FieldSpec | None:
    """The one among the fields of an index, None where it has none."""
    return next((spec for spec in specs if spec.type == "join"), None)


def parent_path(path: str) -> str:
    """Where the ids of parents stand as terms. No field has such a path, as no name is empty."""
    return f"{path}..parent"


def join_of(value: Any, path: str, given: Mapping[str, Any]) -> tuple[str, str | None]:
    """(the name of a document's relation, the id of its parent) from a name or {"name", "parent"}.

    Errors: illegal_argument_exception.
    """
    body = {"name": value} if isinstance(value, str) else value
    if not isinstance(body, dict) or set(body) - {"name", "parent"}:
        raise illegal_argument(f"expected a name, or an object with [name] and [parent], in [{path}]")
    name, parent = body.get("name"), body.get("parent")
    known = children_of(given)
    is_child = any(name in names for names in known.values())
    if not isinstance(name, str) or (name not in known and not is_child):
        raise illegal_argument(f"unknown join name [{str(name)[:100]}] for field [{path}]")
    if is_child and parent is None:
        raise illegal_argument(f"[parent] is missing for join field [{path}]")
    if isinstance(parent, dict | list | bool):
        raise illegal_argument(f"[parent] of join field [{path}] must be an id")
    return name, str(parent) if is_child else None
