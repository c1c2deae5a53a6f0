"""What is refused in a mapping that comes new, and is not in one that there is already.

Mappings of earlier versions stay readable, so these checks are made before a change is logged, and not when
the log is applied or an index is opened.

Errors: mapper_parsing_exception, as Elasticsearch 8.19 words them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument, mapper_parsing
from graphdb.search.mapping.document import METADATA_FIELDS
from graphdb.search.mapping.dynamic_templates import check_templates_of_fields
from graphdb.search.mapping.mapping_definition import SOURCE_MODES, normalised, unparsable
from graphdb.search.mapping.types import OBJECT_TYPES, boolean

__all__ = ["check_new_mapping"]

_META_MAX, _META_KEY_MAX, _META_VALUE_MAX = 5, 20, 50
_PREFIX_MAX = 20  # characters
_OVERSAMPLE_MAX = 10
_ROOT_OBJECTS = ("_source", "_routing")
_WHOLE = ("byte", "short", "integer", "long", "unsigned_long")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_NO_DEFAULT = ("analyzer", "search_analyzer", "search_quote_analyzer", "meta")
_INDEX_OPTIONS = {
    "hnsw": {"m", "ef_construction"},
    "flat": set[str](),
    "int8_hnsw": {"m", "ef_construction", "confidence_interval", "rescore_vector"},
    "int4_hnsw": {"m", "ef_construction", "confidence_interval", "rescore_vector"},
    "int8_flat": {"confidence_interval", "rescore_vector"},
    "int4_flat": {"confidence_interval", "rescore_vector"},
    "bbq_hnsw": {"m", "ef_construction", "rescore_vector"},
    "bbq_flat": {"rescore_vector"},
}


def check_new_mapping(body: Mapping[str, Any]) -> None:
    """The `mappings` of a request. Analyzers may be another's, so that their names are not looked up."""
    try:
        normalised(body)
        _check_root(body)
        for path, field in _fields(body.get("properties") or {}):
            _check_field(path, field)
        for name, field in (body.get("runtime") or {}).items():
            _check_meta(name, (field or {}).get("meta", {}))
        check_templates_of_fields(body.get("dynamic_templates") or [], _as_field)
    except SearchError as error:
        raise unparsable(error) from None
    for name in METADATA_FIELDS & (body.get("properties") or {}).keys():
        raise mapper_parsing(f"Field [{name}] is defined more than once")


def _as_field(mapping: Mapping[str, Any]) -> None:
    """Whether it could be the mapping of a field."""
    normalised({"properties": {"__dynamic__": mapping}})


# The root.


def _check_root(body: Mapping[str, Any]) -> None:
    if "properties" in body and body["properties"] is None:
        raise mapper_parsing("properties must be a map type")
    if "type" in body:
        raise mapper_parsing(
            f"Root mapping definition has unsupported parameters:  [type : {str(body['type'])[:100]}]"
        )
    for name in _ROOT_OBJECTS:
        if name in body and body[name] is None:
            raise illegal_argument(f"[{name}] config must be an object")
    formats = body.get("dynamic_date_formats") or []
    for one in formats if isinstance(formats, list) else [formats]:
        if str(one).startswith("epoch_"):
            raise mapper_parsing(f"Epoch [{one}] is not supported as dynamic date format")
    _check_source(body.get("_source") or {})
    boolean((body.get("_routing") or {}).get("required", False))


def _check_source(given: Mapping[str, Any]) -> None:
    if given.get("enabled") is not None:
        boolean(given["enabled"])
    mode = str(given.get("mode", "stored")).lower()
    if mode not in SOURCE_MODES:
        raise illegal_argument(
            f"[mode] of [_source] must be one of [{', '.join(SOURCE_MODES)}], got [{mode[:100]}]"
        )
    if "mode" in given and "enabled" in given:
        raise mapper_parsing("Cannot set both [mode] and [enabled] parameters")
    for name in ("includes", "excludes"):
        if not isinstance(given.get(name) or [], list):
            raise illegal_argument(f"[{name}] of [_source] must be an array of names")
        if given.get(name) and mode == "synthetic":
            raise illegal_argument("filtering the stored _source is incompatible with synthetic source")


# Fields.


