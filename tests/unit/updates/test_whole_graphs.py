"""Which updates empty whole graphs, and which only look so."""

import pytest
from pyoxigraph import NamedNode, Quad, Store

from graphdb.sparql.parser import parse_update
from graphdb.store.clearing import Emptied
from graphdb.store.quad_store import QuadStore
from graphdb.updates.whole_graphs import emptied_by

G, H = NamedNode("urn:g"), NamedNode("urn:h")


@pytest.mark.parametrize(
    ("text", "graphs", "dropped"),
    [
        ("CLEAR GRAPH <urn:g>", [G], False),
        ("CLEAR SILENT GRAPH <urn:g>", [G], False),
        ("CLEAR DEFAULT", [None], False),
        ("CLEAR NAMED", [G, H], False),
        ("CLEAR ALL", [None, G, H], False),
        ("DROP GRAPH <urn:g>", [G], True),
        ("DROP DEFAULT", [None], True),
        ("DROP NAMED", [G, H], True),
        ("DROP ALL", [None, G, H], True),
        ("DELETE WHERE { ?s ?p ?o }", [None], False),
        ("DELETE WHERE { GRAPH <urn:g> { ?s ?p ?o } }", [G], False),
        ("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }", [G, H], False),
        ("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", [None], False),
        ("DELETE { GRAPH <urn:g> { ?s ?p ?o } } WHERE { GRAPH <urn:g> { ?s ?p ?o } }", [G], False),
        ("WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", [G], False),
        ("WITH <urn:g> DELETE { GRAPH ?x { ?s ?p ?o } } WHERE { GRAPH ?x { ?s ?p ?o } }", [G, H], False),
    ],
)
def test_updates_that_do(text: str, graphs: list[NamedNode | None], dropped: bool) -> None:
    emptied = emptied_by(parse_update(text, None), state())
    assert emptied is not None
    assert {*emptied.graphs} == {*graphs}
    assert {*emptied.dropped} == ({*graphs} - {None} if dropped else set())


@pytest.mark.parametrize(
    "text",
    [
        "DELETE WHERE { ?s <urn:p> ?o }",
        "DELETE WHERE { ?s ?p ?s }",
        "DELETE WHERE { GRAPH ?s { ?s ?p ?o } }",
        "DELETE WHERE { ?s ?p ?o . ?s ?q ?r }",
        "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o > 1) }",
        "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o . ?s a ?c }",
        "DELETE { ?s ?p ?o } WHERE { ?o ?p ?s }",
        "DELETE { ?s ?p ?o } WHERE { GRAPH <urn:g> { ?s ?p ?o } }",
        "DELETE { ?s ?p ?o } INSERT { ?s ?p 1 } WHERE { ?s ?p ?o }",
        "DELETE { ?s ?p ?o } USING <urn:g> WHERE { ?s ?p ?o }",
        "DELETE { ?s ?p ?o } WHERE { SELECT * { ?s ?p ?o } LIMIT 1 }",
        "INSERT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "CLEAR DEFAULT; CLEAR NAMED",
        "MOVE <urn:g> TO <urn:h>",
    ],
)
def test_updates_that_do_not(text: str) -> None:
    assert emptied_by(parse_update(text, None), state()) is None


def state() -> QuadStore:
    store = Store()
    store.extend(Quad(G, G, G, graph) for graph in (G, H))
    return QuadStore(store)


def test_an_update_without_names_drops_nothing() -> None:
    assert emptied_by(parse_update("DROP DEFAULT", None), state()) == Emptied([None], [])
