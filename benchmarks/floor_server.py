"""The floor of a query over HTTP: bare uvicorn with pyoxigraph behind it, and nothing else.

`python -m benchmarks.floor_server STORE PORT` answers every POST with the results JSON of its body.
"""

import sys
from typing import Any

import uvicorn
from pyoxigraph import QueryResultsFormat, QuerySolutions, Store

__all__ = ["build_app"]

HEADERS = [(b"content-type", b"application/sparql-results+json")]


def build_app(store: Store) -> Any:
    """An ASGI application that does no more than the answer needs."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        solutions = store.query(body.decode())
        assert isinstance(solutions, QuerySolutions)
        answer = solutions.serialize(format=QueryResultsFormat.JSON)
        headers = [*HEADERS, (b"content-length", b"%d" % len(answer or b""))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


if __name__ == "__main__":
    opened = Store.read_only(sys.argv[1])
    uvicorn.run(
        build_app(opened), port=int(sys.argv[2]), log_level="warning", access_log=False, lifespan="off"
    )
