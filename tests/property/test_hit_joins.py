"""Hits joined in arrays are those that the engine joins, whatever was changed since they were read."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Triple

from graphdb.config.limits import GateLimits
from graphdb.sparql import text_tables
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.sparql.text_tables import CellFormat, KeptCells, TextTable, cells_of
from graphdb.store.quad_store import Answer
from graphdb.store.query_plans import plan_of
from graphdb.store.small_joins import SearchedStar, small_join
from graphdb.store.word_searches import WordSearch, star_of_any
from graphdb.text import hit_cells, hit_columns, hit_joins, word_answers
from tests.support.indexed_graph import IndexedGraph

XSD = "http://www.w3.org/2001/XMLSchema#"
subjects = st.sampled_from([NamedNode("urn:a"), NamedNode("urn:b#é"), NamedNode("urn:c'd"), BlankNode("d")])
predicates = st.sampled_from([NamedNode("urn:label"), NamedNode("urn:p"), NamedNode("urn:q")])
graphs = st.sampled_from([DefaultGraph(), DefaultGraph(), NamedNode("urn:g")])
words = st.lists(st.sampled_from(["red", "blue", "green"]), min_size=1, max_size=3).map(" ".join)
objects = (
    words.map(Literal)
    | st.sampled_from([Literal('a"\\\n\t\r\x7f,'), Literal("x", language="en"), Literal(3), Literal(1.5)])
    | st.sampled_from([Literal(True), Literal("1.50", datatype=NamedNode(f"{XSD}decimal"))])
    | subjects
)
quads = st.builds(Quad, subjects, predicates, objects, graphs)
changes = st.lists(st.tuples(st.lists(quads, max_size=4), st.integers(0, 2)), max_size=6)
patterns = st.lists(
    st.sampled_from(["?s :p ?x", "?s :q ?y", "?s :label ?z", "?s :q 3", "?s :p <urn:a>"]),
    max_size=3,
    unique=True,
)
limits = st.sampled_from(["", " 1", " 2"])
named = st.sampled_from([False, False, True])
FORMATS = (ResultFormat.JSON, ResultFormat.TSV, ResultFormat.CSV, ResultFormat.XML)


def star_of(text: str) -> SearchedStar:
    join = small_join(parse_query(text))
    assert join is not None
    assert join.star is not None
    return join.star


def query_of(wanted: str, limit: str, where: list[str], in_graph: bool) -> str:
    pattern = " . ".join([f'(?s ?score ?l ?g ?property) text:query ("{wanted}"{limit})', *where])
    pattern = f"GRAPH <urn:g> {{ {pattern} }}" if in_graph else pattern
    return f"PREFIX text: <http://jena.apache.org/text#> PREFIX : <urn:> SELECT * {{ {pattern} }}"


def written(answer: Answer | TextTable, form: ResultFormat) -> bytes:
    pieces: list[bytes] = []
    write_answer(answer, form, pieces.append)
    return b"".join(pieces)


def rows_of(answer: QuerySolutions) -> Counter[Any]:
    names = [variable.value for variable in answer.variables]
    return Counter(tuple(sorted((name, str(row[name])) for name in names)) for row in answer)


@settings(max_examples=200, deadline=None)
@given(changes, changes, words, limits, patterns, named, st.integers(0, 3))
def test_joins_what_the_engine_joins(
    before: list[tuple[list[Quad], int]],
    after: list[tuple[list[Quad], int]],
    wanted: str,
    limit: str,
    where: list[str],
    in_graph: bool,
    steps: int,
) -> None:
    text = query_of(wanted, limit, where, in_graph)
    star, indexed = star_of(text), IndexedGraph()
    for change in before:
        indexed.apply(*change)
    indexed.take_in()
    for _ in range(20):
        indexed.joined(star)
    for change in after:  # the first of them while the columns are read
        indexed.index.begin()
        for _ in range(steps):
            indexed.index.step()
        indexed.apply(*change)
    indexed.take_in()
    found = indexed.joined(star)
    assert found is not None
    assert rows_of(found.solutions()) == rows_of(indexed.of_engine(text))
    for form in FORMATS:
        assert written(found, form) == written(found.solutions(), form)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(hit_cells, "_FEW_ROWS", 0)  # in native code
            assert written(found, form) == written(found.solutions(), form)


def words_query(words: str, where: list[str], limit: int, columns: str, length: str) -> str:
    pattern = " . ".join([f'(?s ?score) text:query (:label "{words}" {limit})', *where])
    prefixes = "PREFIX text: <http://jena.apache.org/text#> PREFIX : <urn:>"
    return f"{prefixes} SELECT {columns} {{ {pattern} }} {length}"


def word_search(form: CellFormat, *query: Any) -> WordSearch:
    star = star_of_any(lambda words: plan_of(parse_query(words_query(words, *query)), GateLimits()))
    assert star is not None
    return WordSearch(star, form)


wanted_words = st.lists(st.sampled_from(["red", "Blue", "green", "none"]), min_size=1, max_size=4)
columns_and_where = st.tuples(
    st.sampled_from(["*", "?s", "?score ?s"]),
    st.lists(
        st.sampled_from(["?s :p ?x", "?s :q ?y", "?s :label ?z", "?s :q 3", "?s :p <urn:a>"]),
        max_size=3,
        unique=True,
    ),
)


@settings(max_examples=60, deadline=None)
@given(changes, changes, st.lists(wanted_words, min_size=1, max_size=4), columns_and_where, st.integers(1, 6))
def test_answers_for_words_are_the_bytes_of_the_join(
    before: list[tuple[list[Quad], int]],
    after: list[tuple[list[Quad], int]],
    wanted: list[list[str]],
    shape: tuple[str, list[str]],
    limit: int,
) -> None:
    columns, where = shape
    query = (where, limit, columns, "" if where else "LIMIT 3")
    searches, indexed = {form: word_search(form, *query) for form in CellFormat}, IndexedGraph()
    for change in before:
        indexed.apply(*change)
    indexed.take_in()
    for change in [([], 0), *after]:
        for _ in range(3):  # until the columns are read
            indexed.answer(searches[CellFormat.JSON], "red")
            indexed.take_in()
        indexed.apply(*change)
        for taken_in in (False, True):
            if taken_in:
                indexed.take_in()
            elif not indexed.index.has_all_before(indexed.log_index):
                continue
            for words in map(" ".join, wanted):
                table = indexed.joined(star_of(words_query(words, *query)))
                for form, search in searches.items():
                    found = indexed.answer(search, words)
                    if found is not None:
                        assert table is not None
                        assert found == written(table, ResultFormat[form.name])


@pytest.mark.parametrize("form", CellFormat)
def test_answers_for_words_hold_while_the_graph_changes(
    form: CellFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_answers, "_ROOM", 512)  # for an answer, at first
    query, indexed = (["?s :p ?x"], 20, "*", ""), filled()
    search, format = word_search(form, *query), ResultFormat[form.name]
    assert indexed.answer(search, "red") is None
    indexed.take_in()
    for number in (3, 7):
        table = indexed.joined(star_of(words_query("red", *query)))
        assert table is not None
        assert len(table) >= 20
        assert indexed.answer(search, "red") == indexed.answer(search, "Red none") == written(table, format)
        subject = NamedNode(f"urn:{number}")
        indexed.apply([Quad(subject, NamedNode("urn:p"), Literal("more"), DefaultGraph())], 0)
        assert indexed.answer(search, "red") is None  # a subject has changed, and is a hit
        for other in range(100, 300):  # so many that what they have is taken in
            subject = NamedNode(f"urn:{number}/{other}")
            indexed.apply([Quad(subject, NamedNode("urn:label"), Literal("other"), DefaultGraph())], 0)
        indexed.take_in()
    for words in ("red AND none", "re*", "", "rot\u00e9"):
        assert indexed.answer(search, words) is None
    assert indexed.answer(search, "none") == b"".join(
        part.encode() for part in text_tables.frame_of(("s", "score", "x"), form)[::2]
    )


@pytest.mark.parametrize(
    "text",
    [
        '(?s ?score) text:query (:label "{}" 2000)',
        '(?s ?score) text:query ("{}" 20)',  # of several properties
    ],
)
def test_other_searches_are_left_to_the_join(text: str) -> None:
    def query(words: str) -> str:
        prefixes = "PREFIX text: <http://jena.apache.org/text#> PREFIX : <urn:>"
        return f"{prefixes} SELECT * {{ {text.format(words)} . ?s :p ?x }}"

    star, indexed = star_of_any(lambda words: plan_of(parse_query(query(words)), GateLimits())), filled()
    assert star is not None
    for _ in range(3):
        assert indexed.answer(WordSearch(star, CellFormat.JSON), "red") is None
        indexed.take_in()


@pytest.mark.parametrize(
    "text",
    [
        '?s text:query (:label "red" 20) ; :p "{}"',
        '?s text:query (:label "{}" 20) ; :p "{}"',
        '?s text:query (:label "{}") ; :p ?x',  # all hits
        '(?s ?score ?l) text:query (:label "{}" 20) . ?s :p ?x',  # the literal is in the answer
        '?s :p "{}"',
    ],
)
def test_other_texts_are_no_searches_for_words(text: str) -> None:
    def query(words: str) -> str:
        prefixes = "PREFIX text: <http://jena.apache.org/text#> PREFIX : <urn:>"
        return f"{prefixes} SELECT * {{ {text.replace('{}', words)} }}"

    assert star_of_any(lambda words: plan_of(parse_query(query(words)), GateLimits())) is None


def filled() -> IndexedGraph:
    indexed = IndexedGraph()
    red = Literal("red")
    for number in range(50):
        subject = NamedNode(f"urn:{number}")
        indexed.apply(
            [
                Quad(subject, NamedNode("urn:label"), red, DefaultGraph()),
                Quad(subject, NamedNode("urn:p"), Literal(f"{number}"), DefaultGraph()),
            ],
            0,
        )
    indexed.take_in()
    return indexed


def test_a_column_is_read_when_it_is_asked_for_and_anew_after_a_load() -> None:
    star, indexed = star_of(query_of("red", "", ["?s :p ?x"], False)), filled()
    assert indexed.joined(star) is None
    indexed.take_in()
    found = indexed.joined(star)
    assert found is not None
    assert len(found) == 50
    indexed.index.columns.note_many()
    assert indexed.joined(star) is None
    indexed.take_in()
    assert indexed.joined(star) is not None


def test_what_many_subjects_have_that_changed_or_are_new_is_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    star, indexed = star_of(query_of("red", "", ["?s :p ?x"], False)), filled()
    indexed.joined(star)
    indexed.take_in()
    subjects = [NamedNode(f"urn:{number}") for number in range(120)]
    for subject in subjects:
        label = Quad(subject, NamedNode("urn:label"), Literal("red"), DefaultGraph())
        indexed.apply([label, Quad(subject, NamedNode("urn:p"), Literal("more"), DefaultGraph())], 0)
    indexed.take_in()
    monkeypatch.setattr(hit_joins, "_LOOKED_UP_MAX", 0)
    found = indexed.joined(star)
    assert found is not None
    assert len(found) == 170


@pytest.mark.parametrize("odd", [Triple(NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:c")), None])
def test_a_column_with_triples_or_with_very_many_objects_is_not_held(
    odd: Triple | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hit_columns, "_ROWS_MIN", 40)
    monkeypatch.setattr(hit_columns, "_ROWS_A_SUBJECT", 2)
    star, indexed = star_of(query_of("red", "", ["?s :p ?x"], False)), filled()
    subject, predicate = NamedNode("urn:1"), NamedNode("urn:p")
    objects = [Literal(f"{number}!") for number in range(60)] if odd is None else [odd]
    indexed.apply([Quad(subject, predicate, each, DefaultGraph()) for each in objects], 0)
    for _ in range(3):
        assert indexed.joined(star) is None
        indexed.take_in()


def test_it_can_be_switched_off() -> None:
    star, indexed = star_of(query_of("red", "", ["?s :p ?x"], False)), IndexedGraph(subjects_max=0)
    for _ in range(40):
        assert indexed.joined(star) is None
        indexed.take_in()


def test_more_subjects_than_allowed_end_it() -> None:
    star, indexed = star_of(query_of("red", "", ["?s :p ?x"], False)), IndexedGraph(subjects_max=1)
    for name in ("urn:a", "urn:b"):
        indexed.apply([Quad(NamedNode(name), NamedNode("urn:p"), Literal("red"), DefaultGraph())], 0)
    indexed.take_in()
    for _ in range(40):
        assert indexed.joined(star) is None
        indexed.take_in()


def test_a_column_that_is_asked_for_while_the_index_is_built_is_read_after_it() -> None:
    star, indexed = star_of(query_of("red", "", ["?s :p ?x"], False)), filled()
    indexed.index._begin_anew()
    indexed.index.begin()
    assert indexed.joiner.columns(star) is None
    indexed.take_in()
    found = indexed.joined(star)
    assert found is not None
    assert len(found) == 50


@pytest.mark.parametrize("form", CellFormat)
def test_only_so_many_characters_of_cells_are_kept(form: CellFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "_KEPT_CHARS", 500)
    kept = KeptCells()
    for number in range(40):
        texts = [f'"{number:050}"', '"again"', f'"{number // 2:050}"']
        assert kept.of(texts, form) == cells_of(texts, form)
        assert sum(map(len, kept._kept[form].values())) <= 500
