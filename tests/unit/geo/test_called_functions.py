"""Calls that could have no value whatever the data are: refused with the reason and the place."""

import subprocess
import sys

import pytest

from graphdb.config.limits import GateLimits
from graphdb.errors import BadGeometry, InvalidParameter, QuerySyntaxError, RequestError, UnknownFunction
from graphdb.geo.called_functions import calls_functions
from graphdb.sparql.gate import check, read_query, read_update

PREFIXES = (
    "PREFIX geo: <http://www.opengis.net/ont/geosparql#>"
    " PREFIX geof: <http://www.opengis.net/def/function/geosparql/>\n"
)
LIMITS = GateLimits()


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        ("geof:sfwithin(?w, ?v)", UnknownFunction, "there is geof:sfWithin"),
        ("geof:quux(?w)", UnknownFunction, "geof:quux"),
        ("geof:sfWithin(?w)", InvalidParameter, "takes 2 (a geometry, a geometry), and has 1"),
        ("geof:concaveHull(?w, 1, 2)", InvalidParameter, "1 or 2"),
        ("geof:isEmpty('POINT(1'^^geo:wktLiteral)", BadGeometry, "malformed WKT"),
        ("geof:isEmpty('POINT(1 1)')", BadGeometry, "is no geometry"),
        ("geof:isEmpty('<x'^^geo:gmlLiteral)", BadGeometry, "geof:isEmpty at line 2, column 23"),
        ("geof:distance(?w, ?v, <urn:metre>)", InvalidParameter, "<urn:metre> is not known"),
        ("geof:transform(?w, <urn:crs>)", InvalidParameter, "<urn:crs> is not known"),
        ("!(1 < 2 && geof:sfWithin(?w, geof:boundary()))", InvalidParameter, "geof:boundary"),
        ("geof:aggUnion(?w)", QuerySyntaxError, "an aggregate cannot stand in"),
    ],
)
def test_refused(expression: str, error: type[RequestError], words: str) -> None:
    with pytest.raises(error) as raised:
        check(read_query(f"{PREFIXES}ASK {{ ?s ?p ?w FILTER({expression}) }}", None, LIMITS), LIMITS)
    assert words in str(raised.value)
    assert "line 2, column" in str(raised.value)


@pytest.mark.parametrize(
    "expression",
    [
        "geof:sfWithin(?w, 'POINT(1 1)'^^geo:wktLiteral)",
        "geof:distance(?w, ?v, <http://www.opengis.net/def/uom/OGC/1.0/metre>) < 1",
        "geof:isEmpty(''^^geo:wktLiteral)",
        "<urn:else:sfWithin>(1, 2, 3)",
    ],
)
def test_admitted(expression: str) -> None:
    check(read_query(f"{PREFIXES}ASK {{ ?s ?p ?w FILTER({expression}) }}", None, LIMITS), LIMITS)


def test_updates_are_looked_at_too() -> None:
    update = f"{PREFIXES}CLEAR ALL; INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p ?w FILTER(geof:sfWithin(?w)) }}"
    with pytest.raises(InvalidParameter, match="geof:sfWithin"):
        check(read_update(update, None, LIMITS), LIMITS)


def test_aggregates_group() -> None:
    text = "SELECT ?k (geof:aggUnion(?w) AS ?all) { ?g ?k ?w } GROUP BY ?k"
    check(read_query(PREFIXES + text + " HAVING(!geof:isEmpty(geof:aggUnion(?w)))", None, LIMITS), LIMITS)
    check(read_query(PREFIXES + text, None, LIMITS), LIMITS)
    for wrong in ("geof:aggUnion(DISTINCT ?w)", "geof:aggUnion(?w, 1)", "geof:aggUnion()"):
        with pytest.raises(QuerySyntaxError, match="takes one argument"):
            read_query(f"{PREFIXES}SELECT ({wrong} AS ?all) {{ ?g ?k ?w }}", None, LIMITS)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("ASK { ?s ?p ?o FILTER(?o < 1) }", False),
        ("ASK { ?s geo:asWKT ?o FILTER(<urn:geof>(?o)) }", False),
        ("ASK { ?s ?p ?o FILTER(?o < 1 && geof:isEmpty(?o)) }", True),
        ("SELECT (geof:aggUnion(?o) AS ?u) { ?s ?p ?o }", True),
        ("ASK { ?s geo:sfWithin ?o }", True),
        ("ASK { ?s geo:sfWithin+ ?o }", False),
        ("ASK { SERVICE <urn:x> { ?s ?p ?o FILTER(geof:isEmpty(?o)) } }", False),
    ],
)
def test_which_requests_call(text: str, calls: bool) -> None:
    assert calls_functions(read_query(PREFIXES + text, None, LIMITS)) is calls


@pytest.mark.parametrize(
    "modules",
    [
        "serve.graph_app",
        "actors.shard.store_shard",
        "actors.readers.evaluator",
        "actors.readers.store_reader",
    ],
)
def test_nothing_loads_the_libraries_at_its_start(modules: str) -> None:
    program = f"import sys, {modules}; print(sorted({{'shapely', 'pyproj'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
