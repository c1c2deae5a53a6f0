"""`format`: what the graph says of the hits, as a document in an RDF syntax."""

from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import Quad, RdfFormat, parse

from graphdb.errors import NotAcceptable
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.writing import write_quads
from graphdb.search.errors import illegal_request
from graphdb.search.extension.template import value_as_iri

__all__ = ["document", "triples_queries"]

TRIPLES_MAX = 50_000
_SUBJECTS_MAX = 1_000  # of one query


def triples_queries(ids: Iterable[str], bytes_max: int) -> Iterator[str]:
    """CONSTRUCTs of the triples whose subjects are these; ids that are no IRIs have none."""
    chunk: list[str] = []
    size = 0
    for iri in dict.fromkeys(iri for one in ids if (iri := value_as_iri(one)) is not None):
        own = len(iri.encode()) + 1
        if chunk and (len(chunk) == _SUBJECTS_MAX or size + own > bytes_max - 200):
            yield _construct(chunk)
            chunk, size = [], 0
        chunk.append(iri)
        size += own
    if chunk:
        yield _construct(chunk)


def document(pieces: Sequence[str], syntax: RdfSyntax) -> str:
    """All triples in one syntax. pieces are N-Triples.

    Errors: illegal_argument_exception for too many, or one that the syntax cannot say.
    """
    quads: list[Quad] = []
    for piece in pieces:
        quads.extend(Quad(*one.triple) for one in parse(piece.encode(), RdfFormat.N_TRIPLES))
        if len(quads) > TRIPLES_MAX:
            raise illegal_request(
                f"[_ext] [format] the hits have more than [{TRIPLES_MAX}] triples: ask for fewer"
            )
    try:
        return b"".join(write_quads(iter(quads), syntax)).decode()
    except NotAcceptable as error:
        raise illegal_request(
            f"[_ext] [format] {syntax.media_type} cannot say one of the triples: {error}"
        ) from error


def _construct(iris: Sequence[str]) -> str:
    subjects = " ".join(iris)
    pattern = f"VALUES ?s {{ {subjects} }} ?s ?p ?o"
    return f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {pattern} }} LIMIT {TRIPLES_MAX + 1}"
