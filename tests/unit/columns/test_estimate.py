"""Which queries the estimate sends to a reader."""

from dataclasses import replace

import pytest

from graphdb.columns.catalog import Catalog
from graphdb.columns.estimate import COLLECTED_MAX, Estimate, estimate
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.unit.columns.test_aggregates import tables


def estimated(text: str, catalog: Catalog, *, by_lines: bool = True) -> Estimate:
    return estimate(abstract_query(parse_query(text)), catalog, by_lines=by_lines)


def chain(quads: int) -> str:
    triples = " ".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(quads))
    return f"INSERT DATA {{ {triples} }}"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (COUNT(*) AS ?n) { ?a <http://e/p>+ ?b }",
        "SELECT (COUNT(*) AS ?n) { <http://e/1> <http://e/p>+ ?b }",
        "SELECT ?c { <http://e/1> <http://e/p> ?b . ?b <http://e/p> ?c }",
        "SELECT ?b (COUNT(*) AS ?n) { ?a <http://e/p> ?b ; <http://e/q> ?c FILTER(?c > 5) } GROUP BY ?b",
    ],
)
def test_what_looks_at_few_quads_is_for_the_columns(text: str) -> None:
    assert estimated(text, tables(chain(5))).reader_because is None


@pytest.fixture(scope="module")
def dense() -> Catalog:
    """Each of 20 nodes leads to each; two are of a kind."""
    edges = [f"<http://e/{a}> <http://e/p> <http://e/{b}> ." for a in range(20) for b in range(20)]
    kinds = [f"<http://e/{a}> <http://e/kind> <http://e/k> ." for a in (0, 10)]
    return tables(f"INSERT DATA {{ {' '.join(edges + kinds)} }}")


STEPS = "?a <http://e/p> ?b . ?b <http://e/p> ?c . ?c <http://e/p> ?d"


@pytest.mark.parametrize(
    ("text", "triples"),
    [
        (f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {STEPS} }}", 20**4),
        (f"CONSTRUCT {{ ?a ?c ?d . ?d ?c ?a }} WHERE {{ {STEPS} }}", 2 * 20**4),
        (f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {STEPS} }} ORDER BY ?a", 20**4),
        (f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {STEPS} }} LIMIT {COLLECTED_MAX + 1}", COLLECTED_MAX + 1),
        (f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {{ {STEPS} }} UNION {{ {STEPS} }} }}", 2 * 20**4),
        (f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ ?x <http://e/kind> ?k OPTIONAL {{ {STEPS} }} }}", 2 * 20**4),
        (f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {{ SELECT * {{ {STEPS} }} }} BIND(1 AS ?one) }}", 20**4),
        (
            f"CONSTRUCT {{ ?a ?q ?d }} WHERE {{ {STEPS} . ?d ?q ?e FILTER(?a != ?e) }}",
            round(0.1 * 20**4 * 20.1),
        ),
        ("CONSTRUCT { ?a ?f ?i } WHERE { ?a ?e ?f . ?g ?h ?i }", 402**2),
    ],
)
def test_a_construct_that_collects_many_goes_to_a_reader(dense: Catalog, text: str, triples: int) -> None:
    assert estimated(text, dense).reader_because is None
    found = estimated(text, dense, by_lines=False)
    assert found.reader_because is not None
    assert found.reader_because.endswith(" triples, which a reader sends as it finds them")
    told = int(found.reader_because.split()[3])
    assert told == pytest.approx(triples, rel=0.1)


def test_one_of_a_million_triples_goes_to_a_reader_in_any_format(dense: Catalog) -> None:
    text = f"CONSTRUCT {{ ?a ?c ?e }} WHERE {{ {STEPS} . ?d <http://e/p> ?e }}"
    for by_lines in (True, False):
        found = estimated(text, dense, by_lines=by_lines)
        assert found.reader_because is not None
        assert found.reader_because.startswith("it makes about ")


def test_predicates_that_were_never_counted_have_one_value_each() -> None:
    text = "CONSTRUCT { ?a ?c ?d } WHERE { ?a <http://e/p> ?b . ?a <http://e/p> ?c . ?c <http://e/p> ?d }"
    catalog = tables(chain(300))
    assert estimated(text, catalog).reader_because is None
    for number, table in catalog.predicates.items():
        catalog.predicates[number] = replace(table, subjects=0, objects=0, is_stale=True)
    assert estimated(text, catalog).reader_because is None


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT ?a ?c ?d {{ {STEPS} }}",
        f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {STEPS} }} LIMIT 100",
        f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {STEPS} FILTER(?a != ?c) }}",  # some are left out
        f"CONSTRUCT {{ ?a ?p ?n }} WHERE {{ {{ SELECT ?a (COUNT(*) AS ?n) {{ {STEPS} }} GROUP BY ?a }} }}",
        f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {{ SELECT * {{ {STEPS} }} LIMIT 10 }} }}",
        "CONSTRUCT { ?a ?p ?b } WHERE { ?a <http://e/p> ?b . ?b <http://e/p> ?c . ?c <http://e/kind> ?k }",
    ],
)
def test_one_of_few_triples_is_for_the_columns(dense: Catalog, text: str) -> None:
    assert estimated(text, dense).reader_because is None
