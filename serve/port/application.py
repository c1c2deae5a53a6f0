"""`PortApplication`: the application of a port, FastAPI without its middleware."""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from fastapi import FastAPI
from starlette.responses import Response
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from serve.errors import unread_response

if TYPE_CHECKING:
    from serve.port.lending import Borrowable

__all__ = [
    "PLAIN_HEADERS",
    "Answering",
    "Headers",
    "LaterAnswer",
    "PortApplication",
    "QuickAnswers",
    "QuickChoice",
    "QuickPaths",
    "WholeAnswer",
]


Headers: TypeAlias = list[tuple[bytes, bytes]]

PLAIN_HEADERS = frozenset(
    {b"host", b"accept", b"accept-encoding", b"accept-language", b"content-type", b"content-length"}
    | {b"connection", b"user-agent"}
)
"""Of requests that want nothing special: any other may need the application."""


class WholeAnswer(Response):
    """An answer whose head and body are complete: a few microseconds faster than its base class.

    offer: is called with the connection when it is written, which may be lent then.
    """

    offer: "Callable[[Borrowable], None] | None" = None

    def __init__(self, head: Headers, body: bytes | None, status_code: int = 200) -> None:
        """body None: no body, as for HEAD. head must not be reused."""
        self.status_code = status_code
        self.background = None
        self.body = body or b""
        self.raw_headers = head
        if body is not None:
            head.append((b"content-length", b"%d" % len(body)))


class Connection(Protocol):
    """Where a `LaterAnswer` goes."""

    def success_of(self, lines: bytes, body: bytes) -> bytes: ...

    def write_prepared(self, request: "LaterAnswer", answer: bytes) -> None: ...

    def write_later(self, request: "LaterAnswer", answer: Response) -> None: ...

    def deliver_later(self, request: "LaterAnswer", scope: Scope, app: ASGIApp) -> None: ...


class LaterAnswer:
    """Stands for the answer to one request, which is made after the call that received the request.

    To its connection it is the request under way, as uvicorn's `RequestResponseCycle` is: the members that
    are read there have the same names.
    """

    __slots__ = (
        "connection",
        "disconnected",
        "keep_alive",
        "prepared",
        "response_complete",
        "response_started",
    )

    repeats_head = True  # whether more requests with the very same head are likely
    waiting_for_100_continue = False

    def __init__(self) -> None:
        self.connection: Connection | None = None  # set by the connection when it has begun to wait
        self.prepared: bytes | None = None  # what is sent for an answer that is likely
        self.keep_alive = True
        self.disconnected = self.response_started = self.response_complete = False

    @property
    def message_event(self) -> "LaterAnswer":
        """Nothing waits for the client."""
        return self

    def set(self) -> None:
        """See `message_event`: the client has gone, if `disconnected` says so."""

    def prepare(self, lines: bytes, body: bytes) -> None:
        """Make what is sent for a success with these header lines, for `reply_prepared`: that takes less time
        then.
        """
        assert self.connection is not None, "not within the call that receives the request"
        self.prepared = self.connection.success_of(lines, body)

    def reply_prepared(self) -> bool:
        """Answer with what was prepared, once, on the event loop; False where it cannot be sent so."""
        if self.prepared is None or not self.keep_alive:
            return False
        assert self.connection is not None, "not within the call that receives the request"
        self.connection.write_prepared(self, self.prepared)
        return True

    def reply(self, answer: Response) -> None:
        """Answer, once, on the event loop."""
        assert self.connection is not None, "not within the call that receives the request"
        self.connection.write_later(self, answer)

    def deliver(self, scope: Scope, app: ASGIApp) -> None:
        """In place of `reply`: have an application answer the request, whose body it will not read. scope is
        the request's.
        """
        assert self.connection is not None, "not within the call that receives the request"
        self.connection.deliver_later(self, scope, app)


Answering: TypeAlias = Callable[[bytes], Response | LaterAnswer | None]
"""Takes the body of a request. Returns the answer, with its Content-Length, or what will be told it; None if
the request is for the application. It never raises.
"""


class QuickAnswers(Protocol):
    """Answers requests without a task. Used on the port's event loop."""

    def may_answer(self, method: bytes, target: bytes, body_bytes: int) -> bool:
        """Whether it is worth waiting for the body of a request, of so many bytes."""

    def understood(self, method: bytes, target: bytes, scheme: str, headers: Headers) -> "Answering | None":
        """What answers requests with a head of which `may_answer` holds; None if they are for the
        application. It never raises.
        """


class QuickPaths:
    """`QuickAnswers` by path."""

    def __init__(self, paths: Mapping[bytes, QuickAnswers]) -> None:
        self._paths = paths

    def may_answer(self, method: bytes, target: bytes, body_bytes: int) -> bool:
        """See `QuickAnswers.may_answer`."""
        found = self._paths.get(target.partition(b"?")[0])
        return found is not None and found.may_answer(method, target, body_bytes)

    def understood(self, method: bytes, target: bytes, scheme: str, headers: Headers) -> "Answering | None":
        """See `QuickAnswers.understood`."""
        return self._paths[target.partition(b"?")[0]].understood(method, target, scheme, headers)


class QuickChoice:
    """`QuickAnswers` of several, asked in turn."""

    def __init__(self, *several: QuickAnswers) -> None:
        self._several = several

    def may_answer(self, method: bytes, target: bytes, body_bytes: int) -> bool:
        """See `QuickAnswers.may_answer`."""
        return any(one.may_answer(method, target, body_bytes) for one in self._several)

    def understood(self, method: bytes, target: bytes, scheme: str, headers: Headers) -> "Answering | None":
        """See `QuickAnswers.understood`; each has to tell by the target what is not for it."""
        found = (one.understood(method, target, scheme, headers) for one in self._several)
        return next((one for one in found if one is not None), None)


class PortApplication(FastAPI):
    """Routes are plain ASGI. FastAPI describes them, and does not wrap them.

    FastAPI's own stack (exceptions, telemetry, limits of bodies, closing of files) costs each request 13 µs,
    its router 2 µs. Nothing here needs them: resources catch their own errors, and read their own bodies.
    """

    def __init__(
        self,
        title: str,
        routes: Sequence[BaseRoute],
        otherwise: ASGIApp,
        around: Callable[[ASGIApp], ASGIApp],
        lifespan: Lifespan[Any] | None = None,
        describe: Callable[[str, str], dict[str, Any]] | None = None,
        quick: QuickAnswers | None = None,
    ) -> None:
        """otherwise: answers unknown paths, and if it has `malformed` also invalid requests. around: wraps
        the application, such as in authentication. describe: makes the OpenAPI document from title and
        version, when it is first requested. quick: answers some requests in place of the application.
        """
        super().__init__(
            title=title,
            version=version("graphdb"),
            routes=list(routes),
            lifespan=lifespan,
            # a redirect would answer a wrong path with a guess, and lose the body of a POST with some clients
            redirect_slashes=False,
            openapi_url=None,  # a route of ours, which has its permission as others do
        )
        self.middleware_stack = around(
            Router(self.routes, redirect_slashes=False, default=otherwise, lifespan=lifespan)
        )
        self.otherwise, self._describe, self.quick = otherwise, describe, quick

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.middleware_stack is not None
        scope["app"] = self
        await self.middleware_stack(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, which is made once."""
        if self.openapi_schema is None and self._describe is not None:
            self.openapi_schema = self._describe(self.title, self.version)
        return self.openapi_schema or super().openapi()

    def malformed(self, message: str, status: int = 400) -> Response:
        """See `serve.port.protocol.PortProtocol`."""
        return unread_response(self.otherwise, status, message)
