"""How queries are cut over the shards of a column view: what moves, what is refused, and the same answers."""

from collections.abc import Iterator

import duckdb
import pytest
from pyoxigraph import QueryBoolean, Store

from graphdb.columns.sharding.cutting import CutLimits
from graphdb.columns.sharding.moves import Compute, Exchange, Gather, Move, Run, Send, Share
from graphdb.columns.sharding.shard import joined, joined_in_parts, read_piece, take_piece
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import Answer
from tests.support.column_answers import Refused, Rows, engine_answer, engine_rows, rows_of
from tests.support.column_shards import EXCHANGING, LIMITS, WatchedShards, divided, sharded_read
from tests.support.column_tables import column_tables

PREFIX = "PREFIX : <http://e/> "
SHARDS, PEOPLE = 3, 60


@pytest.fixture(scope="module")
def store() -> Store:
    """People in a ring: each knows the next two, lives in one of four towns and has an age and a name."""
    made = Store()
    triples = "".join(
        f":p{n} :knows :p{(n + 1) % PEOPLE}, :p{(n + 2) % PEOPLE} ; :town :t{n % 4} ; :age {n % 7} ; "
        f':name "N{n:03}" ; :weight {n / 8} . '
        for n in range(PEOPLE)
    )
    made.update(f'{PREFIX} INSERT DATA {{ {triples} :t0 :label "north" . :t1 :label "south"@en . }}')
    return made


@pytest.fixture(scope="module")
def shards(store: Store) -> Iterator[WatchedShards]:
    with divided(column_tables(store).connection, SHARDS) as made:
        yield made


def answered(shards: WatchedShards, text: str, limits: CutLimits = LIMITS) -> Rows | Refused:
    return sharded_read(shards, parse_query(PREFIX + text), rows_of, limits)


def kinds(shards: WatchedShards) -> list[type[Move]]:
    """Of the moves of the last query."""
    return [type(move) for move in shards.moves]


