"""The table of field types: how each is stored, and which parameters it takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdb.search.errors import illegal_argument
from graphdb.search.fields import Storage
from graphdb.search.mapping.completions import contexts_checked
from graphdb.search.mapping.dates import DEFAULT_FORMAT, DEFAULT_NANOS_FORMAT, date_format
from graphdb.search.mapping.joins import relations
from graphdb.search.mapping.range_fields import RANGE_TYPES
from graphdb.search.mapping.vectors import BITS_MAX, SIMILARITIES, VECTOR_INDEX_TYPES

__all__ = [
    "FIELD_TYPES",
    "INT_MAX",
    "OBJECT_TYPES",
    "READS_OBJECTS",
    "SOURCE_KEEPS",
    "FieldType",
    "Parameter",
    "boolean",
]

Check = Callable[[Any], Any]
OBJECT_TYPES = ("object", "nested")
READS_OBJECTS = {
    "completion",
    "flattened",
    "geo_point",
    "geo_shape",
    "join",
    "percolator",
    "rank_features",
    "sparse_vector",
    *RANGE_TYPES,
}
"""The types of fields whose values may be JSON objects."""

INT_MAX = 2**31 - 1
SOURCE_KEEPS = ("none", "arrays", "all")
"""What `synthetic_source_keep` may say. Documents are kept whole, so it is only shown."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """default is what counts where it is not given; check returns the value in its normal form or raises
    illegal_argument_exception; only updatable ones may change in an existing field.
    """

    default: Any
    check: Check
    updatable: bool = False


@dataclass(frozen=True, slots=True)
class FieldType:
    """required: parameters that must be given."""

    name: str
    storage: Storage
    parameters: Mapping[str, Parameter]
    required: tuple[str, ...] = field(default=())


def boolean(value: Any) -> bool:
    """True and false, also as strings."""
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise illegal_argument(
        f"Failed to parse value [{str(value)[:100]}] as only [true] or [false] are allowed."
    )


def _anything(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise illegal_argument(f"expected a string but got [{str(value)[:100]}]")
    return str(value)


def _integer(low: int, high: int = INT_MAX) -> Check:
    def check(value: Any) -> int:
        try:
            number = int(str(value)[:20])
        except ValueError:
            raise illegal_argument(f'For input string: "{str(value)[:100]}"') from None
        if not low <= number <= high:
            raise illegal_argument(f"value [{number}] must be in the range [{low}, {high}]")
        return number

    return check


def _one_of(*choices: str) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise illegal_argument(
                f"Unknown value [{str(value)[:100]}]; accepted values are [{', '.join(choices)}]"
            )
        return str(value)

    return check


def _format(value: Any) -> str:
    return date_format(_text(value)).source


def _scaling_factor(value: Any) -> float:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
    if not 0 < number < float("inf"):
        raise illegal_argument(f"[scaling_factor] must be a positive number, got [{str(value)[:100]}]")
    return float(number)


def _dims(value: Any) -> int:
    number = value if isinstance(value, int) and not isinstance(value, bool) else -1
    if number < 1:  # the greatest depends on the elements, see `checked_vector`
        raise illegal_argument(
            f"The number of dimensions should be in the range [1, {BITS_MAX}] but was [{str(value)[:100]}]"
        )
    return number


def _index_options(value: Any) -> dict[str, Any]:
    """Of a dense_vector; the members but `type` are numbers that the vector index reads."""
    if not isinstance(value, dict) or "type" not in value:
        raise illegal_argument("[index_options] requires field [type] to be configured")
    if value["type"] not in VECTOR_INDEX_TYPES:
        raise illegal_argument(f"Unsupported index options type [{str(value['type'])[:100]}]")
    limits = {"m": (2, 512), "ef_construction": (1, 3200)}
    for name in value:
        if name not in ("type", "m", "ef_construction", "confidence_interval", "rescore_vector"):
            raise illegal_argument(
                f"Mapping definition for [index_options] has unsupported parameters: [{name[:50]}]"
            )
    return value | {name: _integer(*limits[name])(value[name]) for name in limits if name in value}


def _no_columns(type_name: str) -> Parameter:
    """Of a type that is for its query, or its suggester, alone."""

    def check(value: Any) -> bool:
        raise illegal_argument(f"unknown parameter [doc_values] on mapper of type [{type_name}]")

    return Parameter(False, check)


def _frequency_filter(value: Any) -> dict[str, Any]:
    """Bounds on the documents of a segment that a token is in; up to 1 they are parts of them."""
    if not isinstance(value, dict):
        raise illegal_argument("[fielddata_frequency_filter] must be an object")
    for name, bound in value.items():
        if name not in ("min", "max", "min_segment_size"):
            raise illegal_argument(f"[fielddata_frequency_filter] has unsupported parameters: [{name[:50]}]")
        try:
            number = float(str(bound)[:20])
        except ValueError:
            raise illegal_argument(f'For input string: "{str(bound)[:100]}"') from None
        if not 0 <= number <= INT_MAX:
            raise illegal_argument(f"[{name}] must be in the range [0, {INT_MAX}] but was [{bound}]")
    return value


_FLAG, _UPDATABLE_FLAG = Parameter(False, boolean), Parameter(False, boolean, True)
_INDEXED = {"index": Parameter(True, boolean), "store": _FLAG}
_COLUMN = _INDEXED | {"doc_values": Parameter(True, boolean)}
_COMMON = {
    "meta": Parameter(None, _anything, True),
    "copy_to": Parameter((), _anything, True),
    "synthetic_source_keep": Parameter(None, _one_of(*SOURCE_KEEPS)),
}
_MALFORMED = {"ignore_malformed": _UPDATABLE_FLAG}
_NULL = {"null_value": Parameter(None, _anything)}
_DIMENSION = {"time_series_dimension": _FLAG}
_ORDINALS = {"eager_global_ordinals": _UPDATABLE_FLAG}
_LONG_TERMS = {"ignore_above": Parameter(INT_MAX, _integer(0), True)}
_TEXT_OPTIONS = _one_of("docs", "freqs", "positions", "offsets")
_TERM_VECTORS = _one_of(
    "no", "yes", "with_positions", "with_offsets", "with_positions_offsets", "with_positions_payloads",
    "with_positions_offsets_payloads",
)  # fmt: skip
_ANALYZERS = {
    "analyzer": Parameter(None, _text),
    "search_analyzer": Parameter(None, _text, True),
    "search_quote_analyzer": Parameter(None, _text, True),
}
_TEXT = _INDEXED | _ANALYZERS | _ORDINALS | {
    "norms": Parameter(True, boolean, True),
    "index_options": Parameter("positions", _TEXT_OPTIONS),
    "fielddata": _UPDATABLE_FLAG,
    "fielddata_frequency_filter": Parameter(None, _frequency_filter, True),
    "index_phrases": _FLAG,
    "index_prefixes": Parameter(None, _anything),
    "position_increment_gap": Parameter(None, _integer(0)),
    "similarity": Parameter(None, _text),
    "term_vector": Parameter("no", _TERM_VECTORS),
}  # fmt: skip
_KEYWORD = _COLUMN | _NULL | _LONG_TERMS | _ORDINALS | {
    "normalizer": Parameter(None, _text),
    "norms": _UPDATABLE_FLAG,
    "index_options": Parameter("docs", _one_of("docs", "freqs")),
    "similarity": Parameter(None, _text),
    "split_queries_on_whitespace": _UPDATABLE_FLAG,
    "time_series_dimension": _FLAG,
}  # fmt: skip
# OpenSearch's parameters of a type that Elasticsearch has, too.
_WILDCARD = {"doc_values": Parameter(True, boolean), "normalizer": Parameter(None, _text)}
_NUMBER = _COLUMN | _NULL | _MALFORMED | {
    "coerce": Parameter(True, boolean, True),
    "time_series_metric": Parameter(None, _text),
    "time_series_dimension": _FLAG,
}  # fmt: skip
_DATE = _COLUMN | _NULL | _MALFORMED | {
    "format": Parameter(DEFAULT_FORMAT, _format),
    "locale": Parameter("en", _text, True),
}  # fmt: skip
_DATE_NANOS = _DATE | {"format": Parameter(DEFAULT_NANOS_FORMAT, _format)}
_VECTOR = {
    "dims": Parameter(None, _dims),
    "element_type": Parameter("float", _one_of("float", "bit", "byte")),
    "index": Parameter(True, boolean),
    "similarity": Parameter(None, _one_of(*SIMILARITIES)),
    "index_options": Parameter(None, _index_options, True),
}
_JOIN = _ORDINALS | {"relations": Parameter({}, relations, True)}
_FLATTENED = _COLUMN | _NULL | _LONG_TERMS | _ORDINALS | {
    "depth_limit": Parameter(20, _integer(0, 100), True),
    "index_options": Parameter("docs", _one_of("docs", "freqs")),
    "similarity": Parameter(None, _text),
    "split_queries_on_whitespace": _UPDATABLE_FLAG,
    "time_series_dimensions": Parameter(None, _anything),
}  # fmt: skip


def _constant(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise illegal_argument(f"must be a number or a string, but got [{str(value)[:100]}]")
    return str(value)


_ORIENTATIONS = ("right", "left", "ccw", "cw", "clockwise", "counterclockwise")
_SHAPE = _COLUMN | _MALFORMED | {
    "ignore_z_value": Parameter(True, boolean, True),
    "orientation": Parameter("right", _one_of(*_ORIENTATIONS), True),
    "coerce": Parameter(False, boolean, True),
}  # fmt: skip
_RANGE = _COLUMN | {"coerce": Parameter(True, boolean, True)}
_DATE_RANGE = _RANGE | {
    "format": Parameter(DEFAULT_FORMAT, _format),
    "locale": Parameter("en", _text, True),
}
_AS_YOU_TYPE = _INDEXED | _ANALYZERS | {
    "max_shingle_size": Parameter(3, _integer(2, 4)),
    "norms": Parameter(True, boolean, True),
    "index_options": Parameter("positions", _TEXT_OPTIONS),
    "similarity": Parameter(None, _text),
    "term_vector": Parameter("no", _TERM_VECTORS),
}  # fmt: skip
_TOKEN_COUNT = _COLUMN | _NULL | {
    "analyzer": Parameter(None, _text),
    "enable_position_increments": Parameter(True, boolean),
}  # fmt: skip
_COMPLETION = {
    "analyzer": Parameter(None, _text),
    "search_analyzer": Parameter(None, _text, True),
    "preserve_separators": Parameter(True, boolean),
    "preserve_position_increments": Parameter(True, boolean),
    "max_input_length": Parameter(50, _integer(1, 10_000), True),
    "contexts": Parameter(None, contexts_checked),
    "doc_values": _no_columns("completion"),
}


def _table() -> dict[str, FieldType]:
    ints, floats = ("byte", "short", "integer", "long", "unsigned_long"), ("half_float", "float", "double")
    scaled = _NUMBER | {"scaling_factor": Parameter(None, _scaling_factor)}
    types = [
        FieldType("text", Storage.TEXT, _TEXT),
        FieldType("match_only_text", Storage.TEXT, _ANALYZERS),
        FieldType("keyword", Storage.TERMS, _KEYWORD),
        FieldType("constant_keyword", Storage.TERMS, {"value": Parameter(None, _constant)}),
        FieldType("version", Storage.TERMS, {}),
        FieldType("wildcard", Storage.TERMS, _NULL | _LONG_TERMS | _WILDCARD),
        *(FieldType(name, Storage.INTS, _NUMBER) for name in ints),
        *(FieldType(name, Storage.FLOATS, _NUMBER) for name in floats),
        FieldType("scaled_float", Storage.FLOATS, scaled, ("scaling_factor",)),
        FieldType(
            "rank_feature",
            Storage.FLOATS,
            {"positive_score_impact": Parameter(True, boolean), "doc_values": _no_columns("rank_feature")},
        ),
        FieldType("boolean", Storage.INTS, _COLUMN | _NULL | _MALFORMED | _DIMENSION),
        FieldType("date", Storage.INTS, _DATE),
        FieldType("date_nanos", Storage.INTS, _DATE_NANOS),
        FieldType("ip", Storage.TERMS, _COLUMN | _NULL | _MALFORMED | _DIMENSION),
        FieldType(
            "geo_point",
            Storage.POINTS,
            _COLUMN
            | _NULL
            | _MALFORMED
            | {
                "ignore_z_value": Parameter(True, boolean, True),
                "time_series_metric": Parameter(None, _text),
            },
        ),
        FieldType("geo_shape", Storage.CODES, _SHAPE),
        FieldType("dense_vector", Storage.VECTORS, _VECTOR),
        FieldType("flattened", Storage.TERMS, _FLATTENED),
        FieldType(
            "join", Storage.TERMS, _ORDINALS | {"relations": Parameter({}, relations, True)}, ("relations",)
        ),
        FieldType("search_as_you_type", Storage.TEXT, _AS_YOU_TYPE),
        FieldType("token_count", Storage.INTS, _TOKEN_COUNT, ("analyzer",)),
        FieldType("completion", Storage.TERMS, _COMPLETION),
        FieldType("percolator", Storage.CODES, {"doc_values": _no_columns("percolator")}),
        FieldType(
            "rank_features",
            Storage.CODES,
            {"positive_score_impact": Parameter(True, boolean), "doc_values": _no_columns("rank_features")},
        ),
        FieldType(
            "sparse_vector", Storage.CODES, {"store": _FLAG, "doc_values": _no_columns("sparse_vector")}
        ),
        *(
            FieldType(name, Storage.CODES, _DATE_RANGE if name == "date_range" else _RANGE)
            for name in RANGE_TYPES
        ),
        FieldType("binary", Storage.NONE, {"store": _FLAG, "doc_values": _FLAG}),
    ]
    return {
        kind.name: FieldType(kind.name, kind.storage, {**kind.parameters, **_COMMON}, kind.required)
        for kind in types
    }


FIELD_TYPES = _table()