def _fields(properties: Any, above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All fields, objects and multi-fields, each with its path."""
    pending = [(above, properties)]
    while pending:
        path, members = pending.pop()
        for name, field in members.items() if isinstance(members, Mapping) else ():
            if isinstance(field, Mapping):
                yield f"{path}{name}", field
                for below in ("properties", "fields"):
                    pending.append((f"{path}{name}.", field.get(below)))


def _check_field(path: str, field: Mapping[str, Any]) -> None:
    name, kind = path.rpartition(".")[2], field.get("type", "object")
    if kind in OBJECT_TYPES:
        if "properties" in field and field["properties"] is None:
            raise mapper_parsing("properties must be a map type")
        if "type" not in field and not {"properties", "enabled"} & field.keys():
            raise mapper_parsing(f"No type specified for field [{name}]")
        return
    if "fields" in field and field["fields"] is None:
        raise mapper_parsing(f"expected map for property [fields] on field [{name}] but got [null]")
    for parameter in _NO_DEFAULT:
        if parameter in field and field[parameter] is None:
            reason = f"[{parameter}] on mapper [{name}] of type [{kind}] must not have a [null] value"
            raise mapper_parsing(reason)
    _check_meta(name, field.get("meta", {}))
    _check_time_series(field)
    check = _BY_TYPE.get(kind)
    if check is not None:
        check(name, field)


def _check_meta(name: str, meta: Any) -> None:
    if not isinstance(meta, Mapping):
        raise mapper_parsing(f"[meta] must be an object, got [{str(meta)[:100]}] for field [{name}]")
    if len(meta) > _META_MAX:
        raise mapper_parsing(
            f"[meta] can't have more than {_META_MAX} entries, but got {len(meta)} on field [{name}]"
        )
    for key, value in meta.items():
        if len(key) > _META_KEY_MAX:
            raise mapper_parsing(
                f"[meta] keys can't be longer than {_META_KEY_MAX} chars, but got [{key[:200]}] for field "
                f"[{name}]"
            )
        if value is None:
            raise mapper_parsing(f"[meta] values can't be null (field [{name}])")
        if not isinstance(value, str):
            raise mapper_parsing(
                f"[meta] values can only be strings, but got [{str(value)[:100]}] for field [{name}]"
            )
        if len(value) > _META_VALUE_MAX:
            raise mapper_parsing(
                f"[meta] values can't be longer than {_META_VALUE_MAX} chars, but got [{value[:200]}] for "
                f"field [{name}]"
            )


def _is(field: Mapping[str, Any], name: str, default: bool = False) -> bool:
    value = field.get(name)
    return default if value is None else boolean(value)


def _check_time_series(field: Mapping[str, Any]) -> None:
    metric = field.get("time_series_metric")
    known = ("position",) if field["type"] == "geo_point" else ("gauge", "counter")
    if metric is not None and metric not in known:
        raise mapper_parsing(
            f"Unknown value [{str(metric)[:100]}] for field [time_series_metric] - accepted values are "
            f"[{', '.join(known)}]"
        )
    has_columns = _is(field, "doc_values", True)
    if metric is not None and not has_columns:
        raise illegal_argument("Field [time_series_metric] requires that [doc_values] is true")
    dimensions = "time_series_dimensions" if "time_series_dimensions" in field else "time_series_dimension"
    if not (field.get(dimensions) if dimensions.endswith("s") else _is(field, dimensions)):
        return
    if not (has_columns and _is(field, "index", True)):
        raise illegal_argument(f"Field [{dimensions}] requires that [index] and [doc_values] are true")
    if metric is not None:
        raise illegal_argument(
            f"Field [{dimensions}] cannot be set in conjunction with field [time_series_metric]"
        )
    if field.get("normalizer") is not None:
        raise illegal_argument(f"Field [normalizer] cannot be set in conjunction with field [{dimensions}]")


# Types.


def _check_text(name: str, field: Mapping[str, Any]) -> None:
    is_indexed, has_positions = _is(field, "index", True), field.get("index_options") not in ("docs", "freqs")
    if field.get("position_increment_gap") is not None and not (is_indexed and has_positions):
        raise illegal_argument(
            f"Cannot set position_increment_gap on field [{name}] without positions enabled"
        )
    prefixes = field.get("index_prefixes")
    if prefixes is not None:
        _check_prefixes(name, prefixes)
        if not is_indexed:
            raise illegal_argument(f"Cannot set index_prefixes on unindexed field [{name}]")
    if _is(field, "index_phrases"):
        if not is_indexed:
            raise illegal_argument(f"Cannot set index_phrases on unindexed field [{name}]")
        if not has_positions:
            raise illegal_argument(f"Cannot set index_phrases on field [{name}] if positions are not enabled")


def _check_prefixes(name: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise mapper_parsing(f"[index_prefixes] of field [{name}] must be an object")
    if unknown := given.keys() - {"min_chars", "max_chars"}:
        raise _unsupported(name, min(unknown), given)
    try:
        least, most = (
            int(str(given.get(key, usual))[:20]) for key, usual in (("min_chars", 2), ("max_chars", 5))
        )
    except ValueError:
        raise illegal_argument(f'For input string: "{str(given)[:100]}"') from None
    if least > most:
        raise illegal_argument(f"min_chars [{least}] must be less than max_chars [{most}]")
    if least < 1:
        raise illegal_argument(f"min_chars [{least}] must be greater than zero")
    if most >= _PREFIX_MAX:
        raise illegal_argument(f"max_chars [{most}] must be less than {_PREFIX_MAX}")


def _unsupported(name: str, parameter: str, given: Mapping[str, Any]) -> SearchError:
    return mapper_parsing(
        f"Mapping definition for [{name}] has unsupported parameters:  [{parameter[:100]} : "
        f"{str(given[parameter])[:100]}]"
    )


def _check_whole(_name: str, field: Mapping[str, Any]) -> None:
    value = field.get("null_value")
    try:
        has_part = value is not None and float(value) % 1 != 0
    except (TypeError, ValueError, OverflowError):
        return  # it has been read
    if has_part:
        raise illegal_argument(f"Value [{value}] has a decimal part")


def _check_date(_name: str, field: Mapping[str, Any]) -> None:
    locale = field.get("locale")
    if locale is not None and locale not in ("", "ROOT") and not _LANGUAGE.fullmatch(str(locale)):
        raise illegal_argument(f"Unknown language: {str(locale)[:100]}")


def _check_completion(_name: str, field: Mapping[str, Any]) -> None:
    if field.get("contexts") == []:
        raise illegal_argument("expected at least one context mapping")


def _check_flattened(name: str, field: Mapping[str, Any]) -> None:
    if "store" in field:
        raise mapper_parsing(f"unknown parameter [store] on mapper [{name}] of type [flattened]")
    for parameter in ("fields", "copy_to"):
        if field.get(parameter):
            raise illegal_argument(f"flattened field [{name}] does not support [{parameter}]")


def _check_vector(name: str, field: Mapping[str, Any]) -> None:
    if not _is(field, "index", True):
        for parameter in ("similarity", "index_options"):
            if field.get(parameter) is not None:
                raise illegal_argument(
                    f"Field [{parameter}] can only be specified for a field of type [dense_vector] when it "
                    "is indexed"
                )
    options = field.get("index_options") or {}
    if unknown := options.keys() - {"type"} - _INDEX_OPTIONS.get(str(options.get("type")), {*options}):
        raise _unsupported(name, min(unknown), options)
    if "rescore_vector" in options:
        given = options["rescore_vector"]
        factor = given.get("oversample") if isinstance(given, Mapping) else None
        if factor is None:
            raise illegal_argument("Invalid rescore_vector value. Missing required field oversample")
        if not isinstance(factor, int | float) or (factor != 0 and factor < 1):
            raise illegal_argument("oversample must be greater than 1 or exactly 0")
        if factor > _OVERSAMPLE_MAX:
            raise illegal_argument(f"oversample must be less than or equal to {_OVERSAMPLE_MAX}")


_BY_TYPE: dict[str, Callable[[str, Mapping[str, Any]], None]] = {
    "text": _check_text,
    **dict.fromkeys(_WHOLE, _check_whole),
    "date": _check_date,
    "date_nanos": _check_date,
    "date_range": _check_date,
    "completion": _check_completion,
    "flattened": _check_flattened,
    "dense_vector": _check_vector,
}
