"""Dynamic templates: which mapping a new field gets, by its name and what JSON it is."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument, mapper_parsing
from graphdb.search.mapping.runtime_fields import checked_runtime
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = [
    "MATCH_TYPES",
    "RUNTIME_TYPES",
    "check_runtime_templates",
    "check_templates_of_fields",
    "checked_templates",
    "named_template",
    "template_mapping",
]

MATCH_TYPES = {
    "string": "text",
    "long": "long",
    "double": "float",
    "boolean": "boolean",
    "date": "date",
    "object": "object",
    "binary": "binary",
}
"""What `match_mapping_type` may say, and the type that a field gets where the template names none."""

RUNTIME_TYPES = {
    "string": "keyword",
    "long": "long",
    "double": "double",
    "boolean": "boolean",
    "date": "date",
}
"""The same of runtime fields."""

TEMPLATES_MAX = 1000
_NAME_LENGTH_MAX = 128  # longer names match no regular expression
_REPEATS_MAX = 4
_REPEAT = re.compile(r"[*+{]")
_CRITERIA = ("match", "unmatch", "path_match", "path_unmatch", "match_mapping_type", "unmatch_mapping_type")
_MEMBERS = {*_CRITERIA, "match_pattern", "mapping", "runtime"}


def checked_templates(value: Any) -> list[dict[str, Any]]:
    """The array `dynamic_templates`, of objects with one member each. Errors: mapper_parsing_exception."""
    if not isinstance(value, list) or len(value) > TEMPLATES_MAX:
        raise mapper_parsing("Dynamic template syntax error. An array of named objects is expected.")
    for entry in value:
        if not isinstance(entry, dict) or len(entry) != 1:
            raise mapper_parsing("A dynamic template must be defined with a name")
        ((name, template),) = entry.items()
        _check(name, template)
    return list(value)


def template_mapping(
    templates: list[dict[str, Any]], name: str, path: str, match_type: str
) -> dict[str, Any] | None:
    """The mapping that the first fitting template gives a field; name is its name in the object that it is
    in. None: none fits. `{"runtime": ...}` is the answer of a template that maps to a runtime field, which is
    not indexed; objects are none.
    """
    for entry in templates:
        (template,) = entry.values()
        if "runtime" in template and match_type not in RUNTIME_TYPES:
            continue
        if _fits(template, name, path, match_type):
            return _mapping(template, name, match_type)
    return None


def named_template(
    templates: list[dict[str, Any]], wanted: str, name: str, path: str, match_type: str
) -> dict[str, Any]:
    """The same of the template that is called so. Errors: document_parsing_exception where there is none."""
    for entry in templates:
        if wanted in entry and ("runtime" not in entry[wanted] or match_type in RUNTIME_TYPES):
            return _mapping(entry[wanted], name, match_type)
    raise SearchError(
        "document_parsing_exception",
        f"Can't find dynamic template for dynamic template name [{wanted[:200]}] of field [{path}]",
    )


def _mapping(template: Mapping[str, Any], name: str, match_type: str) -> dict[str, Any]:
    if "runtime" in template:
        kind = RUNTIME_TYPES[match_type]
        return {"runtime": {"type": kind, **_filled(template["runtime"], name, kind)}}
    mapping: dict[str, Any] = _filled(template["mapping"], name, MATCH_TYPES[match_type])
    return mapping if "type" in mapping else {"type": MATCH_TYPES[match_type], **mapping}


def _check(name: str, template: Any) -> None:
    if not isinstance(template, dict):
        raise mapper_parsing(f"Dynamic template [{name[:100]}] must be an object")
    if unknown := set(template) - _MEMBERS:
        raise illegal_argument(f"Illegal dynamic template parameter: [{min(unknown)[:100]}]")
    if not isinstance(template.get("mapping", template.get("runtime")), dict):
        raise mapper_parsing(f"template [{name[:100]}] must have either mapping or runtime set")
    for key in ("match_mapping_type", "unmatch_mapping_type"):
        for match_type in _listed(template, key):
            if match_type not in MATCH_TYPES and match_type != "*":
                raise mapper_parsing(
                    f"No field type matched on [{match_type}], possible values are "
                    f"[{', '.join(kind for kind in MATCH_TYPES)}]"
                )
    if template.get("match_pattern", "simple") not in ("simple", "regex"):
        raise mapper_parsing(f"No matching pattern matched on [{str(template['match_pattern'])[:100]}]")
    if template.get("match_pattern") == "regex":
        for key in ("match", "unmatch"):
            for pattern in _listed(template, key):
                _regex(pattern)


def check_runtime_templates(value: Any) -> None:
    """Of an array `dynamic_templates`, what maps to runtime fields; other kinds of JSON are left alone.

    Errors: mapper_parsing_exception, illegal_argument_exception.
    """
    entries = value if isinstance(value, list) else []
    for entry in entries:
        for name, template in entry.items() if isinstance(entry, dict) else ():
            if isinstance(template, dict) and isinstance(template.get("runtime"), dict):
                _check_runtime(name, template)


def check_templates_of_fields(entries: Sequence[Mapping[str, Any]], check: Callable[[Any], None]) -> None:
    """Of templates as they are checked otherwise: names that are texts, and mappings that could be a field's
    for some kind of JSON that they are for. check raises for what could not.

    Errors: mapper_parsing_exception, illegal_argument_exception.
    """
    for entry in entries:
        for name, template in entry.items():
            for key in _CRITERIA:
                given = template.get(key, [])
                if not all(isinstance(one, str) for one in (given if isinstance(given, list) else [given])):
                    raise mapper_parsing(
                        f"[{key}] values must either be a string or list of strings, but was "
                        f"[{str(given)[:100]}]"
                    )
            if "mapping" in template:
                _check_mapping(name, template, check)


def _check_mapping(name: str, template: Mapping[str, Any], check: Callable[[Any], None]) -> None:
    types = _listed(template, "match_mapping_type")
    tried = list(MATCH_TYPES) if not types or "*" in types else types
    failed: SearchError | None = None
    for match_type in tried:
        try:
            check(_mapping(template, f"__dynamic__{name}", match_type))
        except SearchError as error:
            failed = error
        else:
            return
    if failed is not None:
        raise _invalid_content(name, template, tried, failed)


def _invalid_content(
    name: str, template: Mapping[str, Any], tried: Sequence[str], cause: SearchError
) -> SearchError:
    content = json.dumps(template, separators=(",", ":"), sort_keys=True)
    return illegal_argument(
        f"dynamic template [{name[:100]}] has invalid content [{content[:1000]}], attempted to validate it "
        f"with the following match_mapping_type: [{', '.join(tried)}]",
        cause,
    )


def _check_runtime(name: str, template: Mapping[str, Any]) -> None:
    if "mapping" in template:
        raise mapper_parsing(
            f"mapping and runtime cannot be both specified in the same dynamic template [{name[:100]}]"
        )
    types = _listed(template, "match_mapping_type")
    for match_type in types:
        if match_type != "*" and match_type not in RUNTIME_TYPES:
            raise mapper_parsing(
                f"Dynamic template [{name[:100]}] defines a runtime field but type [{match_type}] is not "
                "supported as runtime field"
            )
    tried = list(RUNTIME_TYPES) if not types or "*" in types else types
    for match_type in tried:
        field = f"__dynamic__{name}"
        try:
            checked_runtime({field: _mapping(template, field, match_type)["runtime"]})
        except SearchError as error:
            raise _invalid_content(name, template, tried, error) from None


def _listed(template: Mapping[str, Any], key: str) -> list[str]:
    value = template.get(key, [])
    return [str(item) for item in (value if isinstance(value, list) else [value])]


@lru_cache(maxsize=512)
def _regex(pattern: str) -> re.Pattern[str]:
    """Only such as end soon: few repetitions, and none of a group."""
    if (
        len(pattern) > _NAME_LENGTH_MAX
        or re.search(r"\)(?:[*+{]|\?\+)", pattern)
        or len(_REPEAT.findall(pattern)) > _REPEATS_MAX
    ):
        raise mapper_parsing(f"Pattern [{pattern[:100]}] of type [regex] is too complex")
    try:
        return re.compile(pattern)
    except re.error:
        raise mapper_parsing(
            f"Pattern [{pattern}] of type [regex] is invalid. Cannot create dynamic template."
        ) from None


def _fits(template: Mapping[str, Any], name: str, path: str, match_type: str) -> bool:
    regex = template.get("match_pattern") == "regex"
    checks = (("match", name, regex), ("path_match", path, False))
    types = _listed(template, "match_mapping_type")
    return (
        any(key in template for key in _CRITERIA)
        and all(key not in template or _any(template, key, text, as_regex) for key, text, as_regex in checks)
        and not _any(template, "unmatch", name, regex)
        and not _any(template, "path_unmatch", path, False)
        and (not types or "*" in types or match_type in types)
        and match_type not in _listed(template, "unmatch_mapping_type")
    )


def _any(template: Mapping[str, Any], key: str, text: str, regex: bool) -> bool:
    patterns = _listed(template, key)
    if regex:
        return len(text) <= _NAME_LENGTH_MAX and any(_regex(pattern).fullmatch(text) for pattern in patterns)
    return any(wildcard_match(pattern, text) for pattern in patterns)


def _filled(value: Any, name: str, type_name: str) -> Any:
    """A mapping with `{name}` and `{dynamic_type}` filled in, in names and values."""
    if isinstance(value, str):
        filled = value.replace("{name}", name)
        return filled.replace("{dynamic_type}", type_name).replace("{dynamicType}", type_name)
    if isinstance(value, dict):
        return {_filled(key, name, type_name): _filled(item, name, type_name) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, name, type_name) for item in value]
    return value
