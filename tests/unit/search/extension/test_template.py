"""Placeholders are filled in as terms, whatever is filled in."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphdb.config.limits import GateLimits
from graphdb.search.errors import SearchError
from graphdb.search.extension.extension_request import QueryOption
from graphdb.search.extension.template import iri_of, read_template, string_of
from graphdb.sparql.lexer import tokens
from graphdb.sparql.parser import parse_query
from graphdb.sparql.patterns import TriplesBlock
from graphdb.sparql.printing import written_query, written_term
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import Iri, RdfLiteral
from graphdb.sparql.translation import abstract_query

LIMITS = GateLimits()
HOSTILE = st.text(alphabet=st.sampled_from("<>\"'{}\\\n\r\t\0 #@^^:/.?$_~%&|a1é\U0001f600")) | st.text()


def option(text: str, name: str = "id") -> QueryOption:
    return QueryOption("sparql_enrich", text, name)


@given(HOSTILE)
@example('urn:x"> } ; DROP ALL #')
@example("urn:x> <urn:p> ?o } #")
@example('"')
@example("\\")
@example("")
def test_a_value_is_one_term_and_the_same_one(value: str) -> None:
    template = read_template(
        option("SELECT * { ?s <urn:p> \"{id}\", '{id}', \"\"\"{id}\"\"\", '''{id}''' }"), "SELECT", LIMITS
    )
    if not template.takes(value):
        assert any("\ud800" <= sign <= "\udfff" for sign in value)
        return
    query = parse_query(written_query(template.filled(value)))
    assert query.where is not None
    [block] = query.where.elements
    assert isinstance(block, TriplesBlock)
    objects = [triple.object for triple in block.triples]
    assert all(isinstance(term, RdfLiteral) and term.value == value for term in objects)
    assert len(objects) == 4


def test_a_byte_order_mark_is_passed_over() -> None:
    template = read_template(option("\ufeffSELECT * { <{id}> <urn:p> ?o }"), "SELECT", LIMITS)
    filled = template.filled("urn:a")
    assert filled == abstract_query(parse_query("SELECT * { <urn:a> <urn:p> ?o }"))


def test_a_state_of_the_past_is_refused() -> None:
    """Searches read the present: without a refusal this would be taken for an answer of the past."""
    for form, text in (
        ("SELECT", "SELECT * FROM <as-of:1> { <{id}> ?p ?o }"),
        ("ASK", "ASK FROM <as-of:a> { <{id}> ?p 1 }"),
    ):
        with pytest.raises(SearchError, match="a state of the past is not read here"):
            read_template(option(text), form, LIMITS)


@given(HOSTILE | HOSTILE.map("urn:".__add__))
@example("urn:a")
@example("http://example.org/é?x=1#y")
@example("relative")
def test_an_iri_is_itself_or_nothing(value: str) -> None:
    template = read_template(option("SELECT * { <{id}> ?p ?o }"), "SELECT", LIMITS)
    if not template.takes(value):
        return
    query = parse_query(written_query(template.filled(value)))
    assert query.where is not None
    [block] = query.where.elements
    assert isinstance(block, TriplesBlock)
    [triple] = block.triples
    assert isinstance(triple.subject, Iri)
    assert triple.subject.value == value


@given(HOSTILE)
def test_whatever_is_written_is_one_token(value: str) -> None:
    for term in (iri_of(value), string_of(value)):
        if term is not None:
            written = written_term(term)
            [token, _] = tokens(load_tables(), written)
            assert token.text == written


@pytest.mark.parametrize(
    ("value", "takes"),
    [("urn:a", True), ("http://x/y", True), ("a", False), ("", False), ("urn:a b", False), ("urn:<", False)],
)
def test_only_absolute_iris_stand_in_angle_brackets(value: str, takes: bool) -> None:
    assert read_template(option("ASK { <{id}> ?p ?o }"), "ASK", LIMITS).takes(value) is takes


@pytest.mark.parametrize(
    "text",
    [
        "ASK { <{id}> ?p ?o . ?s ?p {id} }",
        "ASK { <{id}> ?p ?o . ?s ?p 'say {id}' }",
        "ASK { <{id}> ?p ?o . <urn:{id}> ?p ?o }",
        "ASK { <{id}> ?p ?o . ?s ?p '''say \"{id}\" aloud''' }",
        "ASK { <{id}> ?p ?o # about <{id}>\n }",
        "PREFIX x: <{id}> ASK { <{id}> x:p ?o }",
        "BASE <{id}> ASK { <{id}> <p> ?o }",
        "ASK FROM <{id}> { <{id}> ?p ?o }",
        'ASK { <{id}> ?p """<{id}>""" }',
    ],
)
def test_a_placeholder_that_is_no_term_is_refused(text: str) -> None:
    with pytest.raises(SearchError, match=r"placeholder|where no term stands"):
        read_template(option(text), "ASK", LIMITS)


def test_what_has_no_placeholder_or_another_form_is_refused() -> None:
    with pytest.raises(SearchError, match=r"does not contain the placeholder <\{doc\}>"):
        read_template(option("ASK { <{id}> ?p ?o }", "doc"), "ASK", LIMITS)
    with pytest.raises(SearchError, match="must be ASK, not SELECT"):
        read_template(option("SELECT * { <{id}> ?p ?o }"), "ASK", LIMITS)
    with pytest.raises(
        SearchError, match=r"sparql_exception: .sparql_enrich. syntax error at line 1"
    ) as wrong:
        read_template(option("ASK { <{id}> }"), "ASK", LIMITS)
    assert wrong.value.status == 400


def test_the_gate_bounds_what_is_parsed() -> None:
    with pytest.raises(SearchError, match="sparql_exception"):
        read_template(option("ASK { <{id}> ?p ?o } #" + "x" * 300_000), "ASK", LIMITS)
    nested = "ASK { " + "{ " * 100 + "<{id}> ?p ?o" + " }" * 100 + " }"
    with pytest.raises(SearchError, match="nesting"):
        read_template(option(nested), "ASK", LIMITS)
