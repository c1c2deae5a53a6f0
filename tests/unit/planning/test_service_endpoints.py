"""No endpoint that the engine would call is left in a text made for it, and nothing else is changed."""

import pytest

from graphdb.errors import EvaluationFailed, HostNotAllowed
from graphdb.planning.engine_text import engine_text, engine_text_and_services, is_silent, where_text
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.syntax import Iri, Modify
from graphdb.sparql.translation import pattern_of_group
from tests.unit.actors.egress.test_refusals import PATTERNS

URL = "http://one.example/sparql"
ONE, TWO = "urn:graphdb:service:token:0", "urn:graphdb:service:token:1"
SILENT = "urn:graphdb:service:silent:token:0"

RENAMED = {
    f"SELECT ?s {{ SERVICE <{URL}> {{ GRAPH ?g {{ VALUES ?g {{ 1 }} }} }} }}": (
        f"SELECT ?s WHERE {{ SERVICE <{ONE}> {{ GRAPH ?g {{ VALUES ?g {{ 1 }} }} }} }}",
        {ONE: URL},
    ),
    f"PREFIX s: <{URL}> ASK {{ service#\nsilent s: {{}} ?s s: <{URL}> SERVICE <{URL}> {{}} }}": (
        f"ASK WHERE {{ SERVICE SILENT <{SILENT}> {{ }} ?s <{URL}> <{URL}> . SERVICE <{TWO}> {{ }} }}",
        {SILENT: URL, TWO: URL},
    ),
    "ASK { SERVICE <a:b> { SERVICE <a:c> {} } SERVICE <a:c> { SERVICE <a:b> {} } }": (
        f"ASK WHERE {{ SERVICE <{ONE}> {{ SERVICE <a:c> {{ }} }}"
        f" SERVICE <{TWO}> {{ SERVICE <a:b> {{ }} }} }}",
        {ONE: "a:b", TWO: "a:c"},
    ),
    "ASK { ?s ?p ?o FILTER(1 = 1 || EXISTS { SERVICE <a:b> {} }) }": (
        f"ASK WHERE {{ ?s ?p ?o . FILTER(1 = 1 || EXISTS {{ SERVICE <{ONE}> {{ }} }}) }}",
        {ONE: "a:b"},
    ),
    # written out twice by other changes
    "ASK { GRAPH ?g { { SELECT (COUNT(*) AS ?n) { SERVICE <a:b> {} } } } }": (
        f"ASK WHERE {{ GRAPH ?g {{ {{ SELECT (COUNT(*) AS ?n) ?g"
        f" WHERE {{ GRAPH ?g {{ }} SERVICE <{ONE}> {{ }} }}"
        f" GROUP BY ?g }} UNION {{ GRAPH ?g {{ }} {{ SELECT (COUNT(*) AS ?n) WHERE {{ FILTER(false) }} }}"
        f" FILTER(NOT EXISTS {{ GRAPH ?g {{ }} SERVICE <{ONE}> {{ }} }}) }} }} }}",
        {ONE: "a:b"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), RENAMED.items(), ids=range(len(RENAMED)))
def test_endpoints_become_placeholders(text: str, expected: tuple[str, dict[str, str]]) -> None:
    renamed, services = engine_text_and_services(parse_query(text), "token")
    assert (renamed.text.split(), services) == (expected[0].split(), expected[1])


def pattern_texts() -> list[str]:
    head = "PREFIX u: <http://127.0.0.1:9/sparql> PREFIX l: <http://127.0.0.1:9/> "
    texts = []
    for pattern in PATTERNS.values():
        if "?e" in pattern or "?nothing" in pattern:
            continue
        call = "SERVICE <http://127.0.0.1:9/> { ?a ?b ?c }"
        body = pattern.replace("CALL", call).replace("URL", "http://127.0.0.1:9/").replace("PORT", "9")
        texts.append(f"{head} SELECT * WHERE {{ {body} }}")
    return texts


@pytest.mark.parametrize("text", pattern_texts())
def test_no_endpoint_is_left(text: str) -> None:
    """The parser notes endpoints by the grammar, the renaming walks the tree."""
    query = parse_query(text, "http://127.0.0.1:9/")
    renamed, services = engine_text_and_services(query, "token")
    left = parse_query(renamed.text, "http://127.0.0.1:9/").service_hosts
    inner = [each for each in left if not (isinstance(each, Iri) and each.value in services)]
    assert set(services.values()) <= {each.value for each in query.service_hosts if isinstance(each, Iri)}
    assert services
    nested = "in another SERVICE that is allowed"
    assert len(inner) == (PATTERNS[nested].partition("{")[0] in text)


def test_updates_too() -> None:
    update = parse_update(
        "DELETE { ?s ?p 1 } WHERE { ?s ?p 1 MINUS { ?s ?q 2 SERVICE <a:b> { SERVICE <a:c> {} } } }"
    )
    operation = update.operations[0]
    assert isinstance(operation, Modify)
    text, services = where_text(pattern_of_group(operation.pattern), ["s"], operation.prologue, "token")
    assert text == (
        f"SELECT ?s WHERE {{ ?s ?p 1 . MINUS {{ ?s ?q 2 . SERVICE <{ONE}> {{ SERVICE <a:c> {{ }} }} }} }}"
    )
    assert services == {ONE: "a:b"}


def test_silent_is_told_by_the_placeholder() -> None:
    _, services = engine_text_and_services(
        parse_query("ASK { SERVICE SILENT <a:b> {} SERVICE <a:b> {} }"), "token"
    )
    assert [is_silent(name) for name in services] == [True, False]


def test_a_variable_is_refused() -> None:
    query = parse_query("ASK { VALUES ?e { <a:b> } SERVICE SILENT ?e {} }")
    with pytest.raises(HostNotAllowed, match=r"\?e"):
        engine_text_and_services(query, "token")


def test_without_placeholders_there_is_no_text() -> None:
    with pytest.raises(EvaluationFailed):
        engine_text(parse_query("ASK { SERVICE <a:b> {} }"))
