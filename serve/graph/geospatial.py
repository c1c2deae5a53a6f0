"""`/geospatial/evaluate`: calls one function of GeoSPARQL, without a query."""

from time import perf_counter

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import QueryTimeout
from serve.answers import unless_gone
from serve.backend import FunctionCall, Functions
from serve.bodies import JSON_TYPE, JsonBody, read_json
from serve.graph.query_parameters import read_timeout
from serve.parameters import Parameters

__all__ = ["CallBody", "GeospatialEndpoint"]

_BODY_BYTES_MAX = 32 << 20
_ARGS_MAX = 100


class CallBody(JsonBody):
    """A call of a function: its name, with or without `geof:`, or its IRI."""

    function: str
    args: list[str] = Field(max_length=_ARGS_MAX)


class GeospatialEndpoint:
    """POST of /geospatial/evaluate."""

    def __init__(self, functions: Functions, timeout_s: float, body_bytes_max: int) -> None:
        """timeout_s: the time limit, unless the client sets a lower one."""
        self._functions, self._timeout_s = functions, timeout_s
        self._body_bytes_max = min(body_bytes_max, _BODY_BYTES_MAX)

    async def post(self, request: Request) -> Response:
        """Function, result and datatype. A reader evaluates the call, because it may take long."""
        began = perf_counter()
        parameters = Parameters(request.scope["query_string"])
        timeout_s = min(self._timeout_s, read_timeout(parameters) or self._timeout_s)
        body = await read_json(request, CallBody, self._body_bytes_max)
        left_s = max(0.0, began + timeout_s - perf_counter())
        call = FunctionCall(body.function, tuple(body.args), left_s)
        try:
            answer = await unless_gone(request, self._functions.call_function(call))
        except QueryTimeout:
            raise QueryTimeout(f"the evaluation took longer than {timeout_s:g} s") from None
        return Response(answer, media_type=JSON_TYPE)
