"""The suggester `completion`: the inputs of a field of that type that begin with a prefix, best weight first.

The dictionary of the field's terms is read as the tree of their beginnings: a fuzzy prefix and a regular
expression go down only where something can still match.

Source: Elasticsearch's documentation of the completion suggester; Lucene's CompletionQuery for scores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.options import Options
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec
from graphdb.search.leaf_reader import Leaf, TermDictionary
from graphdb.search.mapping.completions import (
    Completion,
    ContextMapping,
    cell_of,
    completion_of,
    keys_of,
    mappings_of,
    neighbours_of,
    precision_of,
)
from graphdb.search.mapping.readers import point_of, text_of
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.query.dictionary_queries import edits_of, prefix_range
from graphdb.search.query.regexp import Regexp
from graphdb.search.results.suggestion import Show, checked_size, suggested_field

__all__ = ["parse_completion"]

_PREFIX_MAX = 1_000  # characters of a prefix, or of an expression
_CONTEXTS_MAX = 100  # of one request, for one of the field's contexts
_CHECKED = 1_024  # steps between two looks at the deadline


@dataclass(frozen=True, slots=True)
class _Fuzzy:
    """How a prefix may differ. edits 0: not at all."""

    edits: int = 0
    transpositions: bool = True
    fixed: int = 1  # characters that are as they are


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One context of a request: a value or, for beginnings of values, its beginning."""

    name: str
    value: str
    boost: float
    is_prefix: bool

    def fits(self, contexts: Mapping[str, Sequence[str]]) -> bool:
        values = contexts.get(self.name, ())
        return any(map(self._is_of, values)) if self.is_prefix else self.value in values

    def _is_of(self, value: str) -> bool:
        return value.startswith(self.value)


class _Range(NamedTuple):
    """Terms of a dictionary. likeness: 0 for those of the exact prefix."""

    start: int
    stop: int
    likeness: int


class _Row(NamedTuple):
    """One suggested document, in the order of suggestions."""

    worth: float  # less the score
    text: str
    doc: int
    contexts: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class CompletionSuggestion:
    """contexts None: the field has none. keys: of the prefix; None where it is an expression."""

    name: str
    given: str
    path: str
    size: int
    skip_duplicates: bool
    keys: tuple[str, ...] | None
    fuzzy: _Fuzzy
    contexts: tuple[_Wanted, ...] | None
    kind: str = "completion"

    def entries(self, scope: Scope, show: Show) -> list[dict[str, Any]]:
        rows = self._best([row for leaf in self._leaves(scope.searcher) for row in self._of_leaf(leaf)])
        own = [(row, show(row.doc, -row.worth)) for row in rows]
        every = scope.gathered("completion", own)
        pairs = [
            (row._replace(doc=place), hit)  # shards in turn, as one searcher counts their documents
            for place, (row, hit) in enumerate(pair for of_shard in every for pair in of_shard)
        ]
        shown = {row.doc: hit for row, hit in pairs}
        options = [self._option(row, shown[row.doc]) for row in self._best([row for row, _ in pairs])]
        return [{"text": self.given, "offset": 0, "length": len(self.given), "options": options}]

    def _leaves(self, searcher: Searcher) -> Iterator[Leaf]:
        """Of the indexes where the field is one of completions: in another one it may be a keyword."""
        for leaf in searcher.leaves:
            spec = searcher.part(leaf)[2].mapping.field(self.path)
            if spec is not None and spec.type == "completion":
                yield leaf

    def _option(self, row: _Row, hit: dict[str, Any]) -> dict[str, Any]:
        contexts = {} if self.contexts is None else {"contexts": row.contexts}
        return {"text": row.text, **hit, **contexts}

    def _best(self, rows: list[_Row]) -> list[_Row]:
        """The first of each document, and of each text if duplicates are skipped."""
        docs: set[int] = set()
        texts: set[str] = set()
        best: list[_Row] = []
        for row in sorted(rows, key=lambda row: row[:3]):
            if row.doc in docs or (self.skip_duplicates and row.text in texts):
                continue
            docs.add(row.doc)
            texts.add(row.text)
            best.append(row)
            if len(best) == self.size:
                break
        return best

    def _of_leaf(self, leaf: Leaf) -> list[_Row]:
        index = leaf.segment.terms(self.path)
        if index is None:
            return []
        found: list[tuple[float, str, int, Completion]] = []
        for part in self._ranges(index.dictionary):
            for number, term in enumerate(index.dictionary.terms(part.start, part.stop), part.start):
                if number % _CHECKED == 0:
                    checkpoint()
                one = completion_of(term)
                score = self._score(one, part.likeness)
                if score is not None:
                    found.append((-score, one.text, number, one))
        found.sort(key=lambda row: row[:3])
        rows: list[_Row] = []
        docs: set[int] = set()
        texts: set[str] = set()
        # Equal terms are one group, as which of them comes first, their documents tell.
        for (worth, text), group in groupby(found, key=lambda row: row[:2]):
            if len(rows) >= self.size:
                break
            if self.skip_duplicates and text in texts:
                continue
            contexts = {
                doc: one.contexts
                for _, _, number, one in group
                for doc in index.postings(number).tolist()
                if doc not in docs and leaf.live[doc]
            }
            chosen = sorted(contexts)[: 1 if self.skip_duplicates else self.size]
            rows += [_Row(worth, text, leaf.base + doc, contexts[doc]) for doc in chosen]
            docs.update(chosen)
            texts.update([text] if chosen else [])
        return rows

    def _score(self, one: Completion, likeness: int) -> float | None:
        """None where it has none of the contexts."""
        boost = float(likeness)
        if self.contexts is not None:
            fitting = [wanted.boost for wanted in self.contexts if wanted.fits(one.contexts)]
            if not fitting:
                return None
            boost += max(fitting)
        if not boost:
            return float(one.weight)
        return one.weight * boost if one.weight else boost

    def _ranges(self, dictionary: TermDictionary) -> Iterator[_Range]:
        if self.keys is None:
            yield from _matching(dictionary, Regexp(self.given))
            return
        for key in self.keys:
            if self.fuzzy.edits:
                yield from _near(dictionary, key, self.fuzzy)
            else:
                yield _Range(*prefix_range(dictionary, key), 0)


