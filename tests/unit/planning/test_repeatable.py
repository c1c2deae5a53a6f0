"""Which answers may be kept: a call that differs each time is found wherever it stands."""

import pytest

from graphdb.planning.decisions import is_repeatable
from graphdb.sparql.parser import parse_query

REPEATABLE = [
    "SELECT * { ?s ?p ?o }",
    "ASK {}",
    "CONSTRUCT { _:b ?p ?o } WHERE { ?s ?p ?o }",
    "DESCRIBE <http://x/s>",
    "SELECT (SAMPLE(?o) AS ?x) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > 1) ORDER BY STR(?s)",
    "SELECT (MD5('NOW()') AS ?rand) { ?uuid <http://x/RAND> 'UUID()' # NOW()\n }",
    "SELECT (<http://x/now>() AS ?x) {}",
]
CALLS = ["RAND()", "now()", "UUID()", "StrUuid()", "BNODE()", "BNODE('a')"]
PLACES = {
    "a column": "SELECT ({} AS ?x) {{}}",
    "a sum": "SELECT (1 + 2 * {} AS ?x) {{}}",
    "a difference": "SELECT (1 - {} AS ?x) {{}}",
    "a call": "SELECT (CONCAT('a', STR({})) AS ?x) {{}}",
    "a cast": "SELECT (<http://www.w3.org/2001/XMLSchema#string>({}) AS ?x) {{}}",
    "an aggregate": "SELECT (MAX({}) AS ?x) {{ ?s ?p ?o }}",
    "BIND": "ASK {{ BIND({} AS ?x) }}",
    "FILTER": "ASK {{ FILTER(!(true && {} = 1)) }}",
    "IN": "ASK {{ FILTER(1 IN (2, {})) }}",
    "a negative": "ASK {{ FILTER(-{} = 1) }}",
    "EXISTS": "ASK {{ FILTER NOT EXISTS {{ BIND({} AS ?x) }} }}",
    "EXISTS in a sum": "ASK {{ FILTER(1 + IF(EXISTS {{ FILTER({} = 1) }}, 1, 2) > 2) }}",
    "OPTIONAL": "ASK {{ OPTIONAL {{ BIND({} AS ?x) }} }}",
    "UNION": "ASK {{ {{}} UNION {{ BIND({} AS ?x) }} }}",
    "MINUS": "ASK {{ MINUS {{ ?s ?p ?o FILTER({} = 1) }} }}",
    "GRAPH": "ASK {{ GRAPH ?g {{ BIND({} AS ?x) }} }}",
    "a sub-select": "SELECT * {{ {{ SELECT ({} AS ?x) {{}} }} }}",
    "GROUP BY": "SELECT (COUNT(*) AS ?n) {{ ?s ?p ?o }} GROUP BY ({} AS ?x)",
    "HAVING": "SELECT ?s {{ ?s ?p ?o }} GROUP BY ?s HAVING({} = 1)",
    "ORDER BY": "SELECT * {{ ?s ?p ?o }} ORDER BY DESC({})",
    "CONSTRUCT": "CONSTRUCT {{ ?s ?p ?x }} WHERE {{ ?s ?p ?o BIND({} AS ?x) }}",
    "DESCRIBE": "DESCRIBE ?x {{ BIND({} AS ?x) }}",
}


@pytest.mark.parametrize("text", REPEATABLE)
def test_repeatable(text: str) -> None:
    assert is_repeatable(parse_query(text, None))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("place", PLACES)
def test_not_repeatable(place: str, call: str) -> None:
    assert not is_repeatable(parse_query(PLACES[place].format(call), None))


@pytest.mark.parametrize("service", ["SERVICE <http://h/>", "SERVICE SILENT ?e"])
def test_other_services(service: str) -> None:
    assert not is_repeatable(parse_query(f"SELECT * {{ OPTIONAL {{ {service} {{ ?s ?p ?o }} }} }}", None))
