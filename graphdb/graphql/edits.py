"""What a mutation asks of the graph, independent of any schema: edits of resources, on their way to the log.

They hold IRIs and typed terms, so a node that has another schema at the moment means the same by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, parse

from graphdb.model import GraphName

__all__ = ["EditKind", "EditTerm", "Edits", "ResourceEdit"]

EditTerm = NamedNode | Literal


class EditKind(Enum):
    """What becomes of a resource."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ResourceEdit:
    """One resource of one graph (None: the default graph).

    classes: what a new one is made an instance of; one that is there has to be of one of them. values: by
    property, what takes the place of all values that are there. unchanged_since: the log index behind which
    nothing of the resource may have changed.
    """

    kind: EditKind
    subject: NamedNode
    graph: NamedNode | None
    classes: tuple[NamedNode, ...]
    values: Mapping[NamedNode, tuple[EditTerm, ...]] = field(default_factory=dict)
    unchanged_since: int | None = None

    @property
    def graph_name(self) -> GraphName:
        """As quads have it."""
        return self.graph or DefaultGraph()


@dataclass(frozen=True, slots=True)
class Edits:
    """Those of one request, in order: each sees what those before it have done, and all are stored or none.

    by_shapes: what they change must satisfy the shapes that the store holds, in whatever graphs.
    """

    edits: tuple[ResourceEdit, ...]
    by_shapes: bool = True

    @property
    def unchanged_since(self) -> int | None:
        """The first log index behind which something may not have changed, None where all may have."""
        given = [one.unchanged_since for one in self.edits if one.unchanged_since is not None]
        return min(given, default=None)

    def encode(self) -> bytes:
        """As JSON."""
        return orjson.dumps({"edits": [_fields(one) for one in self.edits], "by_shapes": self.by_shapes})

    @classmethod
    def decode(cls, body: bytes) -> "Edits":
        """Raises KeyError, ValueError, TypeError where it is none."""
        fields = orjson.loads(body)
        return cls(tuple(map(_edit, fields["edits"])), fields["by_shapes"])


def _fields(edit: ResourceEdit) -> dict[str, Any]:
    return {
        "kind": edit.kind.value,
        "subject": edit.subject.value,
        "graph": edit.graph.value if edit.graph is not None else None,
        "classes": [one.value for one in edit.classes],
        "values": {path.value: list(map(str, terms)) for path, terms in edit.values.items()},
        "unchanged_since": edit.unchanged_since,
    }


def _edit(fields: dict[str, Any]) -> ResourceEdit:
    return ResourceEdit(
        EditKind(fields["kind"]),
        NamedNode(fields["subject"]),
        NamedNode(fields["graph"]) if fields["graph"] is not None else None,
        tuple(map(NamedNode, fields["classes"])),
        {NamedNode(path): _terms(texts) for path, texts in fields["values"].items()},
        fields["unchanged_since"],
    )


def _terms(texts: list[str]) -> tuple[EditTerm, ...]:
    """Read from N-Triples; in order, and as often as they were given."""
    lines = "".join(f"<urn:a> <urn:a> {text} .\n" for text in texts)
    return tuple(map(_term, parse(lines.encode(), RdfFormat.N_TRIPLES)))


def _term(quad: Quad) -> EditTerm:
    term = quad.object
    if isinstance(term, NamedNode | Literal):
        return term
    raise ValueError(f"no term of an edit: {term if isinstance(term, BlankNode) else 'a triple'}")
