"""What is certain of an evaluation never exceeds what there is, and small stores refuse nothing."""

from random import Random

from pyoxigraph import QuerySolutions, Store

from graphdb.columns.certain_steps import certain_steps
from graphdb.columns.estimate import estimate, work_of
from graphdb.planning.costs import LearntCosts
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.support.column_tables import column_tables

_APART = ["?a <x:p> ?b .", "?c <x:q> ?d .", "?e ?r 7 .", "<x:1> ?p [] .", "VALUES ?v { 1 2 3 }"]
_TERMS = ["?a", "?b", "?c", "?d", "?e", "[]", "<x:1>", "<x:2>"]
_PREDICATES = ["<x:p>", "<x:q>", "<x:none>", "?p", "?r"]
_OTHERS = [
    "OPTIONAL { ?a <x:q> ?y }",
    "MINUS { ?a <x:q> 7 }",
    "BIND(?a AS ?z)",
    "{ ?a <x:p> ?n } UNION { ?a <x:q> ?n }",
    "GRAPH <x:g> { ?g <x:p> ?h }",
    "?a <x:p>* ?k .",
]
_FILTERS = [
    "FILTER(?a = ?c)",
    "FILTER(CONCAT(STR(?a), STR(?c)) = 'x')",
    "FILTER(?a > ?d && ?b < ?c)",
    "FILTER(?a > 3)",
    "FILTER(1 > 2)",
    "FILTER NOT EXISTS { ?a <x:q> ?c }",
]
_HEADS = ["SELECT *", "SELECT DISTINCT ?a", "SELECT (COUNT(*) AS ?n)", "ASK"]
_TAILS = ["", "", "", "LIMIT 3", "ORDER BY ?a LIMIT 3", "LIMIT 0", "OFFSET 4"]


def _quads(random: Random) -> str:
    subjects, predicates, objects = ["<x:1>", "<x:2>"], ["<x:p>", "<x:q>", "<x:r>"], ["<x:1>", "<x:2>", "7"]
    return " . ".join(
        f"{random.choice(subjects)} {random.choice(predicates)} {random.choice(objects)}" for _ in range(8)
    )


def _body(random: Random) -> str:
    patterns = random.sample(_APART, random.randint(0, 3))
    if random.random() < 0.3:
        patterns.append(f"{random.choice(_TERMS)} {random.choice(_PREDICATES)} {random.choice(_TERMS)} .")
    if random.random() < 0.3:
        patterns.append(random.choice(_OTHERS))
    random.shuffle(patterns)
    return " ".join(patterns)


def test_certain_steps_are_there() -> None:
    random, certain = Random(22), list[float]()
    for _ in range(30):
        store = Store()
        store.update(f"INSERT DATA {{ {_quads(random)} GRAPH <x:g> {{ {_quads(random)} }} }}")
        catalog = column_tables(store)
        for _ in range(12):
            body = _body(random)
            condition = random.choice(_FILTERS) if random.random() < 0.4 else ""
            text = f"{random.choice(_HEADS)} {{ {body} {condition} }} {random.choice(_TAILS)}"
            query = abstract_query(parse_query(text))
            found = certain_steps(query, catalog)
            certain.append(found)
            answer = store.query(f"SELECT (COUNT(*) AS ?n) {{ {body} }}")
            assert isinstance(answer, QuerySolutions)
            assert found <= int(next(answer)["n"].value), text
            work = work_of(query, estimate(query, catalog), catalog)
            assert work.steps >= 0
            assert work.rows >= 0
            assert LearntCosts().refusal(work, 0.1) is None
    assert sum(each > 1 for each in certain) > 60
