"""What queries of the past find in the states that they share, while a writer changes the view."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, QuerySolutions

from actors.columns.cursors import Cursors
from actors.columns.database import OpenView
from actors.columns.past_query import PastQuery
from actors.columns.protocol import ColumnTask, ViewSettings
from graphdb.columns import applying, loading
from graphdb.columns.applying import apply_changes
from graphdb.columns.catalog import Catalog
from graphdb.config.service import Columns
from graphdb.sparql.packing import packed
from graphdb.sparql.parser import parse_query
from tests.property.test_past_columns import PREFIX, QUERIES, PastTwin, check_answers
from tests.support.timing import HANG_S

SETTINGS = ViewSettings.of(Columns())
PREDICATES = [NamedNode(f"http://example.org/{name}") for name in "abc"]


class PastNode:
    """A view that is open, and copies of its store behind each entry."""

    def __init__(self, directory: Path, quads: list[Quad], arrays_bytes: int = 1 << 20) -> None:
        self.twin = PastTwin(directory, quads)
        self.view = OpenView(self.twin.view, 64, arrays_bytes, past_rows=10_000)

    @property
    def indexes(self) -> list[int]:
        return [index for index in self.twin.states if index < self.twin.index]

    def change(self, coming: list[Quad], places: set[int]) -> None:
        twin = self.twin
        before = twin.index
        twin.change(coming, places, drops=False)
        twin.note(before)
        with self.view.changing() as changed:
            changed |= apply_changes(twin.view, twin.entries, twin.directory)
        twin.entries.taken()

    def begun(self, index: int, cursors: Cursors | None = None) -> tuple[Cursors, Catalog]:
        past = self.view.past
        cursors = cursors or past.take(index) or self.view.fresh()
        return cursors, past.begin(cursors, index, HANG_S, lambda: None)

    def check(self, index: int) -> int:
        """By a query, and at once by what it has looked up; how many are answered at once."""
        cursors, catalog = self.begun(index)
        check_answers(catalog, self.twin.states[index])
        self.view.past.give_back(cursors, index)
        self.view.give_back(self.looked_up())
        at_once = 0
        for text in QUERIES:
            query = parse_query(PREFIX + text)
            task = ColumnTask(packed(query), None, (), [], [], "csv", index, HANG_S, None, as_of=index)
            answer = PastQuery(self.view, task, SETTINGS).at_once()
            if answer is not None:
                at_once += 1
                assert answer[0] == index
                expected = self.twin.states[index].query(PREFIX + text)
                assert isinstance(expected, QuerySolutions)
                wanted = expected.serialize(format=QueryResultsFormat.CSV) or b""
                found = b"".join(answer[1])
                assert sorted(found.split()) == sorted(wanted.split()), (index, text)
        return at_once

    def looked_up(self) -> Cursors:
        """Those of a query of the present, which has begun: what it knows is not of the past."""
        cursors = self.view.take()
        check_answers(self.view.begin(cursors)[1], self.twin.store)
        return cursors


def some_quads(chosen: random.Random, most: int) -> list[Quad]:
    """Without a named graph, so that they are counted by arrays."""
    nodes = [NamedNode(f"http://example.org/{number}") for number in range(6)]
    objects: list[NamedNode | Literal] = [*nodes, Literal(1), Literal(2)]
    return [
        Quad(chosen.choice(nodes), chosen.choice(PREDICATES), chosen.choice(objects))
        for _ in range(chosen.randrange(most))
    ]


@pytest.fixture(autouse=True)
def _frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (applying, loading):
        monkeypatch.setattr(module, "FREQUENT_QUADS", 4)


@pytest.mark.parametrize(("seed", "arrays_bytes"), [(1, 1 << 20), (2, 1 << 20), (3, 600)])
def test_states_that_come_and_go_answer_as_copies_of_then(
    tmp_path: Path, seed: int, arrays_bytes: int
) -> None:
    chosen = random.Random(seed)
    node = PastNode(tmp_path, some_quads(chosen, 20), arrays_bytes)
    at_once = 0
    for _ in range(20):
        if chosen.random() < 0.4 or not node.indexes:
            node.change(some_quads(chosen, 4), {chosen.randrange(20) for _ in range(chosen.randrange(3))})
        else:
            at_once += node.check(chosen.choice(node.indexes[-4:]))
    assert at_once > 20


def test_a_state_stays_where_only_its_own_predicates_change(tmp_path: Path) -> None:
    a, b, _ = PREDICATES
    quads = [Quad(a, predicate, Literal(number)) for predicate in (a, b) for number in range(5)]
    node = PastNode(tmp_path, quads)
    node.change([Quad(a, a, Literal(7))], set())
    node.check(1)
    cursors = node.view.past.take(1)
    assert cursors is not None
    path = cursors.search_path
    node.view.past.give_back(cursors, 1)
    for number, predicate, is_same in ((8, a, True), (9, b, False)):
        node.change([Quad(a, predicate, Literal(number))], set())
        assert (node.view.past.take(1) is not None) is is_same
        node.check(1)
        cursors, _ = node.begun(1)
        assert (cursors.search_path == path) is is_same
        node.view.past.give_back(cursors, 1)


class Between:
    """A cursor before whose statements of a kind something is done once."""

    def __init__(self, cursors: Cursors, statement: str, then: Callable[[], None]) -> None:
        self._cursor, self._statement, self._then = cursors.rows, statement, [then]

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql.startswith(self._statement) and self._then:
            self._then.pop()()
        return self._cursor.execute(sql, *parameters)


@pytest.mark.parametrize("statement", ["SET", "BEGIN", "FROM predicates", "FROM meta"])
def test_a_state_that_is_given_up_before_it_is_read_is_made_again(tmp_path: Path, statement: str) -> None:
    a = PREDICATES[0]
    node = PastNode(tmp_path, [])
    for number in range(4):
        node.change([Quad(a, a, Literal(number))], set())
    node.view.past.give_back(node.begun(1)[0], 1)
    fresh = node.view.fresh()

    def others() -> None:
        for index in (2, 3):
            node.view.past.give_back(node.begun(index)[0], index)

    between: Any = Between(fresh, statement, others)
    _, catalog = node.begun(1, Cursors(between, fresh.terms))
    check_answers(catalog, node.twin.states[1])
    assert catalog.connection.execute("SELECT count(*) FROM predicates").fetchall() == [(0,)]
    _, catalog = node.begun(2)
    check_answers(catalog, node.twin.states[2])


def test_states_are_exact_beside_a_writer(tmp_path: Path) -> None:
    chosen = random.Random(4)
    node = PastNode(tmp_path, some_quads(chosen, 20))
    node.change(some_quads(chosen, 5), set())
    text = "SELECT (SUM(quads)::BIGINT), (SELECT count(*) FROM rest) FROM predicates"

    def read(seed: int) -> int:
        own = random.Random(seed)
        for _ in range(40):
            index = own.choice(node.indexes[-3:])
            cursors, catalog = node.begun(index)
            counts = [
                catalog.connection.execute(f"SELECT count(*) {catalog.source(predicate)}").fetchall()[0][0]
                for predicate in catalog.predicates
            ]
            assert sum(counts) == len(node.twin.states[index])
            assert (catalog.connection.execute(text).fetchall()[0][0] or 0) == sum(counts)
            node.view.past.give_back(cursors, index)
        return 40

    with ThreadPoolExecutor(3) as threads:
        reading = threads.map(read, range(3))
        for _ in range(30):
            node.change(some_quads(chosen, 4), {chosen.randrange(20)})
        assert sum(reading) == 120
