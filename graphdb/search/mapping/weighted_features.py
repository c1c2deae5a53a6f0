"""Features of a document and their weights: the types `sparse_vector` and `rank_features`.

A feature is a term of a text index. Its weight stands where the term's position would, as the nine bits that
Lucene's FeatureField keeps of a float. So segments and their merging need nothing of their own.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import TextTokens
from graphdb.search.leaf_reader import Doubles, Ints, Segment
from graphdb.search.mapping.readers import parse_number

__all__ = ["FEATURES_TYPES", "feature_tokens", "feature_weights", "features_of", "kept_weight"]

FEATURES_TYPES = frozenset({"sparse_vector", "rank_features"})
FEATURES_MAX = 65_536
"""In one document and field."""

_SHIFT = 15  # bits that are not kept
_LEAST = float(np.finfo(np.float32).tiny)


def features_of(value: Any, type_name: str, positive: bool) -> dict[str, float]:
    """What a document gives: weights by feature; of a feature that several objects have, the greatest.

    positive: whether a greater weight is better, else the inverse is kept.
    Errors: illegal_argument_exception.
    """
    found: dict[str, float] = {}
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            raise _unexpected(type_name, item)
        for name, weight in item.items():
            if "." in name or not name:
                raise illegal_argument(
                    f"[{type_name}] fields do not support dots in feature names but found [{name[:100]}]"
                )
            if weight is None:
                continue
            number = _number(weight, type_name)
            stored = kept_weight(number if positive else 1 / number, name)
            if name in found and type_name == "rank_features":
                raise illegal_argument(
                    f"[{type_name}] fields do not support indexing multiple values for the same rank feature "
                    f"[{name[:100]}] in the same document"
                )
            found[name] = max(stored, found.get(name, stored))
    if len(found) > FEATURES_MAX:
        raise illegal_argument(
            f"[{type_name}] fields take at most {FEATURES_MAX} features, got [{len(found)}]"
        )
    return found


def _number(value: Any, type_name: str) -> float:
    number = parse_number(value) if isinstance(value, str) else value
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise _unexpected(type_name, value)
    if not 0 < number < np.finfo(np.float32).max:
        raise illegal_argument(f"featureValue must be a positive normal float, got: [{str(value)[:100]}]")
    return float(number)


def _unexpected(type_name: str, value: Any) -> SearchError:
    return illegal_argument(
        f"[{type_name}] fields take hashes that map a feature to a strictly positive float, but got "
        f"unexpected value [{str(value)[:100]}]"
    )


def kept_weight(weight: float, name: str) -> float:
    """A weight as it is stored. Errors: illegal_argument_exception for one too small for a float."""
    if not weight >= _LEAST:
        raise illegal_argument(
            f"featureValue must be a positive normal float, got: {weight} for feature [{name[:100]}] which "
            f"is less than the minimum positive normal float: {_LEAST}"
        )
    return float(_weights(np.array([_code(weight)], np.int32))[0])


def _code(weight: float) -> int:
    return int(np.float32(weight).view(np.int32)) >> _SHIFT


def _weights(codes: NDArray[np.int32]) -> Doubles:
    return (codes.astype(np.int32) << _SHIFT).view(np.float32).astype(np.float64)


def feature_tokens(features: Mapping[str, float]) -> TextTokens:
    """The features of a document as the tokens of a text."""
    return TextTokens(list(features), [_code(weight) for weight in features.values()], len(features))


def feature_weights(segment: Segment, path: str, feature: str) -> tuple[Ints, Doubles]:
    """(documents, weights): those that have a feature; documents ascend."""
    index = segment.text(path)
    number = -1 if index is None else index.dictionary.find(feature)
    if index is None or number < 0:
        return np.empty(0, np.int32), np.empty(0)
    return index.postings(number)[0], _weights(index.positions(number)[1])
