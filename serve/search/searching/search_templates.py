"""`_search/template`, `_msearch/template`, `_render/template`: searches from templates with parameters."""

from collections.abc import Mapping
from typing import Any

import orjson

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.scripts.stored import script_named
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint, parse_json
from serve.search.frame.parameters import Parameters
from serve.search.searching.search import asked_of, multi_answers, searched, searches_of
from serve.search.searching.search_names import NAME_PARAMETERS
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

_PARAMETERS = f"{NAME_PARAMETERS} ccs_minimize_roundtrips explain preference profile rest_total_hits_as_int"
_PARAMETERS += " routing scroll search_type typed_keys"
_MULTI = "ccs_minimize_roundtrips max_concurrent_searches rest_total_hits_as_int search_type typed_keys"
_MEMBERS = ("id", "source", "params", "explain", "profile")


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def search(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        given = await _given(exchange, None)
        body = await exchange.work.run(lambda: _search_body(exchange, given, exchange.parameters))
        asked = asked_of(exchange.parameters, body, exchange.principal)
        return await searched(runner, asked, exchange.get("index"), exchange.parameters)

    async def render(exchange: Exchange) -> dict[str, Any]:
        given = await _given(exchange, exchange.get("id"))
        return {"template_output": await exchange.work.run(lambda: _rendered(exchange, given))}

    async def search_all(exchange: Exchange) -> dict[str, Any]:
        runner = shared.visible_to(exchange)
        searches = searches_of(await exchange.body())

        async def rendered(given: Mapping[str, Any]) -> Mapping[str, Any]:
            return await exchange.work.run(lambda: _search_body(exchange, given, None))

        return await multi_answers(runner, exchange, searches, rendered)

    return [
        *endpoint(
            "GET POST", ["/_search/template", "/{index}/_search/template"], search, _PARAMETERS, Body.JSON
        ),
        *endpoint("GET POST", ["/_render/template", "/_render/template/{id}"], render, "", Body.JSON),
        *endpoint(
            "GET POST", ["/_msearch/template", "/{index}/_msearch/template"], search_all, _MULTI, Body.LINES
        ),
    ]


async def _given(exchange: Exchange, name: str | None) -> Mapping[str, Any]:
    body = await exchange.json()
    if name is not None:
        return {**(body or {}), "id": name}
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    return body


def _search_body(
    exchange: Exchange, given: Mapping[str, Any], parameters: Parameters | None
) -> dict[str, Any]:
    """The body of the search that a template makes. Raises SearchError."""
    made = _rendered(exchange, given)
    for name in ("explain", "profile"):
        is_asked = given.get(name) is True or (parameters is not None and parameters.boolean(name, False))
        if is_asked:
            made[name] = True
    return made


def _rendered(exchange: Exchange, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a template makes of its parameters: a JSON object. Raises SearchError."""
    from graphdb.search.scripts.mustache import Template  # few searches are templates

    for name in given:
        if name not in _MEMBERS:
            raise SearchError("x_content_parse_exception", f"[search_template] unknown field [{name[:100]}]")
    source, params, options = given.get("source"), given.get("params") or {}, dict[str, Any]()
    if not isinstance(params, Mapping):
        raise illegal_argument("[params] must be an object")
    if source is None:
        if given.get("id") is None:
            reason = "Validation Failed: 1: template is missing;"
            raise SearchError("action_request_validation_exception", reason)
        stored = script_named({"id": given["id"]}, exchange.node.catalog.scripts)
        if stored["lang"] != "mustache":
            raise illegal_argument(f"script [{str(given['id'])[:200]}] is not a search template")
        source = stored["source"]
        options = exchange.node.catalog.scripts[str(given["id"])].get("options", {})
    text = source if isinstance(source, str) else orjson.dumps(source).decode()
    made = Template(text, options.get("content_type", "application/json")).render(params)
    try:
        body = parse_json(made.encode("utf-8", "surrogatepass")) if made.strip() else {}
    except SearchError as error:
        reason = "the template does not make valid JSON with these parameters"
        raise SearchError("parsing_exception", reason, 400, {"template_output": made[:1000]}, error) from None
    if not isinstance(body, dict):
        raise illegal_argument("the template has to make a JSON object")
    return body