# The dictionary as a tree.


def _children(
    dictionary: TermDictionary, start: int, stop: int, depth: int
) -> Iterator[tuple[str, int, int]]:
    """The next characters of the keys among terms that begin alike, and the terms of each."""
    while start < stop:
        term = dictionary.term(start)
        char = term[depth]
        if char == "\x00":  # the key ends here
            start = prefix_range(dictionary, term[: depth + 1])[1]
            continue
        after = prefix_range(dictionary, term[: depth + 1])[1]
        yield char, start, after
        start = after


def _matching(dictionary: TermDictionary, expression: Regexp) -> Iterator[_Range]:
    """The terms whose keys begin with what an expression matches."""
    waiting: list[tuple[int | None, int, int, int]] = [(None, 0, len(dictionary), 0)]
    steps = 0
    while waiting:
        state, start, stop, depth = waiting.pop()
        if expression.accepts(state):
            yield _Range(start, stop, 0)
            continue
        for char, first, after in _children(dictionary, start, stop, depth):
            steps += 1
            if steps % _CHECKED == 0:
                checkpoint()
            following = expression.after(state, char)
            if following is not None:
                waiting.append((following, first, after, depth + 1))


def _near(dictionary: TermDictionary, key: str, fuzzy: _Fuzzy) -> Iterator[_Range]:
    """The terms whose keys begin with what is so near to a key. Likeness: characters that are the same up to
    the first that differs, as Lucene counts.
    """
    fixed, rest = key[: fuzzy.fixed], key[fuzzy.fixed :]
    start, stop = prefix_range(dictionary, fixed)
    waiting = [(fixed, start, stop, list(range(len(rest) + 1)), [0])]
    steps = 0
    while waiting:
        begun, start, stop, row, before = waiting.pop()
        if row[-1] <= fuzzy.edits:
            yield _Range(start, stop, _alike(begun, key))
            continue
        for char, first, after in _children(dictionary, start, stop, len(begun)):
            steps += 1
            if steps % _CHECKED == 0:
                checkpoint()
            swapped = before if fuzzy.transpositions and len(begun) > len(fixed) else None
            following = _edited(row, swapped, rest, char, begun[-1:])
            if min(following) <= fuzzy.edits:
                waiting.append((begun + char, first, after, following, row))


def _edited(row: list[int], before: list[int] | None, rest: str, char: str, last: str) -> list[int]:
    """The next row of the table of edits, for one more character."""
    following = [row[0] + 1]
    for at, wanted in enumerate(rest, 1):
        best = min(row[at] + 1, following[at - 1] + 1, row[at - 1] + (wanted != char))
        if before is not None and at > 1 and wanted == last and rest[at - 2] == char:
            best = min(best, before[at - 2] + 1)
        following.append(best)
    return following


def _alike(begun: str, key: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(begun, key, strict=False)) if a != b), min(len(begun), len(key))
    )


# The request.


