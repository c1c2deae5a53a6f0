"""Media types and file names to syntaxes."""

import pickle
from pathlib import Path

import pytest

from graphdb.errors import InvalidParameter, UnsupportedMediaType
from graphdb.rdf.formats import RdfSyntax


@pytest.mark.parametrize(
    ("content_type", "syntax"),
    [
        ("text/turtle", RdfSyntax.TURTLE),
        ("Text/Turtle; Charset=UTF-8; version=1.2", RdfSyntax.TURTLE),
        ("application/n-triples-star", RdfSyntax.N_TRIPLES_STAR),
        ('application/ld+json; profile="http://www.w3.org/ns/json-ld#expanded"', RdfSyntax.JSON_LD),
        ("application/xml", RdfSyntax.RDF_XML),
    ],
)
def test_a_content_type_names_its_syntax(content_type: str, syntax: RdfSyntax) -> None:
    assert RdfSyntax.from_media_type(content_type) is syntax


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "text/n3", "application/json", "text/turtle; charset=latin1"]
)
def test_other_content_types_are_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        RdfSyntax.from_media_type(content_type)


@pytest.mark.parametrize(
    ("name", "syntax"),
    [
        ("a.ttl", RdfSyntax.TURTLE),
        ("b.c.NT.gz", RdfSyntax.N_TRIPLES),
        ("d.nq.zst", RdfSyntax.N_QUADS),
        ("e.owl", RdfSyntax.RDF_XML),
        ("f.jsonld", RdfSyntax.JSON_LD),
        ("g.trig", RdfSyntax.TRIG),
    ],
)
def test_a_file_name_tells_its_syntax(name: str, syntax: RdfSyntax) -> None:
    assert RdfSyntax.from_path(Path("folder") / name) is syntax


@pytest.mark.parametrize("name", ["a", "a.gz", "a.txt", "a.json", "ttl", ".ttl.gz.gz"])
def test_other_file_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameter):
        RdfSyntax.from_path(Path(name))


def test_only_these_carry_graphs() -> None:
    carriers = {syntax for syntax in RdfSyntax if syntax.carries_graphs}
    assert carriers == {RdfSyntax.N_QUADS, RdfSyntax.TRIG, RdfSyntax.JSON_LD}


@pytest.mark.parametrize("syntax", RdfSyntax)
def test_a_syntax_travels_between_processes_as_itself(syntax: RdfSyntax) -> None:
    assert pickle.loads(pickle.dumps(syntax)) is syntax
    assert RdfSyntax.from_media_type(syntax.media_type) is syntax
