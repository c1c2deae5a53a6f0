"""Every error of the tree has a status and the one body; none gets past the table."""

import httpx
import orjson
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router

import graphdb.errors
from graphdb.errors import (
    GraphDBError,
    LockedOut,
    NotAuthenticated,
    OutcomeUnknown,
    ShapesViolated,
    UnavailableError,
)
from serve.errors import failure_response, status_of
from serve.routing import resource

EXPECTED = {
    "AlreadyExists": 409,
    "BadGeometry": 400,
    "BodyTooLarge": 413,
    "ChangesForgotten": 410,
    "ConfigError": 500,
    "CorruptionError": 500,
    "EditRefused": 400,
    "EvaluationFailed": 400,
    "Forbidden": 403,
    "GraphDBError": 500,
    "HistoryForgotten": 410,
    "HostNotAllowed": 403,
    "IndexNotReached": 503,
    "InvalidParameter": 400,
    "KeyReused": 422,
    "LimitExceeded": 400,
    "LockedOut": 429,
    "LogCompacted": 503,
    "LogUnavailable": 503,
    "MalformedShapes": 400,
    "MembershipLoop": 409,
    "MembershipRefused": 409,
    "NotAcceptable": 406,
    "NotAuthenticated": 401,
    "NotClustered": 409,
    "NotFound": 404,
    "NotLeader": 503,
    "OutcomeUnknown": 503,
    "Overloaded": 503,
    "ProviderUnavailable": 503,
    "QueryCancelled": 503,
    "QueryMemoryExceeded": 503,
    "QuerySyntaxError": 400,
    "QueryTimeout": 503,
    "QueryTooLong": 503,
    "RdfSyntaxError": 400,
    "RequestError": 400,
    "ShapesViolated": 409,
    "TransactionConflict": 409,
    "StorageFull": 503,
    "TextTooLarge": 400,
    "UnavailableError": 503,
    "UnknownFunction": 400,
    "UnknownGraph": 404,
    "UnsupportedMediaType": 415,
}
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "AlreadyExists": ("graph", "http://g"),
    "BodyTooLarge": (10,),
    "ChangesForgotten": (3, 7),
    "HistoryForgotten": ("3", 7),
    "CorruptionError": ("a checksum differs", "/secret/path"),
    "EditRefused": (({"edit": 0, "code": "NOT_FOUND", "message": "is not there"},),),
    "Forbidden": ("ada", "Write"),
    "HostNotAllowed": ("SERVICE", "example.org"),
    "InvalidParameter": ("graph", "is odd"),
    "LimitExceeded": ("nesting", 2, 1),
    "LockedOut": (7,),
    "MalformedShapes": ("<http://s>", "sh:minCount", "is odd"),
    "MembershipLoop": ("http://a", "http://b"),
    "NotAcceptable": ("text/html", ("text/csv",)),
    "NotFound": ("holon", "http://a"),
    "QuerySyntaxError": ("odd", 1, 2),
    "TextTooLarge": ("query bytes", 2, 1),
    "UnsupportedMediaType": ("text/html", ("text/turtle",)),
}


def test_the_table_covers_the_tree() -> None:
    assert set(EXPECTED) == {*graphdb.errors.__all__}


@pytest.mark.parametrize("name", EXPECTED)
def test_status_and_body(name: str) -> None:
    kind: type[GraphDBError] = getattr(graphdb.errors, name)
    error = kind(*ARGUMENTS.get(name, ("reason",)))
    answer = failure_response(error)
    body = orjson.loads(bytes(answer.body))
    assert status_of(error) == answer.status_code == body["status"] == EXPECTED[name]
    told_besides = {
        "ChangesForgotten": {"code", "first_index"},
        "HistoryForgotten": {"oldest_index"},
    }.get(name, set())
    assert set(body) == {"error", "status"} | told_besides
    assert ("retry-after" in answer.headers) == isinstance(error, UnavailableError | LockedOut)
    assert ("www-authenticate" in answer.headers) == isinstance(error, NotAuthenticated)
    if answer.status_code == 500:
        damaged = "files of this node are damaged; its log says which, and the operations guide what to do"
        assert body["error"] == (damaged if name == "CorruptionError" else "internal server error")
    else:
        assert body["error"] == str(error)


def test_a_write_that_shapes_do_not_allow_is_answered_with_the_report() -> None:
    report = {"conforms": False, "results": [], "stats": {"violations": 1}}
    answer = failure_response(ShapesViolated("it violates the shapes", report))
    body = {"error": "it violates the shapes", "status": 409, "report": report}
    assert (answer.status_code, orjson.loads(bytes(answer.body))) == (409, body)


def test_what_may_have_been_stored_says_so() -> None:
    """503 to a write means that nothing was stored, unless the message says this."""
    answer = failure_response(OutcomeUnknown("no majority has answered"))
    error = "no majority has answered: the outcome is unknown"
    assert orjson.loads(bytes(answer.body)) == {"error": error, "status": 503}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("met", "status", "told"),
    [
        (RuntimeError("Corruption: block checksum mismatch in /data/store/7.sst"), 500, "damaged"),
        (OSError("Corruption: truncated record"), 500, "damaged"),
        (OSError("IO error: No space left on device"), 503, "full"),
        (RuntimeError("what nobody has thought of"), 500, "internal server error"),
    ],
    ids=["block", "record", "room", "bug"],
)
async def test_what_the_engines_iterators_say_of_the_disk(met: Exception, status: int, told: str) -> None:
    async def handler(_: Request) -> Response:
        raise met

    transport = httpx.ASGITransport(Router([resource("/", get=handler)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
        answer = await client.get("/")
    assert answer.status_code == answer.json()["status"] == status
    assert told in answer.json()["error"]
    assert "/data" not in answer.text
