"""What the values of fields are like: `boxplot`, `string_stats`, `matrix_stats`, `t_test`, `top_metrics`."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphdb.search.aggregations.aggregation import Aggregation, Answer, Definition, Rows, Scope
from graphdb.search.aggregations.approximate import Sorted
from graphdb.search.aggregations.metrics import grouped_sums
from graphdb.search.aggregations.options import Options, required
from graphdb.search.aggregations.value_sources import COMPARABLE, NUMERIC, Source, json_number
from graphdb.search.errors import illegal_argument, illegal_request, parsing
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Doubles, Longs
from graphdb.search.query import Query, parse_query

__all__ = [
    "BoxPlot",
    "MatrixStats",
    "StringStats",
    "TTest",
    "TopMetrics",
    "parse_boxplot",
    "parse_matrix_stats",
    "parse_string_stats",
    "parse_t_test",
    "parse_top_metrics",
]

# `boxplot`: quartiles, extremes, and whiskers that end at values within 1.5 of the quartiles' distance.

_BOX = ("min", "max", "q1", "q2", "q3", "lower", "upper")


@dataclass(frozen=True)
class BoxPlot(Aggregation):
    """Exact, as `percentiles`."""

    source: Source
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "boxplot"

    def _columns(self, scope: Scope, rows: Rows) -> Mapping[str, Doubles]:
        places, data = self.source.numbers(scope, rows.docs)
        found = Sorted.of(scope, data.astype(np.float64), rows.owners[places], rows.count)
        least, greatest = found.percentile(0.0), found.percentile(100.0)
        q1, q2, q3 = (found.percentile(percent) for percent in (25.0, 50.0, 75.0))
        lower, upper = least.copy(), greatest.copy()
        for owner in range(rows.count):
            values = found.values[found.starts[owner] : found.starts[owner + 1]]
            if len(values):
                reach = 1.5 * (q3[owner] - q1[owner])
                lower[owner] = values[np.searchsorted(values, q1[owner] - reach, side="left")]
                upper[owner] = values[np.searchsorted(values, q3[owner] + reach, side="right") - 1]
        least = np.where(np.isnan(least), np.inf, least)
        greatest = np.where(np.isnan(greatest), -np.inf, greatest)
        return dict(zip(_BOX, (least, greatest, q1, q2, q3, lower, upper), strict=True))

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        if path or metric not in _BOX:
            return super().measure(scope, rows, path, metric)
        return self._columns(scope, rows)[metric]

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        columns = {name: column.tolist() for name, column in self._columns(scope, rows).items()}
        return [
            self._answer({name: column[owner] for name, column in columns.items()})
            for owner in range(rows.count)
        ]

    def _answer(self, numbers: Mapping[str, float]) -> Answer:
        answer: Answer = {name: json_number(number) for name, number in numbers.items()}
        for name, number in numbers.items():
            text = self.source.text(number) if math.isfinite(number) else None
            if text is not None:
                answer[f"{name}_as_string"] = text
        return answer


def parse_boxplot(definition: Definition) -> Aggregation:
    options = definition.options
    options.ignore("compression", "execution_hint")
    source = Source.parse(definition, NUMERIC)
    options.done()
    return BoxPlot(definition.common, source)


# `string_stats`: lengths of strings, and how much information their characters have (Shannon).


@dataclass(frozen=True)
class StringStats(Aggregation):
    """Lengths are in UTF-16 code units, as Java's."""

    source: Source
    shows_distribution: bool
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "string_stats"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, numbers, terms = self.source.own_terms(scope, rows.docs)
        used, inverse = np.unique(numbers, return_inverse=True)
        texts = [str(terms.value(number)) for number in used.tolist()]
        counts = np.zeros((rows.count, len(texts)), np.int64)
        np.add.at(counts, (rows.owners[members], inverse), 1)
        own = [_Lengths.of(texts, of_owner) for of_owner in counts]
        return [
            _Lengths.joined(parts).answer(self.shows_distribution)
            for parts in zip(*scope.gathered("lengths", own), strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Lengths:
    count: int
    least: int
    greatest: int
    characters: Mapping[str, int]

    @staticmethod
    def of(texts: Sequence[str], counts: Longs) -> "_Lengths":
        """Of texts that occur so often."""
        characters: Counter[str] = Counter()
        lengths = []
        for place in np.flatnonzero(counts).tolist():
            units = texts[place].encode("utf-16-le", "surrogatepass")
            lengths.append(len(units) // 2)
            for character, times in Counter(texts[place]).items():
                characters[character] += times * int(counts[place])
        return _Lengths(int(counts.sum()), min(lengths, default=0), max(lengths, default=0), characters)

    @staticmethod
    def joined(parts: Sequence["_Lengths"]) -> "_Lengths":
        held = [part for part in parts if part.count]
        characters: Counter[str] = Counter()
        for part in held:
            characters.update(part.characters)
        return _Lengths(
            sum(part.count for part in held),
            min((part.least for part in held), default=0),
            max((part.greatest for part in held), default=0),
            characters,
        )

    def answer(self, shows_distribution: bool) -> Answer:
        if not self.count:
            none: Answer = {"count": 0, "min_length": None, "max_length": None, "avg_length": None}
            return {**none, "entropy": 0.0, **({"distribution": None} if shows_distribution else {})}
        total = sum(self.characters.values())
        units = sum(times * (1 + (ord(each) > 0xFFFF)) for each, times in self.characters.items())
        parts = {each: times / total for each, times in self.characters.items()}
        # the same sum in every order of the characters
        found: Answer = {
            "count": self.count,
            "min_length": self.least,
            "max_length": self.greatest,
            "avg_length": units / self.count,
            "entropy": math.fsum(-part * math.log2(part) for part in parts.values()) + 0.0,
        }
        if shows_distribution:
            found["distribution"] = dict(sorted(parts.items(), key=lambda each: (-each[1], each[0])))
        return found


def parse_string_stats(definition: Definition) -> Aggregation:
    options = definition.options
    shows = options.flag("show_distribution")
    source = Source.parse(definition, (Storage.TERMS,))
    options.done()
    return StringStats(definition.common, source, shows)


# `matrix_stats`: moments of several fields together.

_MODES: Mapping[str, Callable[[Doubles], Any]] = {
    "avg": np.mean,
    "min": np.min,
    "max": np.max,
    "sum": np.sum,
    "median": np.median,
}
_FIELDS_MAX = 100


@dataclass(frozen=True)
class MatrixStats(Aggregation):
    """Of the documents that have a value for every field; mode makes one of several."""

    sources: Mapping[str, Source]
    mode: str
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "matrix_stats"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        columns = [self._column(source, scope, rows) for source in self.sources.values()]
        known = ~np.logical_or.reduce([np.isnan(column) for column in columns], axis=0)
        owners, values = rows.owners[known], [column[known] for column in columns]
        counts = scope.total(np.bincount(owners, minlength=rows.count))

        def sums(of: Doubles) -> Doubles:
            return grouped_sums(scope, of, owners, rows.count)

        with np.errstate(invalid="ignore", divide="ignore"):
            means = [sums(column) / counts for column in values]
            apart = [column - mean[owners] for column, mean in zip(values, means, strict=True)]
            powers = [[sums(column**power) for power in (2, 3, 4)] for column in apart]
            products = [[sums(one * two) for two in apart] for one in apart]
        return [
            self._answer(int(counts[owner]), [mean[owner] for mean in means],
                         [[power[owner] for power in of] for of in powers],
                         [[product[owner] for product in of] for of in products])
            for owner in range(rows.count)
        ]  # fmt: skip

    def _column(self, source: Source, scope: Scope, rows: Rows) -> Doubles:
        places, data = source.numbers(scope, rows.docs)
        column = np.full(len(rows.docs), np.nan)
        firsts, starts = np.unique(places, return_index=True)
        if len(firsts) == len(places):
            column[places] = data
        else:
            parts = np.split(data.astype(np.float64), starts[1:])
            column[firsts] = [_MODES[self.mode](part) for part in parts]
        return column

    def _answer(
        self,
        count: int,
        means: Sequence[float],
        powers: Sequence[Sequence[float]],
        products: Sequence[Sequence[float]],
    ) -> Answer:
        if not count:
            return {"doc_count": 0}
        names, less = list(self.sources), max(count - 1, 1)
        fields = []
        for place, name in enumerate(names):
            second, third, fourth = powers[place]
            deviations = [math.sqrt(powers[other][0] * second) for other in range(len(names))]
            fields.append(
                {
                    "name": name,
                    "count": count,
                    "mean": float(means[place]),
                    "variance": float(second / less),
                    "skewness": _ratio(math.sqrt(count) * third, second**1.5),
                    "kurtosis": _ratio(count * fourth, second * second),
                    "covariance": {
                        other: float(products[place][number] / less) for number, other in enumerate(names)
                    },
                    "correlation": {
                        other: 1.0 if number == place else _ratio(products[place][number], deviations[number])
                        for number, other in enumerate(names)
                    },
                }
            )
        return {"doc_count": count, "fields": fields}


def _ratio(part: float, whole: float) -> float | str:
    return json_number(float(part / whole)) if whole else "NaN"


def parse_matrix_stats(definition: Definition) -> Aggregation:
    options = definition.options
    names, missing = options.items("fields"), options.take("missing", {})
    if options.take("script", None) is not None:
        raise parsing(f"Unexpected token START_OBJECT [script] in [{definition.name}].", line=1, col=1)
    mode = (options.text("mode", "avg") or "avg").lower()
    options.done()
    if not names or len(names) > _FIELDS_MAX or not all(isinstance(name, str) for name in names):
        raise illegal_request(f"[fields] must be a list of at most {_FIELDS_MAX} fields")
    if mode not in _MODES or not isinstance(missing, Mapping):
        raise illegal_argument(f"Illegal sort mode or [missing] in [{definition.name}]: [{mode[:100]}]")
    sources = {}
    for name in _as_hashed(dict.fromkeys(names)):
        given = {"field": name, **({"missing": missing[name]} if name in missing else {})}
        sources[name] = Source.parse(definition.with_options(Options("matrix_stats", given)), NUMERIC)
    return MatrixStats(definition.common, sources, mode)


def _as_hashed(names: Iterable[str]) -> list[str]:
    """In the order of a hash table of Java, which Elasticsearch answers in: clients count on a field's place.

    Source: the documentation of `String.hashCode` and `HashMap` (load factor 0.75, high bits folded in).
    """
    names = list(names)
    size = 16
    while len(names) > size * 0.75:
        size *= 2

    def place(name: str) -> int:
        units = name.encode("utf-16-be", "surrogatepass")
        code = 0
        for high, low in zip(units[::2], units[1::2], strict=True):
            code = (31 * code + 256 * high + low) & 0xFFFF_FFFF
        return (code ^ code >> 16) % size

    return sorted(names, key=place)


# `t_test`: how likely two means differ that much by chance.

_TERMS_MAX = 10_000  # of a continued fraction; it takes about the square root of the greater parameter


@dataclass(frozen=True, slots=True)
class _Sample:
    source: Source
    query: Query | None


@dataclass(frozen=True)
class TTest(Aggregation):
    """The two-tailed p-value of Student's test, or of Welch's where the variances are not the same."""

    first: _Sample
    second: _Sample
    kind: str
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "t_test"

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        if path or metric not in ("", "value"):
            return super().measure(scope, rows, path, metric)
        if self.kind == "paired":
            both = [self._values(sample, scope, rows) for sample in (self.first, self.second)]
            by_row = [np.full(len(rows.docs), np.nan) for _ in both]
            for column, (places, data) in zip(by_row, both, strict=True):
                column[places] = data
            known = ~np.isnan(by_row[0] - by_row[1])
            moments = self._moments(scope, rows.owners[known], (by_row[0] - by_row[1])[known], rows.count)
            return np.array([_paired(*each) for each in zip(*moments, strict=True)])
        found = []
        for sample in (self.first, self.second):
            places, data = self._values(sample, scope, rows)
            found += self._moments(scope, rows.owners[places], data, rows.count)
        test = _same_variance if self.kind == "homoscedastic" else _welch
        return np.array([test(*each) for each in zip(*found, strict=True)])

    def _values(self, sample: _Sample, scope: Scope, rows: Rows) -> tuple[Longs, Doubles]:
        places, data = sample.source.numbers(scope, rows.docs)
        if sample.query is not None:
            kept = scope.matching(sample.query)[rows.docs[places]]
            places, data = places[kept], data[kept]
        return places, data.astype(np.float64)

    @staticmethod
    def _moments(scope: Scope, owners: Longs, data: Doubles, count: int) -> list[Doubles]:
        """[counts, means, sample variances] by bucket."""
        counts = scope.total(np.bincount(owners, minlength=count)).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = grouped_sums(scope, data, owners, count) / counts
            squares = grouped_sums(scope, (data - means[owners]) ** 2, owners, count)
            return [counts, means, squares / (counts - 1)]

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        found = self.measure(scope, rows, (), "").tolist()
        return [{"value": None if number != number else number} for number in found]


def _paired(count: float, mean: float, variance: float) -> float:
    return math.nan if count < 2 else _p_value(mean, variance / count, count - 1)


def _same_variance(n1: float, m1: float, v1: float, n2: float, m2: float, v2: float) -> float:
    if n1 < 2 or n2 < 2:
        return math.nan
    freedom = n1 + n2 - 2
    pooled = ((n1 - 1) * v1 + (n2 - 1) * v2) / freedom
    return _p_value(m1 - m2, pooled * (1 / n1 + 1 / n2), freedom)


def _welch(n1: float, m1: float, v1: float, n2: float, m2: float, v2: float) -> float:
    if n1 < 2 or n2 < 2:
        return math.nan
    one, two = v1 / n1, v2 / n2
    if one + two == 0:
        return _p_value(m1 - m2, 0.0, n1 + n2 - 2)
    freedom = (one + two) ** 2 / (one**2 / (n1 - 1) + two**2 / (n2 - 1))
    return _p_value(m1 - m2, one + two, freedom)


def _p_value(difference: float, variance: float, freedom: float) -> float:
    """2 P(T > |t|) of Student's distribution, where t is the difference over its standard error."""
    if variance == 0:
        return math.nan if difference == 0 else 0.0
    t_squared = difference * difference / variance
    return _incomplete_beta(freedom / (freedom + t_squared), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularized, by its continued fraction (DLMF 8.17.22), evaluated as Lentz does."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    scale = math.exp(
        a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    )
    # Lentz: the fraction is the product of c[n] * d[n]; tiny stands for a divisor of 0
    tiny = 1e-300
    found, c, d = tiny, tiny, 0.0
    for number in range(_TERMS_MAX):
        m = number // 2
        if number == 0:
            part = 1.0
        elif number % 2:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + part * d) or tiny)
        c = (1 + part / c) or tiny
        found *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return scale * found / a


def parse_t_test(definition: Definition) -> Aggregation:
    options = definition.options
    kind = (options.text("type", "heteroscedastic") or "").lower()
    samples = []
    for name in ("a", "b"):
        inner = Options(name, required(options.take(name), name))
        given = inner.take("filter")
        query = None if given is None else parse_query(given, definition.context)
        source = Source.parse(definition.with_options(inner), NUMERIC)
        inner.done()
        samples.append(_Sample(source, query))
    options.ignore("format", "value_type")
    options.done()
    if kind not in ("paired", "homoscedastic", "heteroscedastic"):
        raise illegal_argument(f"Unknown t-test type [{kind[:100]}]")
    if kind == "paired" and any(sample.query is not None for sample in samples):
        raise illegal_argument(f"Paired t-test doesn't support filters: [{definition.name}]")
    return TTest(definition.common, samples[0], samples[1], kind)


# `top_metrics`: values of fields in the documents that come first by another.

_TOP_MAX = 10  # index.top_metrics_max_size


@dataclass(frozen=True)
class TopMetrics(Aggregation):
    """by None: by score. Documents without a value to sort by are left out, and ties go to the first one."""

    metrics: Mapping[str, Source]
    by: Source | None
    descending: bool
    size: int
    leaf_only: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        return "top_metrics"

    def _best(self, scope: Scope, rows: Rows) -> list[list[tuple[Any, list[Any]]]]:
        """For each bucket the best (sort value, values of the metrics), as they are stored."""
        places, values = self._sort_values(scope, rows)
        signed = -values if self.descending else values
        order = np.lexsort((rows.docs[places], signed, rows.owners[places]))
        owners = rows.owners[places][order]
        ranks = np.arange(len(owners)) - np.searchsorted(owners, owners)
        kept = order[ranks < self.size]
        chosen = np.sort(places[kept])
        columns = [self._metric(source, scope, rows.docs[chosen]) for source in self.metrics.values()]
        found: list[list[tuple[Any, list[Any]]]] = [[] for _ in range(rows.count)]
        for place in kept.tolist():
            at = int(np.searchsorted(chosen, places[place]))
            own = [column[at] for column in columns]
            found[int(rows.owners[places[place]])].append((values[place].item(), own))
        if scope.searcher.peers is None:
            return found
        merged = zip(*scope.gathered("top metrics", found), strict=True)
        sign = -1 if self.descending else 1
        return [
            sorted((each for part in parts for each in part), key=lambda each: sign * each[0])[: self.size]
            for parts in merged
        ]

    def _sort_values(self, scope: Scope, rows: Rows) -> tuple[Longs, Any]:
        if self.by is None:
            scores = np.zeros(len(rows.docs)) if scope.scores is None else scope.scores[rows.docs]
            return np.arange(len(rows.docs)), scores.astype(np.float64)
        places, data = self.by.numbers(scope, rows.docs)
        # of several values the least, or the greatest
        firsts, starts = np.unique(places, return_index=True)
        ends = np.append(starts[1:], len(places))[: len(starts)] - 1
        return firsts, data[ends if self.descending else starts]

    @staticmethod
    def _metric(source: Source, scope: Scope, docs: Longs) -> list[Any]:
        found: list[Any] = [None] * len(docs)
        if source.textual:
            places, numbers, terms = source.own_terms(scope, docs)
            values = [terms.value(number) for number in numbers.tolist()]
        else:
            places, data = source.numbers(scope, docs)
            values = data.tolist()
        for place, value in zip(reversed(places.tolist()), reversed(values), strict=True):
            found[place] = value
        return found

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        names = list(self.metrics)
        if not path and metric == "" and len(names) == 1:
            metric = names[0]
        if path or metric not in names or self.size > 1 or self.metrics[metric].textual:
            return super().measure(scope, rows, path, metric)
        place = names.index(metric)
        best = [of[0][1][place] if of else None for of in self._best(scope, rows)]
        return np.array([math.nan if value is None else float(value) for value in best])

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        return [{"top": [self._shown(*each) for each in best]} for best in self._best(scope, rows)]

    def _shown(self, by: Any, values: Sequence[Any]) -> Answer:
        shown = by if self.by is None else self.by.shown(by)
        metrics = zip(self.metrics.items(), values, strict=True)
        return {
            "sort": [shown],
            "metrics": {
                name: None if value is None else source.shown(value) for (name, source), value in metrics
            },
        }


def parse_top_metrics(definition: Definition) -> Aggregation:
    """Errors: SearchError; illegal_argument_exception for an order that is not by a field or `_score`."""
    options = definition.options
    size = options.integer("size", 1)
    if not 1 <= size <= _TOP_MAX:
        raise illegal_argument(
            f"[top_metrics.size] must not be more than [{_TOP_MAX}] but was [{size}]. This limit can be set "
            "by changing the [index.top_metrics_max_size] index level setting."
            if size > _TOP_MAX
            else "[size] must be more than 0 but was [0]"
        )
    metrics = {}
    for entry in options.items("metrics"):
        inner = Options("metrics", entry)
        name = str(required(inner.text("field"), "field"))
        missing = inner.take("missing")
        inner.done()
        given = {"field": name, **({} if missing is None else {"missing": missing})}
        metrics[name] = Source.parse(
            definition.with_options(Options("metrics", given)), COMPARABLE, takes_script=False
        )
    sorts = options.items("sort")
    options.done()
    if not metrics:
        raise illegal_request("Required one of fields [metrics], but none were specified. ")
    if len(sorts) != 1:
        raise illegal_request("[sort] must contain exactly one sort")
    name, down = _sort(sorts[0])
    if name == "_score":
        return TopMetrics(definition.common, metrics, None, down, size)
    if name.startswith("_"):
        raise illegal_argument(f"[top_metrics] can sort by a field or by [_score], and not by [{name[:100]}]")
    by = Source.parse(definition.with_options(Options("sort", {"field": name})), NUMERIC)
    return TopMetrics(definition.common, metrics, by, down, size)


def _sort(given: Any) -> tuple[str, bool]:
    """(what to sort by, whether the greatest comes first)"""
    if isinstance(given, str):
        return given, given == "_score"
    if not isinstance(given, Mapping) or len(given) != 1:
        raise parsing("[top_metrics] malformed [sort]: an object with one member is expected")
    ((name, how),) = given.items()
    default = "desc" if name == "_score" else "asc"
    order = str(how.get("order", default) if isinstance(how, Mapping) else how).lower()
    if order not in ("asc", "desc"):
        raise parsing(f"Unknown order direction [{order[:100]}]")
    return name, order == "desc"
