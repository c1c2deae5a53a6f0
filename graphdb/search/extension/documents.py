"""`format`: what the graph says of the hits, as a document in an RDF syntax."""

from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import Quad, RdfFormat, parse

from graphdb.errors import NotAcceptable
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.writing import write_quads
from graphdb.search.errors import illegal_request
from graphdb.search.extension.template import iri_of
from graphdb.sparql.algebra import AbstractQuery, Bgp, Join, Slice, Values
from graphdb.sparql.patterns import TriplePattern
from graphdb.sparql.printing import written_query
from graphdb.sparql.terms import Iri, Variable

__all__ = ["document", "triples_queries"]

TRIPLES_MAX = 50_000
_SUBJECTS_MAX = 1_000  # of one query
_SUBJECT = Variable("s")
_TRIPLE = TriplePattern(_SUBJECT, Variable("p"), Variable("o"))


def triples_queries(ids: Iterable[str], bytes_max: int) -> Iterator[str]:
    """CONSTRUCTs of the triples whose subjects are these; ids that are no IRIs have none."""
    chunk: list[Iri] = []
    size = 0
    for iri in dict.fromkeys(iri for one in ids if (iri := iri_of(one)) is not None):
        own = len(iri.value.encode()) + 3
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


def _construct(iris: Sequence[Iri]) -> str:
    pattern = Join(Values((_SUBJECT,), tuple([(iri,) for iri in iris])), Bgp((_TRIPLE,)))
    return written_query(
        AbstractQuery("CONSTRUCT", Slice(pattern, None, TRIPLES_MAX + 1), template=(_TRIPLE,))
    )
