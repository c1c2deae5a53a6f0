"""What the words of a text become on one field: terms, synonyms, phrases, and the paths of a token graph.

Source: Lucene's QueryBuilder, and what Elasticsearch's `match` clauses answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from graphdb.search.analysis import Analyzer
from graphdb.search.analysis.token_graph import PathStep, Section, TokenGraph
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.query.clause import QueryContext, minimum_should_match
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.dictionary_queries import FuzzyQuery, PrefixQuery, edits_of
from graphdb.search.query.phrase import PhrasePrefixQuery, PhraseQuery
from graphdb.search.query.positions import AnyOf, ManyTerms, PositionSource, Term
from graphdb.search.query.rewrites import Rewrite, rewritten_by
from graphdb.search.query.spans import AfterGap, Gap, Near, SpanQuery
from graphdb.search.query.term_queries import SynonymQuery, TermQuery
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query

__all__ = [
    "Leaves",
    "MatchOptions",
    "Places",
    "combined",
    "graph_of",
    "graph_words",
    "is_wordless",
    "paths_of",
    "phrase_query",
    "places_of",
    "query_of_text",
    "with_minimum",
    "word_query",
]


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """How a text becomes a query. kind: boolean, phrase, phrase_prefix or bool_prefix.

    synonyms_as_phrases: the words of a synonym of several have to stand side by side, not only all of them.
    """

    kind: str = "boolean"
    operator: str = "or"
    minimum: str | None = None
    analyzer: str | None = None
    fuzziness: str | None = None
    prefix_length: int = 0
    max_expansions: int = 50
    transpositions: bool = True
    slop: int = 0
    lenient: bool = False
    zero_terms: str = "none"
    synonyms_as_phrases: bool = True
    fuzzy_rewrite: Rewrite | None = None


Places = list[tuple[int, tuple[str, ...]]]
"""Positions, ascending, with the terms that stand there."""


def places_of(text: str, spec: FieldSpec, context: QueryContext, analyzer: str | None) -> Places:
    """Analyze a text as a field's queries are."""
    return _places(text, context.analyzers.analyzer(analyzer or spec.search_analyzer))


def _places(text: str, analyzer: Analyzer) -> Places:
    terms, positions = analyzer.tokens(text)
    if len(set(positions)) == len(positions):  # as mostly: no two at one place
        return [(position, (term,)) for term, position in zip(terms, positions, strict=True)]
    places: dict[int, dict[str, None]] = {}
    for term, position in zip(terms, positions, strict=True):
        places.setdefault(position, {})[term] = None
    return [(position, tuple(at)) for position, at in sorted(places.items())]


def query_of_text(spec: FieldSpec, options: MatchOptions, context: QueryContext) -> Callable[[str], Query]:
    """What makes the query for a text on a field of text."""
    path, own = spec.path, spec.search_analyzer
    if options.kind in ("phrase", "phrase_prefix"):
        own = spec.options.get("search_quote_analyzer") or own
    analyzer = context.analyzers.analyzer(options.analyzer or own)
    whole = replace(options, kind="boolean")
    of_places = {"phrase": phrase_query, "phrase_prefix": _phrase_prefix}.get(options.kind, _words)
    has_plain_words = options.kind == "boolean" and options.fuzziness is None and not analyzer.makes_graphs

    has_places = spec.options.get("index_options") not in ("docs", "freqs")
    needs_places = options.kind in ("phrase", "phrase_prefix") and not has_places

    def of_text(text: str) -> Query:
        if has_plain_words:
            terms, positions = analyzer.tokens(text)
            if terms and len(set(positions)) == len(terms):  # as mostly: no two at one place
                return combined([TermQuery(path=path, term=term) for term in terms], options)
        graph = graph_of(analyzer, text)
        if graph is not None:
            return _MatchedGraph(path, options, context.max_clause_count).query(graph)
        places = _places(text, analyzer)
        if not places:
            return _nothing_left(options)
        if options.kind == "bool_prefix" and analyzer.end(text) > places[-1][0] + 1:
            return _words(path, places, whole)  # a dropped word ends the text, not the beginning of one
        if needs_places and len(places) > 1:
            reason = f"field:[{path}] was indexed without position data; cannot run PhraseQuery"
            raise context.failed(reason, illegal_argument(reason))
        return of_places(path, places, options)

    return of_text


