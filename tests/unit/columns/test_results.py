"""Texts of terms are those of the transaction that their numbers were read in."""

from pathlib import Path

import duckdb
from pyoxigraph import Literal, NamedNode, Quad, Store

from graphdb.columns import schema
from graphdb.columns.applying import collect_terms
from graphdb.columns.loading import load_store, settle
from graphdb.columns.results import TermTexts


def test_terms_that_are_collected_meanwhile_are_found_in_an_older_transaction(tmp_path: Path) -> None:
    connection = duckdb.connect()
    schema.create(connection)
    store = Store()
    store.add(Quad(NamedNode("a:s"), NamedNode("a:p"), Literal("gone")))
    load_store(connection, store, tmp_path)
    settle(connection, 1)
    ((number,),) = connection.execute("SELECT o FROM rest").fetchall()
    reading = connection.cursor()
    reading.execute("BEGIN")
    reading.execute("SELECT * FROM meta").fetchall()
    texts = TermTexts(connection)
    connection.execute("DELETE FROM rest")
    connection.execute("DELETE FROM predicates")
    assert collect_terms(connection) == 3
    assert texts.within(reading).of({number}, {}) == {number: '"gone"'}
    other = connection.cursor()
    other.execute("BEGIN")
    assert texts.within(other).of({number}, {}) == {number: '"gone"'}
    assert TermTexts(connection).within(other).of({number}, {number: '"absent"'}) == {number: '"absent"'}
