"""What the parameters of a request to `/sparql` ask for, strictly read."""

import re
from dataclasses import dataclass

from graphdb.errors import InvalidParameter
from graphdb.geo.entailment import Entailment
from graphdb.node import Consistency
from graphdb.sparql.dataset import Dataset
from serve.graph.consistency import read_consistency
from serve.parameters import Parameters, read_dataset, read_flag

__all__ = ["QueryParameters", "read_min_index", "read_query_parameters", "read_timeout"]

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(s|ms)?", re.ASCII)
_PER_SECOND = {None: 1, "s": 1, "ms": 1000}
_INDEX = re.compile(r"\d{1,18}", re.ASCII)  # a log index is less than 2^63


@dataclass(frozen=True, slots=True)
class QueryParameters:
    """All that counts in a query string or form, but for the meaning of the query."""

    query: str | None
    dataset: Dataset
    formats: tuple[str, ...]  # names or media types, the preferred one first
    timeout_s: float | None
    min_index: int  # 0 where none is asked for
    consistency: Consistency | None
    explain: bool  # what the service does with the query is asked for, not its answer
    entailment: Entailment

    def required_query(self) -> str:
        """The query. Raises InvalidParameter where there is none."""
        if self.query is None:
            raise InvalidParameter("query", "is missing")
        return self.query


def read_query_parameters(*encoded: bytes) -> QueryParameters:
    """Read a query string, or a query string and a form. Raises InvalidParameter, LimitExceeded."""
    parameters = Parameters(*encoded)
    if "update" in parameters:
        raise InvalidParameter("update", "this path answers queries; POST updates to /update")
    return QueryParameters(
        parameters.one("query"),
        read_dataset(parameters, "default-graph-uri", "named-graph-uri"),
        tuple(parameters.many("format")),
        read_timeout(parameters),
        read_min_index(parameters),
        read_consistency(parameters),
        read_flag(parameters, "explain") is True,
        _read_entailment(parameters),
    )


def read_min_index(parameters: Parameters) -> int:
    """The log index that the answer has to be at or after; 0 where none is given. Raises InvalidParameter."""
    text = parameters.one("min_index")
    if text is None:
        return 0
    if not _INDEX.fullmatch(text):
        raise InvalidParameter("min_index", f"{text!r} is not a log index: 0, 1, 2 and so on")
    return int(text)


def read_timeout(parameters: Parameters) -> float | None:
    """The client's time limit in seconds; it may say 2.5, 2.5s or 2500ms. Raises InvalidParameter."""
    text = parameters.one("timeout")
    if text is None:
        return None
    found = _DURATION.fullmatch(text)
    timeout_s = float(found[1]) / _PER_SECOND[found[2]] if found else 0.0
    if timeout_s == 0:
        raise InvalidParameter(
            "timeout", f"{text[:100]!r} is not a time over 0, in seconds or with a unit: 2.5, 2.5s or 2500ms"
        )
    return timeout_s


def _read_entailment(parameters: Parameters) -> Entailment:
    """Raises InvalidParameter."""
    text = parameters.one("entailment")
    if text is None:
        return Entailment.GEOSPARQL
    try:
        return Entailment(text)
    except ValueError:
        known = ", ".join(each.value for each in Entailment)
        raise InvalidParameter("entailment", f"{text!r} is none of {known}") from None