_WORDLESS = "Matching no documents"


def _nothing_left(options: MatchOptions) -> Query:
    """Every word was a stop word."""
    return MatchAllQuery() if options.zero_terms == "all" else MatchNoneQuery(reason=_WORDLESS)


def is_wordless(query: Query) -> bool:
    """Whether nothing is looked for, as every word was a stop word."""
    return isinstance(query, MatchNoneQuery) and query.reason == _WORDLESS


def word_query(
    path: str, terms: tuple[str, ...], options: MatchOptions, storage: Storage = Storage.TEXT
) -> Query:
    """The query for one place in the text."""
    if len(terms) > 1:
        return SynonymQuery(path=path, terms=terms)
    edits = 0 if options.fuzziness is None else edits_of(options.fuzziness, terms[0])
    if edits or storage is not Storage.TEXT:
        query = FuzzyQuery(
            path=path,
            term=terms[0],
            edits=edits,
            prefix_length=options.prefix_length,
            max_expansions=options.max_expansions,
            transpositions=options.transpositions,
        )
        return rewritten_by(query, options.fuzzy_rewrite)
    return TermQuery(path=path, term=terms[0])


def _words(path: str, places: Places, options: MatchOptions) -> Query:
    if options.fuzziness is None and all([len(terms) == 1 for _, terms in places]):  # as mostly
        words: list[Query] = [TermQuery(path=path, term=term) for _, (term,) in places]
    else:
        words = [word_query(path, terms, options) for _, terms in places]
    if options.kind == "bool_prefix" and len(places[-1][1]) == 1:
        words[-1] = PrefixQuery(path=path, prefix=places[-1][1][0])
    return combined(words, options)


def combined(words: list[Query], options: MatchOptions) -> Query:
    """Join the queries of the words by operator and minimum_should_match."""
    return words[0] if len(words) == 1 else _joined(words, options)


def _joined(words: list[Query], options: MatchOptions) -> Query:
    if options.operator == "and":
        return with_minimum(BoolQuery(must=tuple(words)), options.minimum)
    return with_minimum(BoolQuery(should=tuple(words)), options.minimum)


def with_minimum(query: Query, minimum: str | None) -> Query:
    """With this minimum_should_match, where clauses are joined."""
    if minimum is None or not isinstance(query, BoolQuery):
        return query
    return query.at_least(minimum_should_match(len(query.should), minimum))


def phrase_query(path: str, places: Places, options: MatchOptions) -> Query:
    """Words at these places; of a single one the word."""
    if len(places) == 1:
        return word_query(path, places[0][1], replace(options, fuzziness=None))
    first = places[0][0]
    return PhraseQuery(
        path=path,
        places=tuple(terms for _, terms in places),
        offsets=tuple(position - first for position, _ in places),
        slop=options.slop,
    )


def _phrase_prefix(path: str, places: Places, options: MatchOptions) -> Query:
    first, last = places[0][0], places[-1]
    return PhrasePrefixQuery(
        path=path,
        places=tuple(terms for _, terms in places[:-1]),
        offsets=tuple(position - first for position, _ in places[:-1]),
        prefix=last[1][0],
        prefix_offset=last[0] - first,
        slop=options.slop,
        max_expansions=options.max_expansions,
    )


_STEPS_MAX = 100_000  # words of all paths of a section

# Token graphs: between two nodes that all paths lead through there is either one place, or several paths.


@dataclass(frozen=True, slots=True)
class Leaves:
    """What becomes of one place, and of a side path as a phrase, which may be of a single place."""

    word: Callable[[tuple[str, ...]], Query]
    phrase: Callable[[Places], Query]


def graph_of(analyzer: Analyzer, text: str) -> TokenGraph | None:
    """The token graph of a text; None where it is a line."""
    if not analyzer.makes_graphs:
        return None
    tokens = analyzer.detailed(text)
    if len(tokens) == 1 or all(token.position_length == 1 for token in tokens):
        return None
    return TokenGraph(tokens)


