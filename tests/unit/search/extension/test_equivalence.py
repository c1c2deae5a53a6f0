"""One query for many candidates gives what one query for each of them gives."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdb.config import Settings
from graphdb.config.limits import GateLimits
from graphdb.search.extension.extension_request import QueryOption
from graphdb.search.extension.questions import Questions
from graphdb.search.extension.template import Template, read_template
from graphdb.sparql.printing import written_query
from serve.search.graph.graph_asker import GraphAsker
from tests.support.memory_graph import MemoryGraph

LIMITS = GateLimits()
IDS = [
    "urn:a",
    "urn:b",
    "urn:c",
    "urn:d",
    "urn:not-there",
    "no iri",
    'x"} { ?s ?p ?o',
    "b\\",
    "nul\0",
    "urn:a b",
]

# What stands in WHERE, and whether the placeholder may become a variable there.
PATTERNS = {
    "triple": ("<{id}> <urn:p> ?x", True),
    "object": ("?x <urn:p> <{id}>", True),
    "predicate": ("?x <{id}> ?y", True),
    "string": ('?x <urn:p> "{id}"', True),
    "both": ('<{id}> <urn:p> ?x . ?y <urn:q> "{id}"', True),
    "twice": ("<{id}> <urn:p> ?x . ?x <urn:q> <{id}>", True),
    "list of predicates": ("<{id}> <urn:p> ?x ; <urn:q> ?y", True),
    "blank node": ("<{id}> <urn:p> [ <urn:q> ?y ]", True),
    "label": ("<{id}> <urn:p> _:b . _:b <urn:q> ?y", True),
    "union": ("{ <{id}> <urn:p> ?x } UNION { ?x <urn:q> <{id}> }", True),
    "union with a branch of all": ("{ <{id}> <urn:p> ?x } UNION { ?x <urn:q> <urn:b> }", True),
    "optional": ("?x <urn:p> ?y OPTIONAL { <{id}> <urn:q> ?x }", True),
    "optional alone": ("OPTIONAL { <{id}> <urn:q> ?x }", True),
    "optional before": ("OPTIONAL { <{id}> <urn:q> ?x } <{id}> <urn:p> ?x", True),
    "optional with a filter": ("<{id}> <urn:p> ?x OPTIONAL { ?x <urn:q> ?y FILTER(?y != <{id}>) }", False),
    "optional in the only group": ("{ ?x <urn:p> ?y OPTIONAL { <{id}> <urn:q> ?x } }", True),
    "optional in a group": ("?y ?p ?z { ?x <urn:p> ?y OPTIONAL { <{id}> <urn:q> ?x } }", False),
    "optional in optional": ("?x ?p ?y OPTIONAL { ?y <urn:q> ?z OPTIONAL { <{id}> <urn:q> ?w } }", False),
    "optional in union": ("{ ?x <urn:p> ?y OPTIONAL { <{id}> <urn:q> ?x } } UNION { ?x <urn:q> ?y }", False),
    "filter": ("?x <urn:p> ?y FILTER(?x = <{id}> || ?y = <{id}>)", True),
    "filter of strings": ('?x <urn:p> ?y FILTER(STR(?x) = "{id}")', True),
    "filter in": ("?x <urn:p> ?y FILTER(?x IN (<{id}>, <urn:b>))", True),
    "filter of the only group": ("{ ?x <urn:p> ?y FILTER(?x = <{id}>) }", True),
    "filter of a group": ("?y ?p ?z { ?x <urn:p> ?y FILTER(?x = <{id}>) }", False),
    "filter alone": ("FILTER(<{id}> != <urn:a>)", True),
    "exists": ("?x <urn:p> ?y FILTER EXISTS { ?y <urn:q> <{id}> }", True),
    "not exists": ("?x <urn:p> ?y FILTER NOT EXISTS { <{id}> <urn:q> ?x }", True),
    "not exists alone": ("FILTER NOT EXISTS { <{id}> <urn:p> <urn:a> }", True),
    "exists with minus": ("?x ?p ?y FILTER EXISTS { ?y <urn:q> ?z MINUS { <{id}> <urn:p> ?z } }", False),
    "minus": ("?x <urn:p> ?y MINUS { <{id}> <urn:q> ?x }", False),
    "minus beside": ("<{id}> <urn:p> ?y MINUS { ?y <urn:q> <urn:b> }", True),
    "bind": ("BIND(<{id}> AS ?own) ?own <urn:p> ?x", True),
    "bind of a group": ("?y <urn:p> ?x { BIND(<{id}> AS ?x) }", False),
    "values": ("VALUES ?x { <{id}> <urn:b> } ?x <urn:p> ?y", False),
    "sub-select": ("{ SELECT ?x WHERE { <{id}> <urn:p> ?x } ORDER BY ?x LIMIT 1 }", False),
    "count": ("{ SELECT (COUNT(*) AS ?n) WHERE { <{id}> <urn:p> ?x } }", False),
    "sub-select beside": ("<{id}> ?q ?x { SELECT ?x (COUNT(*) AS ?n) { ?x ?p ?o } GROUP BY ?x }", True),
    "star": ("<{id}> <urn:p>* ?x", False),
    "star to": ("?x <urn:p>* <{id}>", False),
    "maybe": ("<{id}> <urn:p>? ?x", False),
    "star in a sequence": ("<{id}> <urn:p>*/<urn:q> ?x", False),
    "plus": ("<{id}> <urn:p>+ ?x", True),
    "sequence": ("<{id}> <urn:p>/<urn:q> ?x", True),
    "step of a path": ("?x <{id}>/<urn:q> ?y", False),
    "star and triple of one subject": ("<{id}> <urn:p>* ?x ; <urn:q> ?y", False),
    "star elsewhere": ("<{id}> <urn:p> ?x . ?x <urn:q>* ?y", True),
    "named graph": ("GRAPH ?g { <{id}> <urn:p> ?x }", True),
    "graph itself": ("GRAPH <{id}> { ?x <urn:p> ?y }", False),
    "group": ("{ <{id}> <urn:p> ?x } { ?x <urn:q> ?y }", True),
    "empty": ("FILTER(true || <{id}> = <urn:a>)", True),
    "function": ("?x ?p ?y FILTER(<http://www.w3.org/2001/XMLSchema#string>(<{id}>) = STR(?x))", True),
    "language": ('?x <urn:p> "{id}"@en', False),
    "datatype": ('?x <urn:p> "{id}"^^<http://www.w3.org/2001/XMLSchema#integer>', False),
    "triple term": ("?x <urn:says> <<( <{id}> <urn:p> ?y )>>", True),
}  # fmt: skip
HEADS = {
    "star": ("SELECT * WHERE {{ {} }}", True),
    "columns": ("SELECT ?x ?y WHERE {{ {} }}", True),
    "distinct": ("SELECT DISTINCT ?x WHERE {{ {} }}", True),
    "expression": ("SELECT ?x (STR(<{{id}}>) AS ?me) WHERE {{ {} }}", True),
    "exists": ("SELECT ?x (EXISTS {{ ?x <urn:q> <{{id}}> }} AS ?has) WHERE {{ {} }}", True),
    "count": ("SELECT (COUNT(*) AS ?count) WHERE {{ {} }}", False),
    "group": ("SELECT ?x (COUNT(?y) AS ?count) WHERE {{ {} }} GROUP BY ?x", False),
    "limit": ("SELECT ?x ?y WHERE {{ {} }} ORDER BY ?x ?y LIMIT 2", False),
    "offset": ("SELECT ?x WHERE {{ {} }} ORDER BY ?x ?y OFFSET 1 # a comment", False),
    "values": ("SELECT ?x WHERE {{ {} }} VALUES ?x {{ <urn:a> <urn:c> }}", True),
    "ask": ("ASK {{ {} }}", True),
    "ask with values": ("ASK {{ {} }} VALUES ?x {{ <urn:a> <urn:c> }}", True),
    "ask with offset": ("ASK {{ {} }} OFFSET 1", False),
}  # fmt: skip


def read(text: str) -> Template:
    return read_template(QueryOption("test", text), "ASK" if text.startswith("ASK") else "SELECT", LIMITS)


def many(graph: MemoryGraph, template: Template) -> dict[str, Any]:
    asker = GraphAsker(graph, Settings())
    if template.query.form == "ASK":
        accepted = asyncio.run(asker.accepted(template, IDS))
        return {one: one in accepted for one in IDS}
    return {one: counted(rows) for one, rows in asyncio.run(asker.bindings(template, IDS)).items()}


def one_by_one(graph: MemoryGraph, template: Template) -> dict[str, Any]:
    """What the definition says: an id that cannot stand there matches nothing."""
    found: dict[str, Any] = {}
    for one in IDS:
        if template.query.form == "ASK":
            found[one] = (
                template.takes(one)
                and asyncio.run(graph.select(written_query(template.filled(one))))["boolean"]
            )
        else:
            answer = (
                asyncio.run(graph.select(written_query(template.filled(one))))
                if template.takes(one)
                else None
            )
            found[one] = counted(answer["results"]["bindings"] if answer else [])
    return found


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(str(sorted((name, sorted(term.items())) for name, term in row.items())) for row in rows)


NODES = st.sampled_from(
    ["<urn:a>", "<urn:b>", "<urn:c>", "<urn:d>", '"no iri"', '"urn:b"', '"1"', '"nul\\u0000"']
)
TRIPLES = st.tuples(
    st.sampled_from(["<urn:a>", "<urn:b>", "<urn:c>", "<urn:d>"]),
    st.sampled_from(["<urn:p>", "<urn:q>", "<urn:b>"]),
    NODES,
    st.sampled_from(["", "", "<urn:g>", "<urn:a>"]),
)


def graph_of(triples: list[tuple[str, str, str, str]]) -> MemoryGraph:
    graph = MemoryGraph()
    for s, p, o, g in triples:
        graph.store.update(f"INSERT DATA {{ {f'GRAPH {g} {{ {s} {p} {o} }}' if g else f'{s} {p} {o}'} }}")
        if not o.startswith('"') and p == "<urn:q>":
            graph.store.update(f"INSERT DATA {{ {s} <urn:says> <<( {o} <urn:p> {s} )>> }}")
    return graph


@pytest.mark.parametrize("pattern", PATTERNS)
@example(
    head="ask with values", triples=[("<urn:a>", p, "<urn:a>", "") for p in ("<urn:p>", "<urn:q>")]
)  # several rows
@given(head=st.sampled_from(sorted(HEADS)), triples=st.lists(TRIPLES, min_size=4, max_size=12))
@settings(max_examples=5, deadline=None)
def test_one_query_is_as_good_as_many(
    pattern: str, head: str, triples: list[tuple[str, str, str, str]]
) -> None:
    graph = graph_of(triples)
    template = read(HEADS[head][0].format(PATTERNS[pattern][0]))
    assert many(graph, template) == one_by_one(graph, template)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_placeholder_becomes_a_variable_where_it_may(pattern: str) -> None:
    where, may = PATTERNS[pattern]
    for head, keeps in HEADS.values():
        assert Questions(read(head.format(where)), LIMITS).varies is (may and keeps), head


@pytest.mark.parametrize("pattern", [name for name, (_, may) in PATTERNS.items() if may])
@given(triples=st.lists(TRIPLES, max_size=12))
@settings(max_examples=4, deadline=None)
def test_all_values_are_those_that_hold(pattern: str, triples: list[tuple[str, str, str, str]]) -> None:
    graph = graph_of(triples)
    template = read("ASK {" + PATTERNS[pattern][0] + "}")
    questions = Questions(template, LIMITS)
    if questions.enumerates:
        asker = GraphAsker(graph, Settings())
        known = asyncio.run(asker._everything(template, questions))
        assert known is not None
        assert {one: one in known for one in IDS} == one_by_one(graph, template)


def test_the_order_of_each_candidate_is_kept() -> None:
    graph = MemoryGraph("INSERT DATA { <urn:a> <urn:p> 3, 1, 2 . <urn:b> <urn:p> 9, 7, 8 }")
    template = read("SELECT ?x WHERE { <{id}> <urn:p> ?x } ORDER BY DESC(?x) LIMIT 2")
    found = asyncio.run(GraphAsker(graph, Settings()).bindings(template, ["urn:a", "urn:b"]))
    assert [row["x"]["value"] for row in found["urn:a"]] == ["3", "2"]
    assert [row["x"]["value"] for row in found["urn:b"]] == ["9", "8"]
    assert len(graph.asked) == 1


@pytest.mark.parametrize("where", ["<{id}> <urn:p> ?x", "?x <urn:p> ?y MINUS { <{id}> <urn:p> ?y }"])
def test_many_candidates_are_few_queries_that_the_gate_admits(where: str) -> None:
    graph = MemoryGraph("INSERT DATA { <urn:1> <urn:p> 1 . <urn:300> <urn:p> 1 }")
    template = read(f"SELECT * WHERE {{ {where} }}")
    ids = [f"urn:{number}" for number in range(1000)]
    found = asyncio.run(GraphAsker(graph, Settings()).bindings(template, ids))
    expected = 1 if "MINUS" not in where else 0
    assert len(found["urn:1"]) == expected
    assert len(found["urn:300"]) == expected
    assert len(graph.asked) == (1 if "MINUS" not in where else 20)
