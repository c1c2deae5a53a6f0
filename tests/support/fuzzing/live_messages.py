"""Random messages for `/ws`, and requests for `/changes`: right, wrong and in between."""

import json
from random import Random
from typing import Any
from urllib.parse import quote_from_bytes

from tests.support.fuzzing.mutations import mutated
from tests.support.fuzzing.texts import random_text

__all__ = ["random_changes", "random_message"]

_CLASSES = ("Person", "foaf:Person", "<http://e/C>", "`odd name`", "x:y", "C", "SELECT", "")
_FIELDS = ("*", "name", "a, b", "<http://e/p>", "type, id", "`a b`", "name,", "* , a")
_VALUES = ("1", "-2.5e3", "'x'", '"a\\"b"', "true", "<http://e/a>", "[1, 'b']", "NULL", "1e999", "")
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "IN", "CONTAINS", "IS NOT", "IS", "LIKE")
_SELECTS = (
    "PREFIX : <http://e/> LIVE SELECT * WHERE { ?s :p ?o }",
    "LIVE SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }",
    "LIVE SELECT ?s (MAX(?o) AS ?m) WHERE { ?s <http://e/p> ?o } GROUP BY ?s HAVING (COUNT(?o) > 1)",
    "LIVE SELECT DISTINCT ?s WHERE { ?s <http://e/p>+ ?o } ORDER BY ?s LIMIT 2 OFFSET 1",
    "LIVE SELECT * WHERE { GRAPH ?g { ?s ?p ?o } MINUS { ?a ?b ?c } }",
    "LIVE SELECT * FROM <http://e/g> WHERE { ?s <http://e/p>* ?o }",
    "LIVE SELECT * WHERE { { SELECT ?s WHERE { ?s ?p ?o } LIMIT 1 } ?s ?q 1 }",
)
_METHODS = ("query", "query", "query", "query", "kill", "ping", "signin", "live", "", 7, None)
_IDS: tuple[Any, ...] = (1, "a", None, 1.5, -1, "x" * 2000, [], {}, True, 2**70)
_SINCE: tuple[Any, ...] = (0, 1, 2**62, 2**63, -1, "1", 1.0, True, None, [])
_GRAPHS = (b"http://e/g", b"rel", b"", b"http://[", b"\xff", b"http://e/" + b"g" * 3000)
_INDEXES = (b"0", b"1", b"-1", b"9" * 18, b"9" * 30, b"", b"x", b"1.0", b"\xb2")
_CHANGES: tuple[tuple[bytes, tuple[bytes, ...]], ...] = (
    (b"since", _INDEXES),
    (b"graph", _GRAPHS),
    (b"predicate", (b"http://e/p", *_GRAPHS)),
    (b"default", (b"", b"1")),
    (b"follow", (b"false", b"true", b"no", b"")),
    (b"format", (b"json",)),
)


def random_message(random: Random) -> str | bytes:
    """One message: mostly JSON, mostly with a statement."""
    message = _message(random)
    text = json.dumps(message)
    chance = random.random()
    if chance < 0.1:
        return mutated(random, text.encode(), (b'{"id":', b"[[[[", b"\\ud800", b"null")).decode(
            errors="replace"
        )
    if chance < 0.15:
        return text.encode()
    if chance < 0.17:
        return random.choice(("[" * 100_000, '{"a":' * 50_000, "", "\0", '"' + "x" * 900_000 + '"'))
    return text


def _message(random: Random) -> Any:
    method = random.choice(_METHODS)
    params: list[Any] = []
    if method == "query":
        params = [_statement(random)]
        if random.random() < 0.3:
            params.append(
                random.choice(({"since": random.choice(_SINCE)}, {"since": 0, "x": 1}, [], None, 3))
            )
    elif method == "kill":
        params = random.choice((["x"], [], [1], ["a", "b"]))
    message = {"id": random.choice(_IDS[:5] if random.random() < 0.9 else _IDS), "method": method}
    message["params"] = params if random.random() < 0.95 else random.choice((None, {}, "x", [[[]]], [None]))
    return message if random.random() < 0.97 else random.choice(([], 3, "x", None, {}))


def _statement(random: Random) -> Any:
    chance = random.random()
    if chance < 0.35:
        text = _table_statement(random)
    elif chance < 0.6:
        text = random.choice(_SELECTS)
    elif chance < 0.95:
        query = random_text(random, "query_unit").decode(errors="replace")
        text = query.replace("SELECT", "LIVE SELECT", 1)
    else:
        return random.choice((None, 3, [], {}, "", "LIVE", "LIVE SELECT"))
    if random.random() < 0.3:
        others = tuple(one.encode() for one in _SELECTS)
        text = mutated(random, text.encode(), others).decode(errors="replace")
    return text


def _table_statement(random: Random) -> str:
    condition = _condition(random, random.choice((0, 1, 1, 2, 3, 60)))
    where = f" WHERE {condition}" if condition else ""
    return f"LIVE SELECT {random.choice(_FIELDS)} FROM {random.choice(_CLASSES)}{where}"


def _condition(random: Random, depth: int) -> str:
    if not depth:
        return ""
    if depth > 10:  # beyond what may be nested
        return f"{'(' * depth}a = 1{')' * depth}"
    one = (
        f"{random.choice(('a', 'name', '<http://e/p>'))} {random.choice(_OPERATORS)} {random.choice(_VALUES)}"
    )
    rest = _condition(random, depth - 1)
    return (
        f"{random.choice(('', 'NOT ', '('))}{one} {random.choice(('AND', 'OR', ')'))} {rest}" if rest else one
    )


def random_changes(random: Random) -> tuple[bytes, bytes, bytes, bytes]:
    """Method, target, media type, body. What would go on for ever is not asked for."""
    given = [(name, random.choice(values)) for name, values in _CHANGES if random.random() < 0.4]
    given.append((b"follow", b"false"))
    random.shuffle(given)
    written = b"&".join(b"%s=%s" % (name, quote_from_bytes(value).encode()) for name, value in given)
    method = random.choice((b"GET", b"GET", b"GET", b"HEAD", b"POST"))
    return method, b"/changes?" + written, b"", b""
