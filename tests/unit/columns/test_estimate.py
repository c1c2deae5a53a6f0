"""Which queries the estimate sends to a reader."""

import pytest

from graphdb.columns.estimate import PATH_QUADS_MAX, READER_STEPS_MAX, estimate
from graphdb.sparql.parser import parse_query
from tests.unit.columns.test_statistics_answers import tables

PATH = "SELECT (COUNT(*) AS ?n) { ?a <http://e/p>+ ?b }"


def chain(quads: int) -> str:
    triples = " ".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(quads))
    return f"INSERT DATA {{ {triples} }}"


def test_a_path_among_few_quads_goes_to_a_reader() -> None:
    found = estimate(parse_query(PATH), tables(chain(5)))
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
    assert estimate(parse_query(text), tables(chain(quads))).reader_because is None


def star(subjects: int) -> str:
    triples = " ".join(
        f"<http://e/{n}> <http://e/p> {n} ; <http://e/q> <http://e/k> ." for n in range(subjects)
    )
    return f"INSERT DATA {{ {triples} }}"


FILTERED = "SELECT ?k (COUNT(*) AS ?n) { ?a <http://e/p> ?o ; <http://e/q> ?k FILTER(?o > 5) } GROUP BY ?k"


def test_a_filtered_star_of_few_quads_goes_to_a_reader() -> None:
    found = estimate(parse_query(FILTERED), tables(star(10)))
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
    assert estimate(parse_query(text), tables(star(subjects))).reader_because is None


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
    found = estimate(parse_query(FROM_A_NAME), tables(routes(500)))
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
    assert estimate(parse_query(FROM_A_NAME.replace(old, new)), tables(routes(500))).reader_because is None


def test_what_a_constant_leads_to_in_many_steps_is_for_the_columns() -> None:
    back = "?r2 <http://e/to> ?b ; <http://e/from> ?d . ?r3 <http://e/from> ?d ; <http://e/to> ?e }"
    text = FROM_A_NAME.removesuffix("}") + " . " + back
    assert estimate(parse_query(text), tables(routes(500))).reader_because is None
