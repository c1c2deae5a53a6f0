"""Every error reaches the caller of an actor as itself: it pickles, with its fields and its sentence."""

import inspect
import pickle
from typing import Any

import pytest

from graphdb import errors
from graphdb.errors import GraphDBError

CLASSES = [item for item in vars(errors).values() if inspect.isclass(item) and issubclass(item, GraphDBError)]
EXAMPLES: dict[str, Any] = {
    "since": 3,
    "first_index": 7,
    "oldest_index": 7,
    "line": 3,
    "column": 7,
    "value": 11,
    "allowed": 10,
    "retry_after_s": 5,
    "limit_bytes": 9,
    "refusals": {"edit": 1, "code": "NOT_FOUND", "message": "is not there"},
}


def example(kind: type[GraphDBError]) -> GraphDBError:
    if kind.__init__ is Exception.__init__:
        return kind("a reason")
    arguments: list[Any] = []
    for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        value = EXAMPLES.get(parameter.name, f"the {parameter.name}")
        arguments.append((value,) if "tuple" in str(parameter.annotation) else value)
    return kind(*arguments)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_round_trip(kind: type[GraphDBError]) -> None:
    error = example(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error) != ""
    assert vars(copy) == vars(error)


def test_the_tree_at_the_head_of_the_file_names_every_class() -> None:
    words = (errors.__doc__ or "").split()
    assert [kind.__name__ for kind in CLASSES if kind.__name__ not in words] == []
