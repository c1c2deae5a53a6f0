"""`/graphql/ws`: operations over a WebSocket, any number on each; subscriptions above all."""

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphdb.errors import GraphDBError
from serve.access.middleware import session_of
from serve.access.request_scope import refused_origin
from serve.errors import error_response
from serve.graph.graphql.operation_socket import OperationSocket
from serve.graph.graphql.rows import read_bounds
from serve.graph.graphql.socket_context import SocketContext
from serve.graph.graphql.transport_messages import PROTOCOL, Close
from serve.graph.live_requests import read_since
from serve.parameters import Parameters
from serve.routing import refuse_websocket

__all__ = ["SubscriptionsEndpoint"]


class SubscriptionsEndpoint:
    """Owned by the application. Made for graphql-transport-ws alone."""

    signs_in = True  # see `serve.access.authorization`

    def __init__(self, context: SocketContext) -> None:
        self._context = context

    async def get(self, _request: Request) -> Response:
        """An ordinary request here wants to know what this is."""
        return error_response(
            426, f"GraphQL is spoken here over a WebSocket: {PROTOCOL}", {"Upgrade": "websocket"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        try:
            parameters = Parameters(scope["query_string"])
            bounds, since = read_bounds(parameters), read_since(parameters)
        except GraphDBError as error:
            return await refuse_websocket(error_response(400, str(error)), send)
        if PROTOCOL not in scope.get("subprotocols", ()):
            await send({"type": "websocket.accept"})
            reason = f"Subprotocol not acceptable: {PROTOCOL} is spoken here"
            return await send({"type": "websocket.close", "code": Close.SUBPROTOCOL, "reason": reason})
        await send({"type": "websocket.accept", "subprotocol": PROTOCOL})
        # told at the initialisation, for a page never sees why its handshake was refused
        refusal = refused_origin(Headers(raw=scope["headers"]), self._context.settings.server.cors)
        socket = OperationSocket(self._context, scope, bounds, since, refusal, session_of(scope))
        await socket.run(receive, send)
