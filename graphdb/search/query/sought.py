"""What a query looks for in one field: terms, patterns, phrases; and where a text has them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from graphdb.search.analysis import Token
from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.compound import BoostingQuery
from graphdb.search.query.dictionary_queries import PrefixQuery, RegexpQuery, TermRangeQuery, WildcardQuery
from graphdb.search.query.function_score import FunctionScoreQuery
from graphdb.search.query.passages import Match
from graphdb.search.query.phrase import PhraseQuery
from graphdb.search.query.regexp import Regexp
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import KeywordQuery, SynonymQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import Query, RewrittenQuery

__all__ = ["Sought"]

Test = Callable[[str], bool]


@dataclass(slots=True)
class Sought:
    """Of one field (or of all where a request does not mind which)."""

    terms: set[str] = field(default_factory=set)
    tests: list[Test] = field(default_factory=list)
    phrases: list[PhraseQuery] = field(default_factory=list)

    @classmethod
    def by(cls, query: Query, paths: Sequence[str] | None, searcher: Searcher) -> "Sought":
        """What a query looks for in any of the paths; None: in whatever field."""
        sought = cls()
        for node in _positive(query, searcher):
            path = getattr(node, "path", None)
            if path is not None and (paths is None or path in paths):
                sought._add(node)
        return sought

    def _add(self, node: Query) -> None:
        match node:
            case TermQuery() | KeywordQuery():
                self.terms.add(node.term)
            case TermsQuery() | SynonymQuery():
                self.terms.update(node.terms)
            case PhraseQuery():
                self.phrases.append(node)
            case PrefixQuery() | WildcardQuery() | RegexpQuery() | TermRangeQuery():
                self.tests.append(_test(node))

    def matches(self, tokens: Sequence[Token]) -> list[Match]:
        """Where the tokens of a text are what is looked for; a phrase is one match from end to end."""
        found = []
        for token in tokens:
            if token.term in self.terms or any(test(token.term) for test in self.tests):
                found.append(Match(token.start_offset, token.end_offset, token.term))
        for phrase in self.phrases:
            found += _phrase_matches(phrase, tokens)
        return found


def _positive(query: Query, searcher: Searcher) -> Iterator[Query]:
    """The queries that say what a document should have; what stands for other terms is what it stands for."""
    match query:
        case BoolQuery():
            children: Iterable[Query] = (*query.must, *query.filter, *query.should)
        case BoostingQuery():
            children = (query.positive,)
        case FunctionScoreQuery():
            children = (query.query,)
        case RewrittenQuery():
            children = (query.rewritten(searcher),)
        case _:
            yield query
            children = query.children()
    for child in children:
        yield from _positive(child, searcher)


def _test(node: PrefixQuery | WildcardQuery | RegexpQuery | TermRangeQuery) -> Test:
    match node:
        case PrefixQuery():
            return lambda term: term.startswith(node.prefix)
        case WildcardQuery():
            return node.accepts
        case RegexpQuery():
            return Regexp(node.pattern, node.case_insensitive, node.all_syntax).matches
        case TermRangeQuery():
            return node.accepts


def _phrase_matches(phrase: PhraseQuery, tokens: Sequence[Token]) -> list[Match]:
    """From each token of the first place on, the nearest of each other place, if all are near enough."""
    places: list[list[Token]] = [
        [token for token in tokens if token.term in terms] for terms in phrase.places
    ]
    if not all(places):
        return []
    found = []
    for first in places[0]:
        begin = first.position - phrase.offsets[0]
        chosen = [first]
        for at, offset in zip(places[1:], phrase.offsets[1:], strict=True):
            chosen.append(min(at, key=lambda token: abs(token.position - offset - begin)))
        shifts = [token.position - offset for token, offset in zip(chosen, phrase.offsets, strict=True)]
        if max(shifts) - min(shifts) <= phrase.slop:
            start = min(token.start_offset for token in chosen)
            end = max(token.end_offset for token in chosen)
            found.append(Match(start, end, " ".join(token.term for token in chosen)))
    return found
