"""Runtime fields: fields whose values a script emits, or the source has, when a search asks for them.

A `composite` is several fields, whose values one script emits: they are called by its name, a dot, and their
own. A `lookup` has no values in its index: hits show fields of the documents of another one.

Source: Elasticsearch's reference, "Runtime fields"; the errors as Elasticsearch 8.19 words them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdb.search.errors import illegal_argument, mapper_parsing
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.dates import date_format
from graphdb.search.mapping.types import FIELD_TYPES
from graphdb.search.similarity import STANDARD

__all__ = ["Lookup", "RuntimeField", "checked_runtime", "runtime_fields", "runtime_paths"]

FIELDS_MAX = 1_000
"""In one mapping, or of one request."""

_TYPES = ("boolean", "date", "double", "geo_point", "ip", "keyword", "long")
_ALL_TYPES = (*_TYPES, "composite", "lookup")
_TARGETS = ("target_index", "input_field", "target_field")
_MEMBERS = {
    "composite": frozenset({"type", "script", "fields", "meta"}),
    "lookup": frozenset({"type", "meta", "fetch_fields", *_TARGETS}),
    "date": frozenset({"type", "script", "format", "locale", "meta"}),
}
_PLAIN_MEMBERS = frozenset({"type", "script", "meta"})


@dataclass(frozen=True, slots=True)
class Lookup:
    """The documents of target_index whose target_field has the value of input_field; fetch_fields: what is
    shown of them, as entries of `fields` in a search.
    """

    target_index: str
    input_field: str
    target_field: str
    fetch_fields: tuple[Mapping[str, str], ...] = field(hash=False)


@dataclass(frozen=True, slots=True)
class RuntimeField:
    """script is the JSON of one; None: the values that the source has under the field's name. Of a composite
    the script emits maps, and member is the key of this field in them.
    """

    spec: FieldSpec
    script: Any = None
    member: str | None = None
    lookup: Lookup | None = None


def checked_runtime(value: Any) -> dict[str, Any]:
    """The normal form of a `runtime` section: definitions by name, None for one to remove.

    Errors: mapper_parsing_exception, script_exception, illegal_argument_exception.
    """
    if not isinstance(value, dict):
        raise mapper_parsing("[runtime] must be a map type")
    if len(value) > FIELDS_MAX:
        raise mapper_parsing(f"[runtime] has at most {FIELDS_MAX} fields, got [{len(value)}]")
    return {name: None if given is None else _definition(name, given) for name, given in value.items()}


def _definition(name: str, given: Any, types: tuple[str, ...] = _ALL_TYPES) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise mapper_parsing(
            f"Expected map for runtime field [{name[:200]}] definition but got a {type(given)}"
        )
    kind = given.get("type")
    if kind is None:
        raise mapper_parsing(f"No type specified for runtime field [{name[:200]}]")
    if not name.strip() or kind not in types:
        raise mapper_parsing(
            f"No handler for type [{str(kind)[:100]}] declared on runtime field [{name[:200]}]: known are "
            f"[{', '.join(types)}]"
        )
    for member in given:
        if member not in _MEMBERS.get(kind, _PLAIN_MEMBERS):
            raise mapper_parsing(
                f"unknown parameter [{member[:100]}] on runtime field [{name[:200]}] of type [{kind}]"
            )
    shown = {"type": kind}
    if kind == "lookup":
        shown |= _lookup_members(given)
    if kind == "composite":
        shown |= _composite_members(name, given)
    if given.get("script") is not None:
        shown["script"] = _script(given["script"])
    if given.get("format") is not None:
        shown["format"] = date_format(str(given["format"])).source
    if given.get("locale") is not None:
        shown["locale"] = str(given["locale"])
    if given.get("meta") is not None:
        shown["meta"] = given["meta"]
    return shown


def _script(given: Any) -> dict[str, Any]:
    # The language of scripts knows mappings, so it is not there yet when this module is imported.
    from graphdb.search.scripts.script import RUNTIME, parse_script

    parse_script(given, RUNTIME)
    return {"source": given, "lang": "painless"} if isinstance(given, str) else dict(given)


def _composite_members(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("script") is None:
        raise illegal_argument(f"composite runtime field [{name}] must declare a [script]")
    fields = given.get("fields")
    if not isinstance(fields, dict) or not fields:
        raise illegal_argument(f"composite runtime field [{name}] must declare its [fields]")
    members = {}
    for member, inner in fields.items():
        if isinstance(inner, dict) and inner.get("script") is not None:
            raise illegal_argument(
                f"Cannot use [script] parameter on sub-field [{member[:200]}] of composite field [{name}]"
            )
        members[member] = _definition(member, inner, _TYPES)
    return {"fields": members}


def _lookup_members(given: Mapping[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for parameter in _TARGETS:
        value = given.get(parameter)
        if not isinstance(value, str) or not value:
            raise illegal_argument(f"[{parameter}] parameter must be specified")
        members[parameter] = value
    entries = given.get("fetch_fields")
    if not isinstance(entries, list) or not entries:
        raise mapper_parsing("[fetch_fields] parameter must not be empty")
    shown = [{"field": entry} if isinstance(entry, str) else entry for entry in entries]
    for entry in shown:
        if not isinstance(entry, dict) or not isinstance(entry.get("field"), str):
            raise mapper_parsing("[field] parameter of [fetch_fields] must be provided")
        if unknown := entry.keys() - {"field", "format"}:
            raise mapper_parsing(f"[fetch_fields] has unknown parameter [{min(unknown)[:100]}]")
    return members | {"fetch_fields": shown}


def runtime_fields(definitions: Mapping[str, Any]) -> dict[str, RuntimeField]:
    """Of definitions in normal form.

    Errors: illegal_argument_exception for a name that a composite gives to another field.
    """
    fields: dict[str, RuntimeField] = {}
    for name, given in definitions.items():
        for one in _fields(name, given) if given is not None else ():
            if one.spec.path in fields:
                raise illegal_argument(f"Found two runtime fields with same name [{one.spec.path}]")
            fields[one.spec.path] = one
    return fields


def runtime_paths(definitions: Mapping[str, Any]) -> frozenset[str]:
    """Of the fields of definitions in normal form."""
    below = (
        f"{name}.{member}"
        for name, given in definitions.items()
        if given is not None and given["type"] == "composite"
        for member in given["fields"]
    )
    return frozenset((*definitions, *below))


def _fields(name: str, given: Mapping[str, Any]) -> Iterator[RuntimeField]:
    if given["type"] == "lookup":
        names = {parameter: str(given[parameter]) for parameter in _TARGETS}
        lookup = Lookup(**names, fetch_fields=tuple(given["fetch_fields"]))
        spec = FieldSpec(name, "lookup", Storage.NONE, False, False, options={"runtime": True})
        yield RuntimeField(spec, lookup=lookup)
    elif given["type"] == "composite":
        for member, inner in given["fields"].items():
            yield RuntimeField(_spec(f"{name}.{member}", inner), given["script"], member)
    else:
        yield RuntimeField(_spec(name, given), given.get("script"))


def _spec(path: str, given: Mapping[str, Any]) -> FieldSpec:
    kind = FIELD_TYPES[given["type"]]
    options = {parameter: known.default for parameter, known in kind.parameters.items()}
    options |= {"runtime": True, "scores_by": STANDARD}
    if "format" in given:
        options["format"] = given["format"]
    return FieldSpec(path, kind.name, kind.storage, options=options)