def parse_completion(
    name: str, prefix: str | None, regex: str | None, options: Options, context: QueryContext
) -> CompletionSuggestion:
    """Errors: SearchError."""
    spec = suggested_field(options.text("field"), context)
    if spec.type != "completion":
        raise illegal_argument(f"Field [{spec.path[:100]}] is not a completion suggest field")
    given = prefix if regex is None else regex
    if given is None or (prefix is not None and regex is not None):
        raise illegal_argument("'prefix/text' or 'regex' must be defined")
    if len(given) > _PREFIX_MAX:
        raise illegal_argument(f"A prefix has at most [{_PREFIX_MAX}] characters")
    size, skip = checked_size(options.integer("size", 5)), options.flag("skip_duplicates")
    fuzzy = _fuzzy(options.take("fuzzy"), given)
    _check_regex(options.take("regex"), regex)
    contexts = _contexts(options.take("contexts"), spec)
    analyzer = options.text("analyzer")
    options.ignore("shard_size")
    options.done()
    keys = None if regex is not None else _keys(given, spec, analyzer, context)
    return CompletionSuggestion(name, given, spec.path, size, skip, keys, fuzzy, contexts)


def _keys(text: str, spec: FieldSpec, analyzer: str | None, context: QueryContext) -> tuple[str, ...]:
    terms, positions = context.analyzers.analyzer(analyzer or spec.search_analyzer).tokens(text)
    separated, holes = spec.options["preserve_separators"], spec.options["preserve_position_increments"]
    found = tuple(keys_of(terms, positions, separated, holes))
    return found or (() if text else ("",))


def _check_regex(given: Any, regex: str | None) -> None:
    if given is None:
        return
    options = Options("regex", given)
    options.ignore("flags", "flags_value", "max_determinized_states")
    options.done()
    if regex is None:
        raise illegal_argument("[regex] options are for a [regex]")


def _fuzzy(given: Any, text: str) -> _Fuzzy:
    if given is None or given is False:
        return _Fuzzy()
    options = Options("fuzzy", {} if given is True else given)
    edits = edits_of(options.text("fuzziness", "AUTO") or "AUTO", text)
    transpositions = options.flag("transpositions", True)
    fixed, shortest = options.integer("prefix_length", 1, 0), options.integer("min_length", 3, 0)
    options.ignore("unicode_aware", "max_determinized_states")
    options.done()
    return _Fuzzy(edits if len(text) >= shortest else 0, transpositions, fixed)


def _contexts(given: Any, spec: FieldSpec) -> tuple[_Wanted, ...] | None:
    mappings = {one.name: one for one in mappings_of(spec.options)}
    if not mappings:
        if given:
            raise illegal_argument(f"no context mappings are defined for the field [{spec.path}]")
        return None
    if not given or not isinstance(given, dict):
        raise illegal_argument("Missing mandatory contexts in context query")
    wanted: list[_Wanted] = []
    for name, values in given.items():
        if name not in mappings:
            raise illegal_argument(f"Unknown context name [{name[:100]}], must be one of {sorted(mappings)}")
        items = values if isinstance(values, list) and not _is_point(values) else [values]
        if len(items) > _CONTEXTS_MAX:
            raise illegal_request(f"context [{name}] has more than [{_CONTEXTS_MAX}] values")
        read: Callable[[Any, ContextMapping], list[_Wanted]] = _place if mappings[name].is_geo else _category
        wanted += [one for item in items for one in read(item, mappings[name])]
    if not wanted:
        raise illegal_argument("Missing mandatory contexts in context query")
    return tuple(wanted)


def _is_point(values: list[Any]) -> bool:
    return bool(values) and all(type(value) in (int, float) for value in values)


def _category(item: Any, mapping: ContextMapping) -> list[_Wanted]:
    options = Options("contexts", item if isinstance(item, dict) else {"context": item})
    value, boost, is_prefix = options.take("context"), options.number("boost", 1.0), options.flag("prefix")
    options.done()
    if value is None or isinstance(value, dict | list):
        raise illegal_argument("no context provided")
    return [_Wanted(mapping.name, text_of(value), _boost(boost), is_prefix)]


def _boost(boost: float | None) -> float:
    if boost is None or not 0 < boost < 1e9:
        raise illegal_argument("boost must be greater than 0")
    return boost


def _place(item: Any, mapping: ContextMapping) -> list[_Wanted]:
    is_whole = isinstance(item, dict) and "context" in item
    options = Options("contexts", item if is_whole else {"context": item})
    latitude, longitude = point_of(options.take("context"), mapping.name)
    boost = _boost(options.number("boost", 1.0))
    precision = precision_of(options.take("precision", mapping.precision))
    around = [precision_of(one) for one in options.items("neighbours")[:_CONTEXTS_MAX]]
    options.done()
    cell = cell_of(latitude, longitude, min(precision, mapping.precision))
    cells = {cell}
    if not around and len(cell) == mapping.precision:
        cells.update(neighbours_of(cell))
    for level in around:
        if level <= len(cell):
            cells.update([cell[:level], *neighbours_of(cell[:level])])
    return [_Wanted(mapping.name, one, boost, len(one) < mapping.precision) for one in sorted(cells)]