def graph_words(
    graph: TokenGraph, options: MatchOptions, paths_max: int, leaves: Leaves, last: Leaves | None = None
) -> Query:
    """What a graph becomes where no phrase is looked for. last: of the last section, if not as the others.

    Errors: too_many_nested_clauses, where there are more paths.
    """
    sections, words = graph.sections(), []
    for number, section in enumerate(sections, 1):
        own = last if last is not None and number == len(sections) else leaves
        paths = None if section.terms else _side_paths(section, options, paths_max, own)
        words.append(paths or own.word(section.terms or ()))
    return _joined(words, options)


def _side_paths(section: Section, options: MatchOptions, paths_max: int, leaves: Leaves) -> Query:
    """Any of them: each as a phrase, or all of its words."""
    found: list[Query] = []
    for path in paths_of(section, paths_max):
        places = _line(path)
        if options.synonyms_as_phrases:
            found.append(leaves.phrase(places))
        elif len(places) == 1:
            found.append(leaves.word(places[0][1]))
        else:
            found.append(BoolQuery(must=tuple(leaves.word(terms) for _, terms in places)))
    return BoolQuery(should=tuple(found))


def paths_of(section: Section, paths_max: int) -> Iterator[tuple[PathStep, ...]]:
    """Errors: too_many_nested_clauses, where there are more."""
    steps = 0
    for number, path in enumerate(section.paths()):
        steps += len(path)
        if number >= paths_max or steps > _STEPS_MAX:
            raise SearchError("too_many_nested_clauses", f"maxClauseCount is set to {paths_max}")
        yield path


def _line(path: Sequence[PathStep]) -> Places:
    """The terms of a path one after another."""
    places: Places = []
    position = -1
    for step in path:
        position += 1 + step.gap
        places.append((position, (step.term,)))
    return places


@dataclass(frozen=True, slots=True)
class _MatchedGraph:
    """What the clauses for one field make of a graph."""

    path: str
    options: MatchOptions
    paths_max: int

    def query(self, graph: TokenGraph) -> Query:
        options = self.options
        if options.kind in ("boolean", "bool_prefix"):
            last = Leaves(self._last_word, self._last_phrase) if options.kind == "bool_prefix" else None
            return graph_words(graph, options, self.paths_max, Leaves(self._word, self._phrase), last)
        if options.slop:
            make = self._last_phrase if options.kind == "phrase_prefix" else self._phrase
            return BoolQuery(
                should=tuple(make(_line(path)) for path in paths_of(graph.whole(), self.paths_max))
            )
        return self._spans(graph)

    def _word(self, terms: tuple[str, ...]) -> Query:
        return word_query(self.path, terms, self.options)

    def _phrase(self, places: Places) -> Query:
        return self._word(places[0][1]) if len(places) == 1 else phrase_query(self.path, places, self.options)

    def _last_word(self, terms: tuple[str, ...]) -> Query:
        return self._word(terms) if len(terms) > 1 else PrefixQuery(path=self.path, prefix=terms[0])

    def _last_phrase(self, places: Places) -> Query:
        return _phrase_prefix(self.path, places, self.options)

    def _spans(self, graph: TokenGraph) -> Query:
        sections = graph.sections()
        parts = [
            self._alternatives(section, number == len(sections)) for number, section in enumerate(sections, 1)
        ]
        source = parts[0] if len(parts) == 1 else Near(tuple(parts), 0, True)
        return SpanQuery(path=self.path, source=source)

    def _alternatives(self, section: Section, is_last: bool) -> PositionSource:
        if section.terms:
            parts = [self._place(term, is_last) for term in section.terms]
        else:
            parts = [self._span(path, is_last) for path in paths_of(section, self.paths_max)]
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _span(self, path: tuple[PathStep, ...], is_last: bool) -> PositionSource:
        parts: list[PositionSource] = []
        for number, step in enumerate(path, 1):
            if parts and step.gap:
                parts.append(Gap(step.gap))
            parts.append(self._place(step.term, is_last and number == len(path)))
        source = parts[0] if len(parts) == 1 else Near(tuple(parts), 0, True)
        return AfterGap(source, path[0].gap) if path[0].gap else source

    def _place(self, term: str, is_last: bool) -> PositionSource:
        if is_last and self.options.kind == "phrase_prefix":
            return ManyTerms(PrefixQuery(path=self.path, prefix=term))
        return Term(self.path, term)
