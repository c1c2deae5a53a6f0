"""The tree that documents are read with: objects, their fields, and aliases, which take no values."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphdb.search.fields import Column, FieldSpec, ParsedDocument
from graphdb.search.mapping.readers import Read

__all__ = ["AliasNode", "FieldNode", "Node", "ObjectNode", "Take", "TakeAll", "TakeRows", "Taken", "Tokens"]

Tokens: TypeAlias = Callable[[str], tuple[list[str], list[int]]]

Take: TypeAlias = Callable[[Any, ParsedDocument], bool]
"""Stores a value in a document, or does nothing and answers False (`simple_values.py`)."""

Taken: TypeAlias = tuple[list[Column], Collection[int]]

TakeAll: TypeAlias = Callable[[Sequence[int], Sequence[Any]], Taken]
"""The columns of the values of these documents; and the places of values that are to be read one by one, not
necessarily all of them. Where there are any, the columns are of no use (`documents_together.py`).
"""

TakeRows: TypeAlias = Callable[[Sequence[int], Sequence[bytes]], Taken]
"""The same of arrays of doubles, each as its bytes."""


@dataclass(slots=True)
class FieldNode:
    """column: the member of ParsedDocument that takes the values, None where they are checked only."""

    spec: FieldSpec
    column: str | None
    read: Read
    split: Callable[[int], tuple[int, int]] | None = None  # a value as (ints, exact), see `ParsedDocument`
    tokens: Tokens | None = None  # of text, and of a completion
    is_plain: bool = False  # see `Analyzer`; and tokens are kept as they are
    has_lengths: bool = True  # of text: how long it is counts in scores (`norms`)
    once: bool = False  # of text: how often it has a term does not count (`index_options`)
    gap: int = 0  # positions between two values of text
    ignore_above: int | None = None
    fields: tuple["FieldNode", ...] = ()
    copy_to: tuple[str, ...] = ()


@dataclass(slots=True)
class AliasNode:
    path: str
    target: str


@dataclass(slots=True)
class ObjectNode:
    """dynamic is what holds here, inherited or not."""

    path: str  # empty at the root
    dynamic: str
    enabled: bool = True
    is_nested: bool = False
    nested: str | None = None  # path of the innermost nested object, this one too
    in_parent: bool = False
    in_root: bool = False
    is_flat: bool = False  # names of children may have dots, and none is an object
    children: dict[str, "Node"] = field(default_factory=dict)
    takes: dict[str, Take] = field(default_factory=dict)  # of those children that have one
    takes_all: dict[str, TakeAll] = field(default_factory=dict)  # the same
    takes_rows: dict[str, TakeRows] = field(default_factory=dict)  # of those that are vectors


Node: TypeAlias = FieldNode | AliasNode | ObjectNode
