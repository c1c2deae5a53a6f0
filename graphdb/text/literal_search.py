"""From a search of the graph's literals to the table of its hits."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import orjson
from pyoxigraph import Literal, QueryResultsFormat, QuerySolutions, parse_query_results

from graphdb.errors import InvalidParameter, LimitExceeded
from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError
from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs
from graphdb.search.query import Query, QueryContext, Searcher, collect, parse_query
from graphdb.search.query.full_text import match_field
from graphdb.search.query.highlight import Highlighter
from graphdb.search.query.searcher import TermCodes
from graphdb.search.query.text_queries import MatchOptions
from graphdb.search.query.top_hits import every_hit, plain_terms
from graphdb.search.segments.shard_view import array_segment
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.printing import literal_of
from graphdb.sparql.search_requests import Highlight, LiteralSearch, Part
from graphdb.sparql.terms import Iri, RdfLiteral
from graphdb.store.search_tables import SearchReport, Table
from graphdb.store.word_searches import WORDS_MAX
from graphdb.text.literal_index import ALL, GRAPH, LANGUAGE, Fields, State

__all__ = [
    "LiteralSearcher",
    "PlannedSearch",
    "are_plain",
    "keys_of_quads",
    "leaves_of",
    "score_texts",
]

_WHAT: Final = "text:query"
_INDEX: Final = "literals of the graph"
_FLOAT: Final = "http://www.w3.org/2001/XMLSchema#float"
_SEARCHERS_MAX: Final = 16  # of one state
_COLLECTED_MAX: Final = 1_000  # hits that are kept in order while they are looked for
_POSTINGS_AT_ONCE: Final = 100_000  # of the terms of a search that takes half a millisecond

# Words that mean nothing but themselves in the syntax of queries.
_WORDS: Final = MatchOptions()
_WHOLE: Final = Dataset()
_PLAIN = re.compile(r"(?:(?!(?:AND|OR|NOT|TO)\b)[A-Za-z0-9_]+(?: +|$))+")

Graphs: TypeAlias = frozenset[str] | None  # names in N-Triples, "" for the default graph; None: any


@dataclass(frozen=True, slots=True)
class PlannedSearch:
    """A search of one state, ready to be done."""

    search: TextSearch
    query: Query | None  # None: no literal can match
    searcher: Searcher
    fields: Fields
    unites: bool  # triples that stand in several graphs are one

    @property
    def postings(self) -> int | None:
        """How many it looks at, those of words as they stand; None where that is not known beforehand."""
        if self.query is None:
            return 0
        terms = plain_terms(self.query)
        if terms is None:
            return None
        return sum(self.searcher.doc_freq(term.path, term.term) for term in terms)

    @property
    def is_short(self) -> bool:
        """Whether it looks at few postings, and finds few of them."""
        if self.query is not None and self.search.request.limit is None:
            return False
        postings = self.postings
        return postings is not None and postings <= _POSTINGS_AT_ONCE


class LiteralSearcher:
    """Searches states of one index. Any thread may use it."""

    def __init__(self, analyzers: Analyzers, predicates: Sequence[str], hits_max: int) -> None:
        """predicates are those that are indexed, or ALL; hits_max of one search, more are refused."""
        self._analyzers, self._hits_max = analyzers, hits_max
        self._predicates = None if ALL in predicates else frozenset(predicates)
        self._memory: dict[tuple[str, str], TermCodes] = {}
        # of the last state: what is worked out for one search holds for the next
        self._searchers: tuple[tuple[Leaf, ...], dict[tuple[Graphs, str | None], Searcher]] = ((), {})

    def planned(
        self, search: TextSearch, state: State, dataset: Dataset, *, union_default_graph: bool
    ) -> PlannedSearch:
        """A search of a state, in the graphs that a query with this dataset sees. Raises InvalidParameter."""
        request = search.request
        assert isinstance(request, LiteralSearch)
        graphs = _graphs_of(search, dataset, union_default_graph)
        self._check_indexed(request)
        searcher = self._searcher(state, graphs, request.language)
        unites = search.graph is None and (graphs is None or len(graphs) > 1)
        return PlannedSearch(search, self._query(request, state), searcher, state.fields, unites)

    def _searcher(self, state: State, graphs: Graphs, language: str | None) -> Searcher:
        leaves, searchers = self._searchers
        if leaves is not state.leaves or len(searchers) >= _SEARCHERS_MAX:
            searchers = {}
            self._searchers = state.leaves, searchers
        made = searchers.get((graphs, language))
        if made is None:
            found = tuple(_filtered(leaf, graphs, language) for leaf in state.leaves)
            made = Searcher(found, state.fields, self._analyzers, self._memory)  # type: ignore[arg-type]
            searchers[graphs, language] = made
        return made

    def _check_indexed(self, request: LiteralSearch) -> None:
        for iri in request.properties:
            if self._predicates is not None and iri not in self._predicates:
                raise InvalidParameter(_WHAT, f"<{iri}> is not indexed: it is not in text.predicates")

    def _query(self, request: LiteralSearch, state: State) -> Query | None:
        numbers = state.fields.numbers
        fields = [state.fields.of(iri) for iri in request.properties or numbers]
        found = [name for name in fields if name is not None]
        if not found:
            return None
        context = QueryContext(state.fields, self._analyzers)
        if len(found) == 1 and are_plain(request.text):  # the same, without looking for operators
            return match_field(found[0], request.text, _WORDS, context)
        clause = {"query_string": {"query": request.text, "fields": found}}
        try:
            return parse_query(clause, context)
        except SearchError as error:
            raise InvalidParameter(_WHAT, str(error)) from error

    def for_words(self, search: TextSearch, state: State) -> tuple[Searcher, str] | None:
        """The searcher and the field of a search for a few best hits in one graph, of any words; None for
        another search, or one that is refused or finds nothing.
        """
        request = search.request
        if not isinstance(request, LiteralSearch) or request.limit is None or search.fixed:
            return None
        graphs = _graphs_of(search, _WHOLE, union_default_graph=False)
        unites = search.graph is None and (graphs is None or len(graphs) > 1)
        if unites or not 0 < request.limit <= min(_COLLECTED_MAX, self._hits_max):
            return None
        wanted = request.properties or state.fields.numbers
        if self._predicates is not None and not self._predicates.issuperset(wanted):
            return None
        found = [name for name in map(state.fields.of, wanted) if name is not None]
        return (self._searcher(state, graphs, request.language), found[0]) if len(found) == 1 else None

    def table(self, planned: PlannedSearch, log_index: int) -> Table:
        """The hits, best first. Raises LimitExceeded, InvalidParameter."""
        search, request = planned.search, planned.search.request
        assert isinstance(request, LiteralSearch)
        docs, scores, total = self.hits(planned)
        found = list(zip(keys_of_quads(planned.searcher, docs), score_texts(scores), strict=True))
        cells = _Cells(planned, request, self._analyzers)
        rows = cells.rows(found, request.limit)
        names = tuple(variable.name for _, variable in search.columns)
        plan = "the patterns beside it are looked up for each hit"
        report = SearchReport(_INDEX, request.text, total, len(rows), log_index, plan)
        return Table(names, rows, report)

    def hits(self, planned: PlannedSearch, *, counts: bool = True) -> tuple[Longs, Floats, int]:
        """Documents of its searcher, best first, their scores, and how many there are without a limit, unless
        that need not be counted.

        Raises LimitExceeded, InvalidParameter.
        """
        query, searcher, limit = planned.query, planned.searcher, planned.search.request.limit
        if query is None or limit == 0:
            return np.zeros(0, np.int64), np.zeros(0, np.float32), 0
        is_cut = limit is not None and not (planned.search.fixed or planned.unites)
        try:
            if is_cut and limit is not None and limit <= _COLLECTED_MAX:
                best = collect(query, searcher, limit, None if counts else 0)
                docs, scores, total = best.docs, best.scores, best.total
            else:
                docs, scores = _matching(query, searcher)
                total = len(docs)
                if is_cut:
                    docs, scores = docs[:limit], scores[:limit]
        except SearchError as error:
            raise InvalidParameter(_WHAT, str(error)) from error
        if len(docs) > self._hits_max:
            raise LimitExceeded(
                f"hits of {_WHAT}, which it may cut with a limit (text.max_hits)", len(docs), self._hits_max
            )
        return docs, scores, total


def are_plain(text: str) -> bool:
    """Whether a text is nothing but words: each is a term, and a literal with any of them is a hit."""
    return len(text) <= WORDS_MAX and _PLAIN.fullmatch(text) is not None


def _matching(query: Query, searcher: Searcher) -> tuple[Longs, Floats]:
    """All documents that match, best first, ties by number."""
    terms = plain_terms(query)
    if terms is not None and len(terms) == 1:
        return every_hit(terms[0], searcher, query.boost if query is not terms[0] else 1.0)
    docs, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for leaf in searcher.leaves:
        found = query.matches(leaf, searcher)
        places = np.flatnonzero(found.mask & leaf.live)
        docs.append(places + leaf.base)
        if found.scores is None:
            scores.append(np.full(len(places), found.constant, np.float32))
        else:
            scores.append(found.dense()[places])
    all_docs, all_scores = np.concatenate(docs), np.concatenate(scores)
    order = np.lexsort((all_docs, -all_scores))
    return all_docs[order], all_scores[order]


def leaves_of(searcher: Searcher, docs: Longs) -> Iterator[tuple[Leaf, Longs, Longs]]:
    """(leaf, places, own): which of the documents are in each leaf, and their numbers there."""
    if len(searcher.leaves) == 1:
        yield searcher.leaves[0], np.arange(len(docs)), docs
        return
    for leaf in searcher.leaves:
        places = np.flatnonzero((docs >= leaf.base) & (docs < leaf.base + leaf.segment.size))
        if len(places):
            yield leaf, places, docs[places] - leaf.base


def keys_of_quads(searcher: Searcher, docs: Longs) -> list[str]:
    """The names of the quads of documents."""
    keys = [""] * len(docs)
    for leaf, places, own in leaves_of(searcher, docs):
        for place, doc in zip(places.tolist(), own.tolist(), strict=True):
            keys[place] = leaf.segment.doc_id(doc)
    return keys


def score_texts(scores: Floats) -> list[str]:
    """Scores in N-Triples, as the engine writes floats: the fewest digits that tell each from others."""
    written = orjson.dumps(scores, option=orjson.OPT_SERIALIZE_NUMPY).decode()[1:-1]
    numbers = written.split(",") if written else []
    if "e" in written:  # the engine writes no exponents
        numbers = [np.format_float_positional(score, trim="-") for score in scores]
    return [f'"{number.removesuffix(".0")}"^^<{_FLOAT}>' for number in numbers]


class _Cells:
    """Makes the rows of a table."""

    def __init__(self, planned: PlannedSearch, request: LiteralSearch, analyzers: Analyzers) -> None:
        self._search = planned.search
        self._unites = planned.unites
        self._highlighted: Callable[[str, str], str] | None = None
        if request.highlight is not None and planned.query is not None:
            self._highlighted = _Highlighted(planned, request.highlight, analyzers)

    def rows(self, found: Sequence[tuple[str, str]], limit: int | None) -> list[tuple[str | None, ...]]:
        """One for each hit, with its score, that has what the query gives."""
        fixed = [(part, _written(term)) for part, term in self._search.fixed]
        parts = [Part(part) for part, _ in self._search.columns]
        rows: list[tuple[str | None, ...]] = []
        met: set[tuple[str, str, str]] = set()
        for key, score in found:
            subject, predicate, graph, literal = key.split(" ", 3)
            if self._unites:
                if (subject, predicate, literal) in met:
                    continue
                met.add((subject, predicate, literal))
            row: dict[str, str | None] = {
                Part.SUBJECT: subject,
                Part.PROPERTY: predicate,
                Part.GRAPH: graph or None,
            }
            if Part.SCORE in parts:
                row[Part.SCORE] = score
            row[Part.LITERAL] = literal
            if any(row.get(part) != value for part, value in fixed):
                continue
            if self._highlighted is not None and Part.LITERAL in parts:
                row[Part.LITERAL] = self._highlighted(predicate, literal)
            rows.append(tuple([row[part] for part in parts]))
            if limit is not None and len(rows) >= limit:
                break
        return rows


class _Highlighted:
    """Literals with their matches marked."""

    def __init__(self, planned: PlannedSearch, wanted: Highlight, analyzers: Analyzers) -> None:
        self._planned, self._wanted = planned, wanted
        self._context = QueryContext(planned.fields, analyzers)
        self._made: dict[str, Highlighter] = {}

    def __call__(self, predicate: str, literal: str) -> str:
        """Terms in N-Triples."""
        path = self._planned.fields.of(predicate[1:-1])
        assert path is not None
        term = _literal(literal)
        if path not in self._made:
            self._made[path] = self._highlighter(path)
        fragments = self._made[path].fragments({path: term.value}).get(path, [term.value])
        text = self._wanted.separator.join(fragments)
        if self._wanted.joins:
            text = text.replace(f"{self._wanted.end} {self._wanted.start}", " ")
        return str(Literal(text, language=term.language) if term.language else Literal(text))

    def _highlighter(self, path: str) -> Highlighter:
        wanted = self._wanted
        body = {
            "fields": {path: {}},
            "pre_tags": [wanted.start],
            "post_tags": [wanted.end],
            "number_of_fragments": wanted.fragments,
            "fragment_size": wanted.fragment_size,
        }
        assert self._planned.query is not None
        return Highlighter.of(body, self._planned.query, self._context, self._planned.searcher)


def _literal(text: str) -> Literal:
    """Of its form in N-Triples."""
    found = parse_query_results(f"?x\n{text}\n".encode(), format=QueryResultsFormat.TSV)
    assert isinstance(found, QuerySolutions)
    term = next(found)[0]
    assert isinstance(term, Literal)
    return term


def _written(term: Iri | RdfLiteral) -> str:
    return f"<{term.value}>" if isinstance(term, Iri) else str(literal_of(term))


def _graphs_of(search: TextSearch, dataset: Dataset, union_default_graph: bool) -> Graphs:
    """The graphs whose literals a query with a dataset may find there."""
    named = frozenset(map(str, dataset.named_graphs))
    if search.graph is None:
        if dataset:
            return frozenset(map(str, dataset.default_graphs))
        return None if union_default_graph else frozenset(("",))
    if isinstance(search.graph, Iri):
        name = f"<{search.graph.value}>"
        return frozenset((name,) if not dataset or name in named else ())
    return named if dataset else frozenset(("*",))


def _filtered(leaf: Leaf, graphs: Graphs, language: str | None) -> Leaf:
    """A leaf of which only the documents in some graphs, and of a language, may be found."""
    live = leaf.live
    for path, wanted in ((GRAPH, graphs), (LANGUAGE, None if language is None else frozenset((language,)))):
        if wanted is not None:
            mask = _with_any(leaf, path, wanted)
            live = live if mask is None else live & mask
    return leaf if live is leaf.live else Leaf(leaf.segment, live, leaf.base)


def _with_any(leaf: Leaf, path: str, wanted: frozenset[str]) -> Bools | None:
    """Which documents of a leaf have one of these values; None where all have."""
    segment = array_segment(leaf)
    key = (f"with {path}", "\n".join(sorted(wanted)))
    if key not in segment.derived:
        terms = segment.terms(path)
        assert terms is not None
        values = list(terms.dictionary.terms(0, len(terms.dictionary)))
        numbers = [number for number, value in enumerate(values) if _is_among(value, wanted)]
        mask: Bools | None = None
        if len(numbers) < len(values):
            mask = np.zeros(segment.size, np.bool_)
            for number in numbers:
                mask[terms.postings(number)] = True
        segment.derived[key] = mask
    found: Bools | None = segment.derived[key]
    return found


def _is_among(value: str, wanted: frozenset[str]) -> bool:
    return value in wanted or (value != "" and "*" in wanted)
