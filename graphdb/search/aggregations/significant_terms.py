"""`significant_terms` and `significant_text`: terms more frequent in a bucket than in the background.

Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, 13.5 (mutual information, chi
square); Cilibrasi and Vitányi, The Google Similarity Distance; Elasticsearch's documentation for JLH.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from graphdb.search.aggregations.aggregation import (
    Aggregation,
    Answer,
    Definition,
    Rows,
    Scope,
    bucket_lists,
    cells_of,
)
from graphdb.search.aggregations.columns import spread
from graphdb.search.aggregations.options import Options, required
from graphdb.search.aggregations.source_texts import SourceTexts
from graphdb.search.aggregations.terms_aggregation import Choice
from graphdb.search.aggregations.value_sources import COMPARABLE, Display, Source, Vocabulary
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Bools, Doubles, Longs
from graphdb.search.query import Query, parse_query
from graphdb.search.scripts.faults import class_cast
from graphdb.search.scripts.script import Purpose, parse_script
from graphdb.search.scripts.values import Budget

__all__ = ["Heuristic", "SignificantTerms", "parse_significant_terms"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one term: the documents of the bucket that hold it, and all of them; the same of the background."""

    inside: Doubles
    inside_all: Doubles
    background: Doubles
    background_all: float


@dataclass(frozen=True, slots=True)
class _Table:
    """Documents with the term or without it, in the bucket's class or not: n11 has the term and is in it."""

    n11: Doubles
    n10: Doubles
    n01: Doubles
    n00: Doubles

    @staticmethod
    def of(counts: Counts, is_superset: bool) -> "_Table":
        n11, n01 = counts.inside, counts.inside_all - counts.inside
        n10, n00 = counts.background, counts.background_all - counts.background
        return _Table(n11, n10 - n11, n01, n00 - n01) if is_superset else _Table(n11, n10, n01, n00)

    @property
    def lacks(self) -> Bools:
        """Where the term is rarer in the class than outside."""
        inside, outside = self.n11 + self.n01, self.n10 + self.n00
        return np.asarray(self.n11 / inside < self.n10 / outside)


# A number for each term; of those of 0 and less there are no buckets.
Heuristic = Callable[[Counts], Doubles]


def _jlh(counts: Counts) -> Doubles:
    inside = counts.inside / counts.inside_all
    # a term that the background lacks counts as found once there
    outside = np.maximum(counts.background, 1) / max(counts.background_all, 1)
    return np.where(inside > outside, (inside - outside) * (inside / outside), 0.0)


def _percentage(counts: Counts) -> Doubles:
    return np.where(counts.background > 0, counts.inside / np.maximum(counts.background, 1), 0.0)


def _chi_square(negatives: bool, is_superset: bool) -> Heuristic:
    def score(counts: Counts) -> Doubles:
        table = _Table.of(counts, is_superset)
        n11, n10, n01, n00 = table.n11, table.n10, table.n01, table.n00
        total = n11 + n10 + n01 + n00
        margins = (n11 + n01) * (n11 + n10) * (n01 + n00) * (n10 + n00)
        found = total * (n11 * n00 - n01 * n10) ** 2 / margins
        return found if negatives else np.where(table.lacks, -np.inf, found)

    return score


def _mutual_information(negatives: bool, is_superset: bool) -> Heuristic:
    def score(counts: Counts) -> Doubles:
        table = _Table.of(counts, is_superset)
        total = table.n11 + table.n10 + table.n01 + table.n00
        found = np.zeros(len(total))
        for cell, other_class, other_term in (
            (table.n00, table.n01, table.n10),
            (table.n01, table.n00, table.n11),
            (table.n10, table.n11, table.n00),
            (table.n11, table.n10, table.n01),
        ):
            ratio = total * cell / ((cell + other_class) * (cell + other_term))
            found += np.where(cell > 0, cell / total * np.log2(ratio), 0.0)
        return found if negatives else np.where(table.lacks, -np.inf, found)

    return score


