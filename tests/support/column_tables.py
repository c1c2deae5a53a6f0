"""A column view of the quads of a store, made in one go for tests of the compiler."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import duckdb
from pyoxigraph import DefaultGraph, Literal, Store, Triple

from graphdb.columns.catalog import Catalog
from graphdb.columns.schema import create, predicate_table
from graphdb.columns.term_ids import DEFAULT_GRAPH, Tag, Term, inline_id, tag_of_term, tagged

__all__ = ["column_tables"]


def column_tables(store: Store, frequent: int = 2) -> Catalog:
    """The view of the store's quads; predicates of at least so many quads get a table of their own."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    create(connection)
    ids: dict[Term, int] = {}
    rows: list[tuple[object, ...]] = []
    triples: list[tuple[int, ...]] = []

    def number_of(term: Term) -> int:
        inline = inline_id(term)
        if inline is not None:
            return inline
        if term not in ids:
            if isinstance(term, Triple):
                parts = [number_of(part) for part in (term.subject, term.predicate, term.object)]
            tag = tag_of_term(term)
            ids[term] = tagged(tag, len(ids) + 1)
            rows.append((ids[term], str(term), int(tag), *_fields(term, tag)))
            if isinstance(term, Triple):
                triples.append((ids[term], *parts))
        return ids[term]

    quads = [
        (
            number_of(quad.subject),
            number_of(quad.predicate),
            number_of(quad.object),
            DEFAULT_GRAPH if isinstance(quad.graph_name, DefaultGraph) else number_of(quad.graph_name),
        )
        for quad in store
    ]
    graphs = Counter({number_of(graph): 0 for graph in store.named_graphs()})
    by_predicate = defaultdict(list)
    for s, p, o, g in quads:
        by_predicate[p].append((s, o, g))
        if g != DEFAULT_GRAPH:
            graphs[g] += 1
    for place, (p, found) in enumerate(by_predicate.items()):
        table = predicate_table(place) if len(found) >= frequent else "rest"
        subjects, objects = len({s for s, _, _ in found}), len({o for _, o, _ in found})
        _insert(connection, "predicates", [(p, table, len(found), subjects, objects, False)])
        if table == "rest":
            _insert(connection, "rest", [(s, p, o, g) for s, o, g in found])
        else:
            connection.execute(f"CREATE TABLE {table} (s BIGINT, o BIGINT, g BIGINT)")
            _insert(connection, table, found)
    _insert(connection, "terms", rows)
    _insert(connection, "triple_terms", triples)
    _insert(connection, "graphs", list(graphs.items()))
    return Catalog(connection)


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    rows = list(rows)
    if rows:
        marks = ", ".join("?" for _ in rows[0])
        values = ", ".join([f"({marks})"] * len(rows))
        connection.execute(f"INSERT INTO {table} VALUES {values}", [cell for row in rows for cell in row])


def _fields(term: Term, tag: Tag) -> tuple[object, ...]:
    """lexical, datatype, lang and num."""
    if not isinstance(term, Literal):
        return (None if isinstance(term, Triple) else term.value), None, None, None
    direction = f"--{term.direction.value}" if term.direction else ""
    lang = term.language + direction if term.language else None
    datatype = term.datatype.value if tag is Tag.TYPED or tag >= Tag.BIG_INTEGER else None
    return term.value, datatype, lang, float(term.value) if tag >= Tag.BIG_INTEGER else None
