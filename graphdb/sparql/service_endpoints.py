"""SERVICE endpoints of a query under other names: the engine calls what its text names, and checks nothing.

What stands in a SERVICE is another endpoint's to read: the engine sends it as it is, a SERVICE in it too. So
only the outer one of two is named anew.
"""

from dataclasses import replace
from typing import Any

from graphdb.errors import HostNotAllowed
from graphdb.sparql.algebra import Algebra, Service
from graphdb.sparql.terms import Iri
from graphdb.sparql.tree_walk import rewritten

__all__ = ["is_silent", "with_placeholders"]

_PLACEHOLDER = "urn:graphdb:service:"
_SILENT = "silent:"


def with_placeholders(pattern: Algebra, token: str) -> tuple[Algebra, dict[str, str]]:
    """A pattern with a placeholder for each endpoint that the engine would call; what each stands for.

    A placeholder is an IRI made with token; where nobody can guess that, it stands nowhere else in the text.
    Raises HostNotAllowed for a variable, which only the evaluation would know.
    """
    placeholders: dict[tuple[str, bool], str] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, Service):
            return node
        if not isinstance(node.endpoint, Iri):
            raise HostNotAllowed("SERVICE", f"?{node.endpoint.name}")
        new = f"{_PLACEHOLDER}{_SILENT if node.silent else ''}{token}:{len(placeholders)}"
        name = placeholders.setdefault((node.endpoint.value, node.silent), new)
        return replace(node, endpoint=Iri(name))

    made = rewritten(pattern, change)
    return made, {name: endpoint for (endpoint, _), name in placeholders.items()}


def is_silent(placeholder: str) -> bool:
    """Whether a placeholder stands for an endpoint behind SERVICE SILENT."""
    return placeholder.startswith(_PLACEHOLDER + _SILENT)
