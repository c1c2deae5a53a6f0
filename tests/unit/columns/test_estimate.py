"""Which queries the estimate sends to a reader."""

from dataclasses import replace

import pytest

from graphdb.columns.catalog import Catalog
from graphdb.columns.estimate import (
    COLLECTED_MAX,
    PATH_QUADS_MAX,
    READER_STEPS_MAX,
    Estimate,
    estimate,
)
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.unit.columns.test_aggregates import tables

PATH = "SELECT (COUNT(*) AS ?n) { ?a <http://e/p>+ ?b }"


def estimated(text: str, catalog: Catalog, *, by_lines: bool = True) -> Estimate:
    return estimate(abstract_query(parse_query(text)), catalog, by_lines=by_lines)


def chain(quads: int) -> str:
    triples = " ".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(quads))
    return f"INSERT DATA {{ {triples} }}"


def test_a_path_among_few_quads_goes_to_a_reader() -> None:
    found = estimated(PATH, tables(chain(5)))
    assert found.reader_because == "it follows a path of any length among 5 quads only"


@pytest.mark.parametrize(
    ("text", "quads"),
    [
        (PATH, PATH_QUADS_MAX + 1),
        ("SELECT (COUNT(*) AS ?n) { ?a <http://e/p>/<http://e/p> ?b }", 5),
        ("SELECT (COUNT(*) AS ?n) { ?a <http://e/p> ?b }", 5),
        ("SELECT (COUNT(*) AS ?n) { ?a <http://e/p>* ?b }", 5),
        ("SELECT (COUNT(*) AS ?n) { ?a (!<http://e/q>)+ ?b }", PATH_QUADS_MAX + 1),
    ],
)
def test_longer_ones_and_paths_of_fixed_length_are_for_the_columns(text: str, quads: int) -> None:
    assert estimated(text, tables(chain(quads))).reader_because is None


def star(subjects: int) -> str:
    triples = " ".join(
        f"<http://e/{n}> <http://e/p> {n} ; <http://e/q> <http://e/k> ." for n in range(subjects)
    )
    return f"INSERT DATA {{ {triples} }}"


FILTERED = "SELECT ?k (COUNT(*) AS ?n) { ?a <http://e/p> ?o ; <http://e/q> ?k FILTER(?o > 5) } GROUP BY ?k"


def test_a_filtered_star_of_few_quads_goes_to_a_reader() -> None:
    found = estimated(FILTERED, tables(star(10)))
    assert found.reader_because == "it joins and filters few quads, in about 20 steps"


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        (FILTERED, READER_STEPS_MAX // 2 + 1),
        (FILTERED.replace("FILTER(?o > 5)", ""), 10),
        (FILTERED.replace("?o > 5", "?o != 5"), 10),
        (FILTERED.replace("?o > 5", "?n > 5"), 10),
        (FILTERED.replace("?a <http://e/p>", "?b <http://e/p> ?k . ?a <http://e/p>"), 10),
    ],
)
def test_a_larger_one_and_one_that_nothing_bounds_is_for_the_columns(text: str, subjects: int) -> None:
    assert estimated(text, tables(star(subjects))).reader_because is None


def routes(airports: int) -> str:
    """Each airport has a route to each of the next ten, every hundredth is in a country that has a name."""
    triples = [f"<http://e/a{n}> <http://e/in> <http://e/c{n % 100}> ." for n in range(airports)]
    triples += [f'<http://e/c{n}> <http://e/name> "c{n}" .' for n in range(100)]
    triples += [
        f"<http://e/r{n}x{by}> <http://e/from> <http://e/a{n}> ; "
        f"<http://e/to> <http://e/a{(n + by) % airports}> ."
        for n in range(airports)
        for by in range(1, 11)
    ]
    return f"INSERT DATA {{ {' '.join(triples)} }}"


FROM_A_NAME = """SELECT (COUNT(DISTINCT ?b) AS ?n)
{ ?r <http://e/from> ?a ; <http://e/to> ?b . ?a <http://e/in> ?c . ?c <http://e/name> "c7" }"""


def test_what_a_constant_leads_to_in_few_steps_goes_to_a_reader() -> None:
    # 1 country, its 5 airports, their 50 routes, each with one end: and as many look-ups as there were rows
    found = estimated(FROM_A_NAME, tables(routes(500)))
    assert found.reader_because == "it joins what a constant leads to, in about 162 steps"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"c7"', "?name"),  # no constant
        ("?c <http://e/name>", "?d <http://e/name>"),  # it leads nowhere
        ("<http://e/from> ?a", "<http://e/from>+ ?a"),
        ('"c7"', '"c7" OPTIONAL { ?a <http://e/in> ?d }'),
        ('"c7"', '"c7" FILTER EXISTS { ?x <http://e/from> ?b }'),  # looked for again for each row
    ],
)
def test_what_no_constant_leads_to_is_for_the_columns(old: str, new: str) -> None:
    assert estimated(FROM_A_NAME.replace(old, new), tables(routes(500))).reader_because is None


def test_what_a_constant_leads_to_in_many_steps_is_for_the_columns() -> None:
    back = "?r2 <http://e/to> ?b ; <http://e/from> ?d . ?r3 <http://e/from> ?d ; <http://e/to> ?e }"
    text = FROM_A_NAME.removesuffix("}") + " . " + back
    assert estimated(text, tables(routes(500))).reader_because is None


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
