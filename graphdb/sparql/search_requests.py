"""What a search in a query asks, of the literals of the graph or of an index of the search port; and the IRIs
with which queries spell it. `searches` reads these spellings.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

from graphdb.sparql.terms import Iri, Variable

__all__ = [
    "CONNECTORS",
    "SEARCH",
    "TEXT",
    "Highlight",
    "IndexSearch",
    "LiteralSearch",
    "Part",
    "search_index_of",
]

TEXT: Final = "http://jena.apache.org/text#"
"""Jena's property function, `text:query`."""
SEARCH: Final = "urn:graphdb:search#"
"""What stands in `SERVICE <search:INDEX>`."""
CONNECTORS: Final = tuple(
    f"http://www.ontotext.com/connectors/{name}#"
    for name in ("elasticsearch", "opensearch", "lucene", "solr")
)
"""GraphDB's connectors; an instance is an IRI in a namespace below one of them."""

_SERVICE = "search:"  # and the name of an index, percent-encoded: an endpoint of SERVICE that is none


class Part(StrEnum):
    """What a query may want of a hit."""

    SUBJECT = "subject"  # of the triple; of an index, the entity that a document is about
    SCORE = "score"
    LITERAL = "literal"
    GRAPH = "graph"
    PROPERTY = "property"
    HIGHLIGHT = "highlight"
    ID = "id"
    INDEX = "index"
    SOURCE = "source"
    FIELD = "field"  # of a highlight
    TOTAL = "total"  # how many hits there are at all


@dataclass(frozen=True, slots=True)
class Highlight:
    """How a literal is shown with its matches marked. fragments is how many at most, each about so long."""

    start: str = "↦"
    end: str = "↤"
    fragments: int = 3
    fragment_size: int = 128
    separator: str = " ∙ "
    joins: bool = True  # matches that only blanks separate are marked as one


@dataclass(frozen=True, slots=True)
class LiteralSearch:
    """A search of the graph's literals. text is in Lucene's syntax; no properties are all that are indexed.

    language is a tag, "none" for literals without one; None for any. limit None is all hits.
    """

    properties: tuple[str, ...]
    text: str
    limit: int | None = None
    language: str | None = None
    highlight: Highlight | None = None


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """A search of an index of the search port: the body of its `_search` as JSON, but for what follows.

    like is a resource: what is sought is nearest to the vector of its document. limit None is all hits.
    """

    index: str
    body: str
    limit: int | None = None
    offset: int = 0
    like: str | None = None


def search_index_of(endpoint: Iri | Variable) -> str | None:
    """The index that an endpoint of SERVICE stands for; None for an endpoint that is to be called."""
    if isinstance(endpoint, Iri) and endpoint.value.startswith(_SERVICE):
        return unquote(endpoint.value.removeprefix(_SERVICE))
    return None
