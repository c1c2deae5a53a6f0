"""Stored scripts: put in the place of their ids before a request is parsed, and what may be stored."""

from collections.abc import Mapping
from typing import Any

import orjson

from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.scripts.script import LANGUAGES, check_stored

__all__ = ["StoredScripts", "checked_stored", "script_named", "with_stored"]

StoredScripts = Mapping[str, Mapping[str, Any]]
"""By id: `lang` and `source`, as `GET _scripts/{id}` shows them."""

_ONE_SCRIPT = frozenset(
    {"script", "minimum_should_match_script", "init_script", "map_script", "combine_script", "reduce_script"}
)
_SCRIPTED = _ONE_SCRIPT | {"script_fields", "runtime_mappings"}
_MEMBERS = frozenset({"id", "params", "options", "lang"})
_LONG = 256  # a longer list that begins with a simple value is one of values


def with_stored(body: Any, stored: StoredScripts) -> tuple[Any, bool]:
    """(the request with each stored script in the place of its id, whether it has any script).

    Nothing that is given is changed. Errors: resource_not_found_exception.
    """
    if isinstance(body, list):
        if len(body) > _LONG and not isinstance(body[0], (dict, list)):
            return body, False
        made = [with_stored(one, stored) for one in body if isinstance(one, (dict, list))]
        if not any(has for _, has in made):
            return body, False
        changed = iter(made)
        return [next(changed)[0] if isinstance(one, (dict, list)) else one for one in body], True
    if not isinstance(body, dict):
        return body, False
    found: dict[str, Any] = {}
    has_any = False
    for name, value in body.items():
        has = name in _SCRIPTED
        if name in _ONE_SCRIPT and isinstance(value, dict) and isinstance(value.get("id"), str):
            if value.keys() <= _MEMBERS:
                found[name] = script_named(value, stored)
        elif isinstance(value, (dict, list)):
            inner, inside = with_stored(value, stored)
            has = has or inside
            if inner is not value:
                found[name] = inner
        has_any = has_any or has
    return ({**body, **found} if found else body), has_any


def script_named(script: Mapping[str, Any], stored: StoredScripts) -> dict[str, Any]:
    """The script in place of one that has an `id`. Errors: resource_not_found_exception."""
    name = str(script["id"])
    there = stored.get(name)
    if there is None:
        raise SearchError(
            "resource_not_found_exception", f"unable to find script [{name[:200]}] in cluster state", 404
        )
    params = {} if script.get("params") is None else {"params": script["params"]}
    return {"lang": there["lang"], "source": there["source"], **params}


def checked_stored(body: Any) -> dict[str, Any]:
    """What is stored of the body of `PUT _scripts/{id}`. Errors: SearchError, where it is none, or does not
    compile.
    """
    script = body.get("script") if isinstance(body, Mapping) else None
    if not isinstance(script, Mapping):
        raise illegal_request("must specify <script> for stored script")
    lang, source = script.get("lang"), script.get("source", script.get("code"))
    if lang is None:
        raise illegal_request("must specify lang for stored script")
    if lang == "mustache" and isinstance(source, Mapping):
        source = orjson.dumps(source).decode()
    if lang not in (*LANGUAGES, "mustache"):
        raise illegal_request(f"script_lang not supported [{str(lang)[:100]}]")
    if not isinstance(source, str) or not source:
        raise illegal_request("must specify source for stored script")
    for name in script:
        if name not in ("lang", "source", "code", "options", "params"):  # the last says nothing
            raise SearchError("x_content_parse_exception", f"[script] unknown field [{name[:100]}]")
    options = {"options": script["options"]} if script.get("options") else {}
    if lang == "mustache":
        _check_template(source, script.get("options"))
    else:
        check_stored(source, str(lang))
    return {"lang": lang, "source": source, **options}


def _check_template(source: str, options: Any) -> None:
    """Errors: script_exception, illegal_argument_exception."""
    from graphdb.search.scripts.mustache import Template  # few store one

    given = {} if options is None else options
    if not isinstance(given, Mapping) or not given.keys() <= {"content_type"}:
        raise illegal_request("[options] of a template can only have [content_type]")
    Template(source, str(given.get("content_type", "application/json")))
