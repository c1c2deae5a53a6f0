"""`graphdb mcp`, started as an agent starts it."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend

COMMAND = str(Path(sys.executable).parent / "graphdb")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(build_app(MemoryBackend(), Settings())) as url:
        insert = "INSERT DATA { <urn:a> <urn:b> 'c' }"
        httpx.post(f"{url}/update", data={"update": insert}, trust_env=False).raise_for_status()
        yield url


@pytest.mark.parametrize("allowed", [False, True])
def test_tools_on_standard_input_and_output(url: str, tmp_path: Path, allowed: bool) -> None:
    options = ["--allow-updates"] if allowed else []
    server = StdioServerParameters(
        command=COMMAND,
        args=["mcp", "--endpoint", url, *options],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )

    async def run() -> tuple[list[str], str, bool]:
        async with Client(server) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("query", {"query": "SELECT ?o { ?s ?p ?o }"})
            update = await client.call_tool("update", {"update": "INSERT DATA { <urn:a> <urn:b> 'c' }"})
            return names, found.content[0].text, bool(update.is_error)  # type: ignore[union-attr]

    names, text, refused = asyncio.run(run())
    assert names == ["schema", "find", "query", "describe", "examples", *(["update"] if allowed else [])]
    assert text == '?o\n"c"'
    assert refused is not allowed
