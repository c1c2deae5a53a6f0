"""Texts and documents that mutations begin with: those of the W3C's suites, and a few of our own."""

import os
from functools import cache
from pathlib import Path

__all__ = ["BODIES", "SHORT", "body_seeds", "text_seeds"]

SHORT = 4_000  # bytes; longer files only slow a fuzzer down

TEXTS = (
    "SELECT * WHERE { ?s ?p ?o OPTIONAL { ?s <http://e/p>+ ?x FILTER(REGEX(?x, 'a+')) } } ORDER BY ?s",
    "CONSTRUCT { ?s ?p [ ] } WHERE { << ?s ?p ?o >> ?q ?r MINUS { ?s ?p 1 } }",
    "INSERT DATA { GRAPH <http://e/g> { <http://e/a> <http://e/p> 'x'@en {| <http://e/q> 1 |} } }",
    "DELETE { ?s ?p ?o } INSERT { ?o ?p ?s } WHERE { ?s ?p ?o FILTER(isIRI(?o)) } ; DROP SILENT NAMED",
)  # fmt: skip

# By media type: the endings of the suites' files, and a document.
BODIES: dict[str, tuple[tuple[str, ...], bytes]] = {
    "text/turtle": ((".ttl",), b"@prefix : <http://e/> . :a :p 1, 'x'@en, ( :b [] ) ; :q << :a :p 1 >> ."),
    "application/n-triples": ((".nt",), b'<http://e/a> <a:p> "x\\u0041"^^<http://e/t> .\n_:b <a:q> 1 .'),
    "application/n-quads": ((".nq",), b"<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n"),
    "application/trig": ((".trig",), b"@prefix : <a:> . GRAPH :g { :a :p :b } { :a :q <<( :a :p 1 )>> }"),
    "application/rdf+xml": (
        (".rdf",),
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
        b'<rdf:Description rdf:about="http://e/a"><e:p xml:lang="en">x &amp; y</e:p>'
        b'<e:q rdf:parseType="Collection"><e:C/></e:q></rdf:Description></rdf:RDF>',
    ),
    "application/ld+json": (
        (".jsonld",),
        b'{"@context": {"p": "http://e/p"}, "@id": "http://e/a", "p": [1, {"@value": "x", "@type": "@id"}],'
        b' "@graph": [{"@id": "_:b", "p": {"@list": [true, null]}}]}',
    ),
}  # fmt: skip


@cache
def text_seeds() -> tuple[bytes, ...]:
    """Queries and updates, well-formed and not, in an order that does not change."""
    return (*(text.encode() for text in TEXTS), *_suite_files(".rq", ".ru"))


@cache
def body_seeds(media_type: str) -> tuple[bytes, ...]:
    """Documents in one RDF syntax."""
    endings, document = BODIES[media_type]
    return (document, *_suite_files(*endings))


def _suite_files(*endings: str) -> tuple[bytes, ...]:
    suites = _shared() / "suites" / "w3c-rdf-tests"
    paths = sorted(path for path in suites.rglob("*") if path.suffix in endings)
    return tuple(path.read_bytes() for path in paths if path.stat().st_size <= SHORT)


def _shared() -> Path:
    project = Path(__file__).resolve().parents[3]
    return Path(os.environ.get("GRAPHDB_SHARED") or project.parent / "shared")