CUTS: dict[str, tuple[str, CutLimits, list[type[Move]]]] = {
    "a star is matched where its subject is": (
        "SELECT ?s ?a { ?s :town :t1 ; :age ?a FILTER(?a > 3) }",
        LIMITS,
        [Gather],
    ),
    "aggregates of parts": (
        "SELECT (COUNT(*) AS ?n) (SUM(?a) AS ?sum) (AVG(?w) AS ?mean) (MIN(?name) AS ?first) "
        "{ ?s :age ?a ; :weight ?w ; :name ?name }",
        LIMITS,
        [Gather, Run],
    ),
    "groups of parts": (
        "SELECT ?t (COUNT(?s) AS ?n) (MAX(?a) AS ?oldest) (COUNT(DISTINCT ?a) AS ?ages) "
        "{ ?s :town ?t ; :age ?a } GROUP BY ?t HAVING(COUNT(?s) > 1)",
        LIMITS,
        [Gather, Run],
    ),
    "groups of a subject are whole on its shard": (
        "SELECT ?s (COUNT(?k) AS ?n) { ?s :knows ?k } GROUP BY ?s HAVING(COUNT(?k) > 1)",
        LIMITS,
        [Gather],
    ),
    "counts that the statistics have": ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", LIMITS, []),
    "a small side is shared": (
        "SELECT ?name ?other { ?s :name ?name ; :knows ?k . ?k :name ?other }",
        LIMITS,
        [Compute, Share, Gather],
    ),
    "a large side goes where the subject is": (
        "SELECT ?name ?other { ?s :name ?name ; :knows ?k . ?k :name ?other }",
        EXCHANGING,
        [Compute, Exchange, Gather],
    ),
    "two large sides meet by their common value": (
        "SELECT (COUNT(*) AS ?n) { ?a :age ?x . ?b :age ?x }",
        EXCHANGING,
        [Compute, Compute, Exchange, Exchange, Gather, Run],
    ),
    "an optional side": (
        "SELECT ?s ?label { ?s :town ?t OPTIONAL { ?t :label ?label } }",
        LIMITS,
        [Compute, Share, Gather],
    ),
    "MINUS around the same subject": ("SELECT ?s { ?s :age ?a MINUS { ?s :town :t0 } }", LIMITS, [Gather]),
    "EXISTS around the same subject": (
        "SELECT ?s { ?s :age ?a FILTER NOT EXISTS { ?s :town :t0 } }",
        LIMITS,
        [Gather],
    ),
    "EXISTS of others is shared": (
        "SELECT ?s { ?s :town ?t FILTER EXISTS { ?t :label ?label } }",
        LIMITS,
        [Compute, Share, Gather],
    ),
    "a group that is joined is sent": (
        "SELECT ?s ?n { ?s :town ?t { SELECT ?t (COUNT(*) AS ?n) { ?p :town ?t } GROUP BY ?t } }",
        LIMITS,
        [Gather, Run, Run, Send, Gather],
    ),
    "a path is followed over gathered quads": ("SELECT ?x { :p0 :knows+ ?x }", LIMITS, [Gather]),
    "texts of several shards are compared by the coordinator": (
        "SELECT ?s ?k { ?s :name ?a ; :knows ?k . ?k :name ?b FILTER(SUBSTR(?a, 2) < SUBSTR(?b, 2)) }",
        LIMITS,
        [Compute, Share, Gather],
    ),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_query_moves_what_it_has_to(store: Store, shards: WatchedShards, name: str) -> None:
    text, limits, expected = CUTS[name]
    assert answered(shards, text, limits) == engine_rows(store, parse_query(PREFIX + text))
    assert kinds(shards) == expected


ALONE_CUTS: dict[str, tuple[str, int, list[type[Move]]]] = {
    "a small side is matched by the coordinator": (
        "SELECT (COUNT(*) AS ?n) { ?s :town ?t ; :knows ?k . ?t :label ?label }",
        10,
        [Run, Send, Gather, Run],
    ),
    "small sides are joined by the coordinator": (
        "SELECT (COUNT(*) AS ?n) { ?s :town ?t ; :age ?a ; :knows ?k . ?k :name ?name . ?t :label ?label }",
        70,
        [Run, Send, Run, Send, Gather, Run],
    ),
    "an optional side is sent": (
        "SELECT ?s ?label { ?s :town ?t ; :knows ?k OPTIONAL { ?t :label ?label } }",
        10,
        [Run, Send, Gather],
    ),
    "nothing is small": (
        "SELECT (COUNT(*) AS ?n) { ?s :town ?t ; :knows ?k . ?t :label ?label }",
        1,
        [Compute, Share, Gather, Run],
    ),
}


@pytest.mark.parametrize("name", ALONE_CUTS)
def test_what_is_small_a_coordinator_with_quads_matches(store: Store, name: str) -> None:
    text, most, expected = ALONE_CUTS[name]
    with divided(column_tables(store).connection, SHARDS, has_quads=True) as shards:
        found = answered(shards, text, CutLimits(alone_quads_max=most))
        assert found == engine_rows(store, parse_query(PREFIX + text))
        assert kinds(shards) == expected


ONE_SUBJECT_CUTS: dict[str, tuple[str, CutLimits, list[tuple[type[Move], bool]]]] = {
    "a star": ("SELECT ?k ?n { :p1 :knows ?k ; :name ?n }", LIMITS, [(Gather, True)]),
    "aggregates": ("SELECT (COUNT(?k) AS ?n) { :p1 :knows ?k }", LIMITS, [(Gather, True), (Run, False)]),
    "none": ("SELECT (COUNT(?k) AS ?n) { :none :knows ?k }", LIMITS, [(Gather, True), (Run, False)]),
    "its first rows": ("SELECT ?k { :p1 :knows ?k } ORDER BY ?k LIMIT 1", LIMITS, [(Gather, True)]),
    "a join": (
        "SELECT ?n { :p1 :knows ?k . ?k :name ?n }",
        LIMITS,
        [(Compute, True), (Share, True), (Gather, False)],
    ),
    "a join by exchange": (
        "SELECT ?n { :p1 :knows ?k . ?k :name ?n }",
        EXCHANGING,
        [(Compute, True), (Exchange, True), (Gather, False)],
    ),
    "an optional side": (
        "SELECT ?n ?k { :p1 :name ?n OPTIONAL { ?k :knows :p1 } }",
        LIMITS,
        [(Compute, False), (Share, False), (Gather, True)],
    ),
    "MINUS": (
        "SELECT ?k { :p1 :knows ?k MINUS { :p2 :knows ?k } }",
        LIMITS,
        [(Compute, True), (Share, True), (Gather, True)],
    ),
    "EXISTS": (
        "SELECT ?t { :p1 :town ?t FILTER EXISTS { ?k :town ?t ; :age 3 } }",
        LIMITS,
        [(Compute, False), (Share, False), (Gather, True)],
    ),
    "a union of the same": (
        "SELECT ?x { { :p1 :age ?x } UNION { :p1 :weight ?x } }",
        LIMITS,
        [(Gather, True)],
    ),
    "a union of the first shard's": (
        "SELECT ?x { { :p1 :age ?x } UNION { VALUES ?x { 1 } } }",
        LIMITS,
        [(Gather, False)],
    ),
    "a constant after it": (
        "SELECT ?k ?x { :p1 :knows ?k VALUES ?x { 1 2 } }",
        LIMITS,
        [(Gather, True)],
    ),
}


@pytest.mark.parametrize("name", ONE_SUBJECT_CUTS)
def test_a_constant_subject_is_asked_of_its_host(store: Store, shards: WatchedShards, name: str) -> None:
    text, limits, expected = ONE_SUBJECT_CUTS[name]
    assert answered(shards, text, limits) == engine_rows(store, parse_query(PREFIX + text))
    assert [(type(move), getattr(move, "host", None) is not None) for move in shards.moves] == expected


ONE_HOST_CUTS: dict[str, tuple[str, list[type[Move]]]] = {
    "a join": ("SELECT ?name ?o { ?s :name ?name ; :knows ?k . ?k :name ?o }", [Gather]),
    "an order": ("SELECT ?name ?w { ?s :name ?name ; :weight ?w } ORDER BY DESC(?w) ?name", [Gather]),
    "a part of an order": ("SELECT ?n { ?s :name ?n } ORDER BY DESC(?n) OFFSET 3 LIMIT 9", [Gather]),
    "a path": ("SELECT ?x { :p0 :knows+ ?x }", [Gather]),
    "whether there is one": ("ASK { ?s :age 3 ; :town :t0 }", [Gather]),
    "that there is none": ("ASK { ?s :age 77 ; :town :t0 }", [Gather]),
    "triples": ("CONSTRUCT { ?k :of ?t } WHERE { ?s :knows ?k ; :town ?t ; :age 3 }", [Gather]),
    "what no data has": ("SELECT ?s ?no { ?s :town :t9 OPTIONAL { ?s :name ?no } }", [Gather]),
    "no quads at all": ("SELECT ?x { VALUES ?x { 1 2 } }", []),
    "what statistics have": ("SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p", []),
    "statistics within a query": (
        "SELECT ?s ?n { ?s :age 3 { SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p } }",
        [Run, Send, Gather],
    ),
    "texts that no quad has": (
        "SELECT ?s ?x { ?s :age 3 VALUES ?x { 'one' 'three' } FILTER(STRLEN(?x) > 3) }",
        [Run, Send, Gather],
    ),
}


@pytest.mark.parametrize("name", ONE_HOST_CUTS)
def test_one_host_is_asked_as_one_view(store: Store, name: str) -> None:
    text, expected = ONE_HOST_CUTS[name]
    query = parse_query(PREFIX + text)

    def read(answer: Answer) -> list[str]:
        if isinstance(answer, QueryBoolean):
            return [str(bool(answer))]
        rows = [str(row) for row in answer]
        return rows if "ORDER" in text else sorted(rows)

    with divided(column_tables(store).connection, SHARDS, hosts=1, has_quads=True) as shards:
        found = sharded_read(shards, query, read)
        assert kinds(shards) == expected
        assert found == read(engine_answer(store, query))


def test_parts_of_aggregates_are_one_row_of_each_shard(shards: WatchedShards) -> None:
    before = shards.moved_rows
    answered(shards, "SELECT (SUM(?a) AS ?n) { ?s :age ?a ; :town :t2 }")
    assert shards.moved_rows - before == SHARDS


def test_the_first_rows_of_each_shard_are_enough(store: Store, shards: WatchedShards) -> None:
    text = "SELECT ?name { ?s :name ?name } ORDER BY DESC(?name) LIMIT 4"
    before = shards.moved_rows
    assert answered(shards, text) == engine_rows(store, parse_query(PREFIX + text))
    assert shards.moved_rows - before <= 4 * SHARDS


def test_rows_without_a_match_are_not_exchanged(store: Store, shards: WatchedShards) -> None:
    text = "SELECT ?s ?label { ?s :age 3 ; :town ?t . ?t :label ?label . ?t :label 'north' }"
    moved = []
    for limits in (EXCHANGING, CutLimits(shared_rows_max=0)):
        before = shards.moved_rows
        assert answered(shards, text, limits) == engine_rows(store, parse_query(PREFIX + text))
        assert Exchange in kinds(shards)
        moved.append(shards.moved_rows - before)
    assert moved[0] < moved[1]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { :p0 :knows+ ?x }",
        "SELECT ?a ?b { ?a :age ?x . ?b :weight ?y }",
        "SELECT ?s { ?s :age ?a }",
    ],
)
def test_what_would_come_together_in_one_place_is_bounded(shards: WatchedShards, text: str) -> None:
    refused = answered(shards, text, CutLimits(gathered_rows_max=50))
    assert isinstance(refused, Refused)
    assert "that would have to come together in one place" in refused.reason


