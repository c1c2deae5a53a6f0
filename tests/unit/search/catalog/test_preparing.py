"""Documents that are analysed with patterns of users: tried before they are logged."""

from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteDocuments, WriteResult
from graphdb.search.segments.operations import Action, Operation
from tests.unit.search.catalog.catalogs import Commands, put

SLOW = b'{"t":"%s!"}' % (b"a" * 40)


def with_patterns() -> Commands:
    commands = Commands("plain")
    analysis = {"analyzer": {"a": {"type": "pattern", "pattern": "(a|aa|b?a)+$"}}}
    mappings = {"properties": {"t": {"type": "text", "analyzer": "a"}}}
    commands.create("p", {"settings": {"analysis": analysis}, "mappings": mappings})
    return commands


def proposed(commands: Commands, *writes: DocumentWrite) -> list[WriteResult]:
    results: list[WriteResult] = commands(WriteDocuments(tuple(commands.catalog.prepare(writes))))
    return results


def status(results: list[WriteResult]) -> list[Any]:
    return [(one.result.status, one.again) for one in results]


def test_other_indexes_are_not_concerned() -> None:
    commands = Commands("plain")
    writes = [put("plain", "1"), put("new", "1")]
    assert commands.catalog.prepare(writes) == writes
    commands = with_patterns()
    assert commands.catalog.prepare(writes) == writes
    assert status(proposed(commands, *writes)) == [(201, False), (201, False)]


def test_documents_that_fit_are_taken_in_one_go() -> None:
    commands = with_patterns()
    bodies = [b'{"t":"x"}', b'{"n":1}', b'{"n":2,"m":3}', b'{"t":"y"}']
    writes = [put("p", str(number), body) for number, body in enumerate(bodies)]
    assert [one.tried for one in commands.catalog.prepare(writes)] == [(1, -1), (1, -1), (2, -1), (3, -1)]
    deletion = DocumentWrite("p", Operation(Action.DELETE, "0"))
    assert status(proposed(commands, *writes, deletion)) == [*[(201, False)] * 4, (200, False)]


def test_a_document_that_takes_too_long_fails_and_no_other() -> None:
    commands = with_patterns()
    results = proposed(commands, put("p", "1", SLOW), put("p", "2", b'{"t":"x"}'))
    assert status(results) == [(400, False), (201, False)]
    error = results[0].result.error
    assert error is not None
    assert error.cause is not None
    assert error.cause.reason == "pattern [(a|aa|b?a)+$] takes too long"


def test_a_document_tried_under_another_mapping_is_tried_again() -> None:
    commands = with_patterns()
    write = put("p", "1", b'{"t":"x"}')
    late = commands.catalog.prepare([write])
    assert status(proposed(commands, put("p", "2", b'{"new":1}'))) == [(201, False)]
    assert status(commands(WriteDocuments(tuple(late)))) == [(429, True)]
    assert status(commands(WriteDocuments((write,)))) == [(429, True)]
    assert status(proposed(commands, write)) == [(201, False)]


def test_an_update_is_tried_with_the_document_that_it_changes() -> None:
    commands = with_patterns()
    update = DocumentWrite("p", Operation(Action.UPDATE, "1", b'{"doc":{"t":"y"},"doc_as_upsert":true}'))
    assert status(proposed(commands, update)) == [(201, False)]
    late = commands.catalog.prepare(
        [replace(update, operation=update.operation._replace(body=b'{"doc":{"t":"z"}}'))]
    )
    assert late[0].tried == (1, 0)
    assert status(proposed(commands, put("p", "1", b'{"t":"w"}'))) == [(200, False)]
    assert status(commands(WriteDocuments(tuple(late)))) == [(429, True)]
    assert status(proposed(commands, update)) == [(200, False)]
    missing = DocumentWrite("p", Operation(Action.UPDATE, "2", b'{"doc":{}}'))
    assert status(proposed(commands, missing)) == [(404, False)]
