"""Sends the bytes of a request and reads the answer, as strictly as a client may be."""

import http.client
import socket

from tests.support.fuzzing.findings import BrokenPromise
from tests.support.fuzzing.requests import Request

__all__ = ["STATUSES", "check_request"]

STATUSES = frozenset(
    {200, 204, 304, 400, 403, 404, 405, 406, 408, 409, 410, 413, 414, 415, 422, 426, 431, 501, 503, 505}
)
MALFORMED_HEAD_S = 0.2  # how long the server may think about bytes that are no request


def check_request(host: str, port: int, request: Request, answer_s: float) -> str:
    """Send it; what came of it, in a word. Raises BrokenPromise.

    A whole request is answered within so many seconds by one of STATUSES, and no connection ends before that.
    One that is not whole, or no HTTP, may be left unanswered, but is never answered with anything else.
    """
    with socket.create_connection((host, port), timeout=answer_s) as connection:
        connection.settimeout(answer_s if request.is_framed else MALFORMED_HEAD_S)
        answer = http.client.HTTPResponse(connection, method=request.method)
        try:
            connection.sendall(request.wire)
            answer.begin()
        except TimeoutError:
            if request.is_framed:
                raise BrokenPromise(f"hang: no answer within {answer_s} s") from None
            return "incomplete"
        except (ConnectionError, http.client.HTTPException) as error:
            if request.is_framed:
                raise BrokenPromise(f"dropped: no answer: {error!r}") from error
            return "dropped"
        if answer.status not in STATUSES:
            raise BrokenPromise(f"{answer.status}: answered with {answer.status} {answer.reason}")
        return _read(answer)


def _read(answer: http.client.HTTPResponse) -> str:
    """A body that ends early is how a stream past its time limit ends; it must not look whole."""
    try:
        answer.read()
    except (http.client.IncompleteRead, ConnectionError):
        return f"{answer.status}, cut"
    except TimeoutError:
        raise BrokenPromise(f"hang: the body of the {answer.status} does not end") from None
    return str(answer.status)