def test_what_one_view_leaves_to_a_reader_shards_leave_too(shards: WatchedShards) -> None:
    assert answered(shards, "DESCRIBE :p1") == Refused("DESCRIBE")
    assert not shards.moves


def test_quads_are_divided(store: Store, shards: WatchedShards) -> None:
    tables = [row[0] for row in shards.coordinator.execute("SELECT DISTINCT tbl FROM predicates").fetchall()]
    subjects = [
        {row for table in tables for row in each.execute(f"SELECT DISTINCT s FROM {table}").fetchall()}
        for each in shards.shards
    ]
    assert all(subjects)
    assert not set.intersection(*subjects)
    assert len(set.union(*subjects)) == len({quad.subject for quad in store})
    quads = sum(shards.ask(f"SELECT count(*) FROM {table}")[n][0] for table in tables for n in range(SHARDS))
    assert quads == len(store)


def test_a_shard_has_the_texts_of_its_terms_only(shards: WatchedShards) -> None:
    ((whole,),) = shards.coordinator.execute("SELECT count(*) FROM terms").fetchall()
    for (own,) in shards.ask("SELECT count(*) FROM terms"):
        assert own < whole


VALUES = {
    "HUGEINT": "(1::HUGEINT << 100) + i",
    "BIGINT": "CASE WHEN i <> 1 THEN i END",
    "DOUBLE": "CASE i WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN '-inf'::DOUBLE WHEN 2 THEN NULL ELSE 0.1 * i END",
    "FLOAT": "0.1::FLOAT + i",
    "VARCHAR": "CASE i WHEN 0 THEN '' WHEN 1 THEN NULL ELSE 'é' || i END",
    "BOOLEAN": "CASE WHEN i <> 1 THEN i % 2 = 0 END",
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("rows", [0, 4])
def test_values_arrive_as_they_were(kind: str, rows: int) -> None:
    with duckdb.connect(":memory:") as connection:
        sql = f"SELECT ({VALUES[kind]})::{kind} AS c0, i AS c1 FROM range({rows}) t(i)"
        pieces = [read_piece(connection, f"{sql} WHERE i % 2 = {half}") for half in range(2)]
        assert take_piece(connection, "arrived", joined(pieces)) == rows
        ours = connection.execute("FROM arrived ORDER BY c1")
        assert str(ours.description[0][1]) == kind
        assert repr(ours.fetchall()) == repr(connection.execute(f"{sql} ORDER BY i").fetchall())


def test_pieces_are_joined_up_to_a_bound_and_nothing_is_lost() -> None:
    connection = duckdb.connect()
    sizes = (2, 0, 3, 9, 1, 1, 0)
    pieces = [
        read_piece(
            connection, f"SELECT if(r % 3 = 1, NULL, r + {100 * number}) AS c0 FROM range({size}) t(r)"
        )
        for number, size in enumerate(sizes)
    ]
    parts = list(joined_in_parts(pieces, 5))
    assert [part.rows for part in parts] == [5, 9, 2]
    took = [take_piece(connection, "t", part, appends=number > 0) for number, part in enumerate(parts)]
    expected = [
        None if row % 3 == 1 else row + 100 * number
        for number, size in enumerate(sizes)
        for row in range(size)
    ]
    assert (took, [row for (row,) in connection.execute("FROM t").fetchall()]) == ([5, 9, 2], expected)
    assert [part.rows for part in joined_in_parts(pieces[1:2], 5)] == [0]