def _google_distance(is_superset: bool) -> Heuristic:
    def score(counts: Counts) -> Doubles:
        both, inside = counts.inside, counts.inside_all
        term = counts.background if is_superset else counts.background + counts.inside
        total = counts.background_all if is_superset else counts.background_all + inside
        logs = np.log(term), np.log(inside)
        distance = (np.maximum(*logs) - np.log(both)) / (np.log(total) - np.minimum(*logs))
        exact = (term == both) & (inside == both)
        return np.where(both == 0, 0.0, np.where(exact, 1.0, np.exp(-distance)))

    return score


_SCRIPTED = Purpose("script_heuristic", frozenset({"params"}))


def _scripted(inner: Options) -> Heuristic:
    """What a script makes of the counts, which it has as params."""
    script = parse_script(inner.take("script"), _SCRIPTED)

    def one(*counts: float) -> float:
        checkpoint()
        names = ("_subset_freq", "_subset_size", "_superset_freq", "_superset_size")
        numbers = {name: int(count) for name, count in zip(names, counts, strict=True)}
        found = replace(script, params={**script.params, **numbers}).run({}, Budget())
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise script.error(class_cast("Cannot cast from [def] to [double]."))
        return float(found)

    def score(counts: Counts) -> Doubles:
        columns = counts.inside, counts.inside_all, counts.background
        return np.array([one(*row, counts.background_all) for row in zip(*columns, strict=True)], np.float64)

    return score


def _heuristic(options: Options) -> Heuristic:
    """Errors: SearchError for two of them, and for one that is not known."""
    named = [name for name in (*_HEURISTICS, "p_value") if name in options]
    if len(named) > 1:
        raise illegal_request("Only one significance heuristic may be given")
    if not named:
        return _jlh
    (name,) = named
    if name not in _HEURISTICS:
        known = ", ".join(_HEURISTICS)
        raise illegal_argument(f"[{name}] is not supported: use one of [{known}]")
    inner = Options(name, options.take(name, {}))
    made = _HEURISTICS[name](inner)
    inner.done()
    return made


def _superset(inner: Options) -> bool:
    return inner.flag("background_is_superset", True)


_HEURISTICS: dict[str, Callable[[Options], Heuristic]] = {
    "jlh": lambda _: _jlh,
    "percentage": lambda _: _percentage,
    "chi_square": lambda inner: _chi_square(inner.flag("include_negatives"), _superset(inner)),
    "mutual_information": lambda inner: _mutual_information(
        inner.flag("include_negatives"), _superset(inner)
    ),
    "gnd": lambda inner: _google_distance(_superset(inner)),
    "script_heuristic": _scripted,
}


