"""`include` and `exclude` of terms: a regular expression, a list of values, or one part of several."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from graphdb.search.aggregations.sources import Source
from graphdb.search.aggregations.vocabulary import Vocabulary
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.mapping.values import term_of
from graphdb.search.query.regexp import Regexp
from graphdb.search.segment import Bools

__all__ = ["Choice"]

VALUES_MAX = 65_536

Test = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which terms may become buckets: those that pass every test."""

    tests: tuple[Test, ...] = ()

    @staticmethod
    def parse(name: str, source: Source, include: Any, exclude: Any) -> "Choice":
        tests: list[Test] = []
        if isinstance(include, dict):
            tests.append(_partition(include))
        elif include is not None:
            tests.append(_test(name, source, include))
        if exclude is not None:
            unwanted = _test(name, source, exclude)
            tests.append(lambda value: not unwanted(value))
        return Choice(tuple(tests))

    def mask(self, vocabulary: Vocabulary) -> Bools | None:
        """Which numbers of a vocabulary pass, None: all."""
        if not self.tests:
            return None
        values = (vocabulary.value(number) for number in range(len(vocabulary)))
        return np.fromiter((all(test(value) for test in self.tests) for value in values), np.bool_)


def _test(name: str, source: Source, wanted: Any) -> Test:
    if isinstance(wanted, list):
        if len(wanted) > VALUES_MAX:
            raise illegal_request(f"[include] and [exclude] take at most [{VALUES_MAX}] values")
        spec = source.spec
        values = {value if spec is None else term_of(spec, value) for value in wanted}
        return values.__contains__
    if source.spec is not None and (not source.textual or source.spec.type == "ip"):
        raise illegal_argument(
            f"Aggregation [{name}] cannot support regular expression style include/exclude settings as they "
            "can only be applied to string fields. Use an array of numeric values for include/exclude "
            "clauses used to filter numeric fields"
        )
    return Regexp(str(wanted)).matches


def _partition(include: dict[str, Any]) -> Test:
    number, count = include.get("partition"), include.get("num_partitions")
    if (
        not isinstance(number, int)
        or not isinstance(count, int)
        or set(include) - {"partition", "num_partitions"}
    ):
        raise illegal_request("Missing [partition] or [num_partitions] parameter for partition-based include")
    if not 0 <= number < count:
        raise illegal_request(f"partition must be in [0, num_partitions) but was [{number}] of [{count}]")
    return lambda value: crc32(str(value).encode("utf-8", "surrogatepass")) % count == number
