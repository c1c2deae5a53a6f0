"""Dense vectors: what may stand in a document."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.errors import SearchError, illegal_argument

__all__ = [
    "BITS_MAX",
    "DIMS_MAX",
    "HAMMING",
    "SIMILARITIES",
    "VECTOR_INDEX_TYPES",
    "checked_vector",
    "from_hex",
    "measure_of",
    "oversample_of",
    "rescore_of",
    "shown_vector",
    "similarity_of",
    "vector_of",
]

DIMS_MAX = 4096
BITS_MAX = 8 * DIMS_MAX
SIMILARITIES = ("cosine", "dot_product", "l2_norm", "max_inner_product")
HAMMING = "hamming"
"""How far vectors of bits are apart: in how many bits they differ. Mappings call it `l2_norm`."""
VECTOR_INDEX_TYPES = (
    "hnsw", "int8_hnsw", "int4_hnsw", "bbq_hnsw", "flat", "int8_flat", "int4_flat", "bbq_flat",
)  # fmt: skip
_UNIT_TOLERANCE = 1e-3  # of the squared length, as Lucene's `isUnitVector`
_PREVIEW = 5
_OVERSAMPLE = 3.0  # of the types `bbq_*`, as in Elasticsearch 8.19


def similarity_of(options: Mapping[str, Any]) -> str | None:
    """Of a field, as its mapping says, or else the default of what it has; None where it is not indexed."""
    given: str | None = options.get("similarity")
    if given is not None or not options.get("index", True):
        return given
    return "l2_norm" if options.get("element_type") == "bit" else "cosine"


def measure_of(options: Mapping[str, Any]) -> str:
    """What an indexed field is compared by: one of SIMILARITIES, or HAMMING."""
    return HAMMING if options["element_type"] == "bit" else str(options["similarity"])


def checked_vector(node: Mapping[str, Any]) -> None:
    """What the parameters of a field must be together. Errors: illegal_argument_exception.

    Of other elements than bits Elasticsearch refuses some types of an index, which mappings here have always
    been able to name: those that there are must stay readable.
    """
    element_type, dims = node.get("element_type", "float"), node.get("dims")
    index_type = str((node.get("index_options") or {}).get("type", "hnsw"))
    if dims is not None:
        least, most = (8, BITS_MAX) if element_type == "bit" else (1, DIMS_MAX)
        if not least <= dims <= most:
            raise illegal_argument(
                f"The number of dimensions should be in the range [{least}, {most}] but was [{dims}]"
            )
        if element_type == "bit" and dims % 8:
            raise illegal_argument(f"The number of dimensions should be a multiple of 8 but was [{dims}]")
    if element_type != "bit":
        return
    if index_type not in ("hnsw", "flat"):
        raise illegal_argument(f"[element_type] cannot be [bit] when using index type [{index_type}]")
    if node.get("similarity", "l2_norm") != "l2_norm":
        raise illegal_argument("The [l2_norm] similarity is the only supported similarity for bit vectors")


def vector_of(
    value: Any, name: str, dims: int, similarity: str | None, element_type: str, document: str
) -> NDArray[Any]:
    """(dims,) float32; of bits (dims / 8,) uint8, the first of eight the highest. similarity is None where
    the field is not indexed: then any length will do.

    Errors: illegal_argument_exception; document is what the text calls the document.
    """
    if element_type == "bit":
        return _bits_of(value, name, dims, document)
    if isinstance(value, str) and element_type == "byte":
        value = from_hex(value)
    if not isinstance(value, list):
        raise illegal_argument(
            f"Failed to parse object: expecting token of type [START_ARRAY] but found [{_token(value)}]"
        )
    if len(value) != dims:
        raise illegal_argument(
            f"The [dense_vector] field [{name}] in doc [{document}] has a different number of dimensions "
            f"[{len(value)}] than defined in the mapping [{dims}]"
        )
    if not {int, float}.issuperset(map(type, value)):
        raise illegal_argument("Failed to parse object: expecting token of type [VALUE_NUMBER]")
    with np.errstate(over="ignore"):
        vector = _numbers(value).astype(np.float32)
    _check_elements(vector, element_type)
    if similarity is not None:
        _check_length(vector, similarity, element_type)
    return vector


def _bits_of(value: Any, name: str, dims: int, document: str) -> NDArray[np.uint8]:
    """They are written as signed bytes, or as hexadecimal digits."""
    if isinstance(value, str):
        value = from_hex(value)
    if not isinstance(value, list):
        raise illegal_argument(
            f"Failed to parse object: expecting token of type [START_ARRAY] but found [{_token(value)}]"
        )
    for place, item in enumerate(value):
        if type(item) not in (int, float):
            raise illegal_argument("Failed to parse object: expecting token of type [VALUE_NUMBER]")
        if item % 1:
            raise illegal_argument(
                "element_type [bit] vectors only support non-decimal values but found decimal value "
                f"[{item}] at dim [{place}];"
            )
        if not -128 <= item <= 127:
            raise illegal_argument(
                "element_type [bit] vectors only support integers between [-128, 127] but found "
                f"[{str(item)[:100]}] at dim [{place}];"
            )
    if 8 * len(value) != dims:
        raise illegal_argument(
            f"The [dense_vector] field [{name}] in doc [{document}] has a different number of dimensions "
            f"[{8 * len(value)}] than defined in the mapping [{dims}]"
        )
    return np.array(value, np.int8).view(np.uint8)


def shown_vector(field: Mapping[str, Any]) -> dict[str, Any]:
    """A field's definition as mappings show it: with the defaults that Elasticsearch 8.19 always shows.

    It says whether it is indexed; of one that is, its similarity, and how where that is known: vectors of
    floats as `int8_hnsw` (`bbq_hnsw` from 384 dimensions on is the default of 9.1).
    """
    shown = {**field, "index": field.get("index", True)}
    options = field.get("index_options")
    if shown["index"]:
        shown.setdefault("similarity", similarity_of(field))
        if options is None and field.get("element_type", "float") == "float":
            options = {"type": "int8_hnsw"}
    if options is not None:
        shown["index_options"] = _shown_options(options)
    return shown


def _shown_options(options: Mapping[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    kind = str(options["type"])
    if kind.endswith("hnsw"):
        defaults = {"m": 16, "ef_construction": 100}
    if kind.startswith("int4"):
        defaults["confidence_interval"] = 0.0
    elif kind.startswith("bbq"):
        defaults["rescore_vector"] = {"oversample": _OVERSAMPLE}
    return {"type": kind, **defaults, **options}


def rescore_of(value: Any) -> float:
    """The `oversample` of a `rescore_vector`: 0, or at least 1. Errors: illegal_argument_exception."""
    given = value.get("oversample") if isinstance(value, dict) else None
    if not isinstance(given, int | float) or isinstance(given, bool) or set(value) != {"oversample"}:
        raise illegal_argument("[rescore_vector] must be an object with the number [oversample] alone")
    if given != 0 and not given >= 1:
        raise illegal_argument(f"[oversample] must be >= 1.0, or 0, but was [{given}]")
    return float(min(given, 1e9))


def oversample_of(options: Mapping[str, Any]) -> float:
    """How many times as many vectors as are wanted a field's mapping has scored anew; 0: it does not say.

    Mappings have always been able to say anything there, and stay readable: what is not a factor says
    nothing.
    """
    given = options.get("index_options")
    if not isinstance(given, Mapping):  # that of a text is a word
        return 0.0
    if "rescore_vector" in given:
        try:
            return rescore_of(given["rescore_vector"])
        except SearchError:
            return 0.0
    return _OVERSAMPLE if str(given.get("type", "")).startswith("bbq") else 0.0


def from_hex(text: str) -> list[int]:
    """Signed bytes, two hexadecimal digits each. Errors: illegal_argument_exception."""
    try:
        return [byte - 256 if byte > 127 else byte for byte in bytes.fromhex(text)]
    except ValueError:
        raise illegal_argument(
            f"Failed to decode [{text[:100]}]: a vector that is a text must be hexadecimal bytes"
        ) from None


def _numbers(value: list[float]) -> NDArray[np.float64]:
    try:
        return np.array(value, np.float64)
    except OverflowError:  # an integer of more than 1,024 bits
        return np.array([min(max(item, -1e308), 1e308) for item in value])


def _token(value: Any) -> str:
    return {dict: "START_OBJECT", str: "VALUE_STRING", bool: "VALUE_BOOLEAN"}.get(type(value), "VALUE_NUMBER")


def _check_elements(vector: NDArray[np.float32], element_type: str) -> None:
    if not np.isfinite(vector).all():
        raise illegal_argument(
            f"element_type [{element_type}] vectors do not support non-finite values. {_preview(vector)}"
        )
    if element_type == "byte" and ((vector % 1 != 0) | (vector < -128) | (vector > 127)).any():
        raise illegal_argument(
            f"element_type [byte] vectors only support integers between [-128, 127]. {_preview(vector)}"
        )


def _check_length(vector: NDArray[np.float32], similarity: str, element_type: str) -> None:
    squared = float(vector.astype(np.float64) @ vector.astype(np.float64))
    if similarity == "cosine" and squared == 0:
        raise illegal_argument(
            f"The [cosine] similarity does not support vectors with zero magnitude. {_preview(vector)}"
        )
    if similarity == "dot_product" and element_type == "float" and abs(squared - 1) > _UNIT_TOLERANCE:
        raise illegal_argument(
            f"The [dot_product] similarity can only be used with unit-length vectors. {_preview(vector)}"
        )


def _preview(vector: NDArray[np.float32]) -> str:
    dots = ", ..." if len(vector) > _PREVIEW else ""
    return f"Preview of invalid vector: [{', '.join(str(item) for item in vector[:_PREVIEW])}{dots}]"
