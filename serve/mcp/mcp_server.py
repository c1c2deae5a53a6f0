"""The server of the package `mcp` over the tools, for standard input and output and for HTTP."""

import logging
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from pydantic import ValidationError

from serve.mcp.graph_calls import GraphCalls, ToolFailure
from serve.mcp.tools import SEARCH, TOOLS, UPDATE, Tool

__all__ = ["make_server"]

log = logging.getLogger(__name__)

_INSTRUCTIONS = (
    "A graph database: RDF, asked by SPARQL. Call schema first, then find for the IRIs of things that the "
    "question names, then query. Mend a query that is refused by what its error says."
)


def make_server(
    calls_for: Callable[[Any], GraphCalls], *, may_search: bool, may_update: bool
) -> "Server[dict[str, Any]]":
    """calls_for: the calls with the rights of whoever sent a request, from its context.

    may_search, may_update: offer these tools.
    """
    tools: Sequence[Tool] = (*TOOLS, *([SEARCH] if may_search else []), *([UPDATE] if may_update else []))
    by_name = {tool.name: tool for tool in tools}

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return _text(await _run(by_name, calls_for(context), params))
        except ToolFailure as failure:
            return _text(str(failure), is_error=True)
        except Exception:
            log.exception("the tool %s failed", params.name[:100])
            return _text("internal error", is_error=True)

    return Server(
        "graphdb",
        version=version("graphdb"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _run(by_name: dict[str, Tool], calls: GraphCalls, params: types.CallToolRequestParams) -> str:
    tool = by_name.get(params.name)
    if tool is None:
        raise ToolFailure(f"there is no tool {params.name[:100]!r}; there are {', '.join(by_name)}")
    try:
        arguments = tool.arguments.model_validate(params.arguments or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ToolFailure(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return await tool.run(calls, arguments)


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        annotations=types.ToolAnnotations(read_only_hint=tool.is_read_only, open_world_hint=False),
    )


def _text(text: str, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)