@dataclass(frozen=True)
class SignificantTerms(Aggregation):
    """Counts are exact. background None: all documents that the request's names show. texts: what the terms
    of a bucket's documents are read from; None: from the index.
    """

    source: Source
    size: int
    min_doc_count: int
    heuristic: Heuristic
    choice: Choice
    background: Query | None
    texts: SourceTexts | None = None

    @property
    def typed(self) -> str:
        if self.source.spec is None:
            return "umsigterms"
        return "siglterms" if self.source.spec.storage is Storage.INTS else "sigsterms"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        around = scope.shown()
        if self.background is not None:
            around = around[scope.matching(self.background)[around]]
        docs = np.union1d(around, rows.docs)
        members, numbers, vocabulary = self.source.keyed(scope, docs)
        members, numbers = self.choice.kept(members, numbers, vocabulary)
        starts = np.searchsorted(members, np.arange(len(docs) + 1))
        cells = cells_of(scope, rows, *self._own(scope, rows, docs, starts, numbers, vocabulary))
        behind = Rows(around, np.zeros(len(around), np.int64), 1)
        own, at = spread(starts, np.searchsorted(docs, around))
        found = cells_of(scope, behind, own, numbers[at])
        frequency = np.zeros(len(vocabulary), np.int64)
        frequency[found.keys] = found.counts
        whole = int(scope.total(behind.sizes(scope.columns.doc_counts))[0])
        sizes = scope.total(rows.sizes(scope.columns.doc_counts))
        scores = self._scores(cells.counts, sizes[cells.owners], frequency[cells.keys], whole)
        chosen = np.flatnonzero((scores > 0) & (cells.counts >= self.min_doc_count))
        cells, scores = cells.picked(chosen), scores[chosen]
        order = np.lexsort((cells.keys, -scores, cells.owners))
        cells, scores = cells.picked(order), scores[order]
        shown = np.flatnonzero(cells.ranks() < self.size)
        cells, scores = cells.picked(shown), scores[shown]
        scope.count_buckets(len(cells))
        head = lambda number: self.source.head(vocabulary.value(number))  # noqa: E731 handed on
        lists = bucket_lists(scope, self.common, cells, rows.count, head)
        places = iter(zip(scores.tolist(), frequency[cells.keys].tolist(), strict=True))
        for bucket in (bucket for buckets in lists for bucket in buckets):
            bucket["score"], bucket["bg_count"] = next(places)
        return [
            {"doc_count": size, "bg_count": whole, "buckets": buckets}
            for size, buckets in zip(sizes.tolist(), lists, strict=True)
        ]

    def _own(
        self, scope: Scope, rows: Rows, docs: Longs, starts: Longs, numbers: Longs, vocabulary: Vocabulary
    ) -> tuple[Longs, Longs]:
        """(places in rows, numbers of their terms). starts: where those of each of docs are in numbers."""
        if self.texts is None:
            own, at = spread(starts, np.searchsorted(docs, rows.docs))
            return own, numbers[at]
        passing = np.unique(numbers).tolist()
        return self.texts.found(scope, rows, {str(vocabulary.value(number)): number for number in passing})

    def _scores(self, inside: Longs, inside_all: Longs, background: Longs, whole: int) -> Doubles:
        counts = Counts(
            inside.astype(np.float64), inside_all.astype(np.float64), background.astype(np.float64), whole
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(self.heuristic(counts), nan=-math.inf)


def parse_significant_terms(definition: Definition) -> Aggregation:
    """significant_terms and significant_text. Errors: SearchError."""
    options, texts = definition.options, None
    if definition.kind == "significant_text":
        source, texts = _text_source(definition)
    else:
        source = Source.parse(definition, COMPARABLE, takes_script=False)
    if source.spec is not None and source.spec.storage is Storage.FLOATS:
        raise illegal_argument(f"No support for examining floating point numerics in [{definition.name}]")
    size, least = options.integer("size", 10), options.integer("min_doc_count", 3, 0)
    if size < 1:
        raise illegal_request(f"[size] must be greater than 0. Found [{size}] in [{definition.name}]")
    heuristic = _heuristic(options)
    choice = Choice.parse(definition.name, source, options.take("include"), options.take("exclude"))
    given = options.take("background_filter")
    background = None if given is None else parse_query(given, definition.context)
    options.ignore("shard_size", "shard_min_doc_count", "execution_hint")
    options.done()
    return SignificantTerms(definition.common, source, size, least, heuristic, choice, background, texts)


def _text_source(definition: Definition) -> tuple[Source, SourceTexts | None]:
    """The tokens of a text as its index has them: what analyzing its documents again would give. Those of a
    bucket's documents are read again where passages count once, or where they are those of other fields.
    """
    options = definition.options
    path = required(options.text("field"), "field")
    once, others = options.flag("filter_duplicate_text"), [str(one) for one in options.items("source_fields")]
    spec = definition.context.mapping.field(path)
    if spec is not None and spec.storage not in (Storage.TEXT, Storage.TERMS):
        raise SearchError(
            "illegal_argument_exception",
            f"Field [{path}] has no analyzer, but SignificantText requires an analyzed field",
        )
    known = None if spec is None else replace(spec, storage=Storage.TERMS)
    texts = None
    if spec is not None and (once or others):
        mapping = definition.context.mapping
        named = [(name, mapping.field(name)) for name in others] or [(path, spec)]
        paths = [one for name, field in named for one in ((name,) if field is None else field.value_paths)]
        texts = SourceTexts(spec, tuple(dict.fromkeys(paths)), once)
    return Source(known, Display.of(known, None, None)), texts
