"""SERVICE endpoints of a text under other names: the engine calls what the text names, and checks nothing.

What stands in a SERVICE is another endpoint's to read: the engine sends it as it is, a SERVICE in it too. So
only the outer one of two is named anew.
"""

from typing import Any

from graphdb.errors import HostNotAllowed
from graphdb.sparql.patterns import ServicePattern
from graphdb.sparql.terms import Iri
from graphdb.sparql.text_edits import TextEdits
from graphdb.sparql.tree_walk import parts_of

__all__ = ["is_silent", "name_endpoints_anew"]

_PLACEHOLDER = "urn:graphdb:service:"
_SILENT = "silent:"


def name_endpoints_anew(root: Any, edits: TextEdits, token: str) -> dict[str, str]:
    """Write a placeholder for each endpoint that the engine would call for this tree; what each stands for.

    A placeholder is an IRI made with token; where nobody can guess that, it stands nowhere else in the text.
    To be done before all edits that write parts of the text out.
    Raises HostNotAllowed for a variable, which only the evaluation would know.
    """
    placeholders: dict[tuple[str, bool], str] = {}
    nodes = [root]
    for node in nodes:
        nodes.extend(parts_of(node))
        if not isinstance(node, ServicePattern):
            continue
        if not isinstance(node.endpoint, Iri):
            raise HostNotAllowed("SERVICE", f"?{node.endpoint.name}")
        new = f"{_PLACEHOLDER}{_SILENT if node.silent else ''}{token}:{len(placeholders)}"
        name = placeholders.setdefault((node.endpoint.value, node.silent), new)
        edits.replace(node.endpoint.span, f"<{name}>")
    return {name: endpoint for (endpoint, _), name in placeholders.items()}


def is_silent(placeholder: str) -> bool:
    """Whether a placeholder stands for an endpoint behind SERVICE SILENT."""
    return placeholder.startswith(_PLACEHOLDER + _SILENT)
