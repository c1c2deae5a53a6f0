"""Synonyms in Solr's format, of one word or several, laid over the tokens or woven into a graph."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from graphdb.search.analysis.token import Token
from graphdb.search.analysis.token_filters import Stream
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["Phrase", "SynonymMap", "flat_synonyms", "graph_synonyms", "synonym_map"]

Phrase = tuple[str, ...]
_RULES_MAX = 10_000
_SIDES_MAX = 1000  # in one rule; expanding n of them makes n * (n - 1) pairs
_PAIRS_MAX = 1_000_000
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ARROW = re.compile(r"(?<!\\)=>")
_COMMA = re.compile(r"(?<!\\),")


@dataclass(slots=True)
class _Entry:
    outputs: dict[Phrase, None] = field(default_factory=dict)  # in order
    keep: bool = False  # the phrase itself stays


@dataclass(slots=True)
class SynonymMap:
    """From a phrase to what stands for it."""

    entries: dict[Phrase, _Entry] = field(default_factory=dict)
    length_max: int = 0  # tokens of the longest phrase
    pairs: int = 0

    def add(self, phrase: Phrase, output: Phrase, keep: bool) -> None:
        entry = self.entries.setdefault(phrase, _Entry())
        entry.keep |= keep
        entry.outputs[output] = None
        self.pairs += 1
        if self.pairs > _PAIRS_MAX:
            raise illegal_argument(f"Too many synonyms, at most [{_PAIRS_MAX}] pairs")
        self.length_max = max(self.length_max, len(phrase))

    def longest(self, tokens: Sequence[Token], at: int) -> tuple[int, _Entry] | None:
        """The longest phrase that begins at a token, with no hole in it: its length and what it means."""
        end = at
        while end - at < self.length_max and end < len(tokens) and _follows(tokens, at, end):
            end += 1
        for stop in range(end, at, -1):
            entry = self.entries.get(tuple(token.term for token in tokens[at:stop]))
            if entry is not None:
                return stop - at, entry
        return None


def _follows(tokens: Sequence[Token], at: int, place: int) -> bool:
    return tokens[place].position == tokens[at].position + place - at


def synonym_map(
    rules: Sequence[str], analyze: Callable[[str], Phrase], expand: bool, lenient: bool
) -> SynonymMap:
    """Rules `a, b => c` and `a, b, c`; analyze makes a phrase of one side, none where it has no tokens."""
    if len(rules) > _RULES_MAX:
        raise illegal_argument(f"Too many synonym rules [{len(rules)}], at most [{_RULES_MAX}]")
    result = SynonymMap()
    for number, rule in enumerate(rules, 1):
        try:
            _add_rule(result, rule.strip(), analyze, expand)
        except SearchError as error:
            if not lenient:
                reason = f"Invalid synonym rule at line {number}"
                raise illegal_argument("failed to build synonyms", illegal_argument(reason, error)) from None
    return result


def _add_rule(result: SynonymMap, rule: str, analyze: Callable[[str], Phrase], expand: bool) -> None:
    if not rule or rule.startswith("#"):
        return
    sides = _ARROW.split(rule)
    if len(sides) > 2:
        raise illegal_argument("more than one explicit mapping specified on the same line")
    phrases = [_phrases(side, analyze) for side in sides]
    if len(phrases) == 2:
        for phrase in phrases[0]:
            for output in phrases[1]:
                result.add(phrase, output, keep=False)
    elif expand:
        for phrase in phrases[0]:
            for output in phrases[0]:
                if phrase is not output:
                    result.add(phrase, output, keep=True)
    else:
        for phrase in phrases[0]:
            result.add(phrase, phrases[0][0], keep=False)


def _phrases(side: str, analyze: Callable[[str], Phrase]) -> list[Phrase]:
    texts = [_ESCAPED.sub(r"\1", text).strip() for text in _COMMA.split(side)]
    if len(texts) > _SIDES_MAX:
        raise illegal_argument(f"Too many synonyms in one rule, at most [{_SIDES_MAX}]")
    phrases = []
    for text in texts:
        phrase = analyze(text)
        if not phrase:
            raise illegal_argument(f"term: {text} was completely eliminated by analyzer")
        phrases.append(phrase)
    return phrases


def flat_synonyms(synonyms: SynonymMap) -> Stream:
    """Words of a synonym take the positions of the words that it stands for, and those after."""

    def lay(tokens: list[Token]) -> list[Token]:
        return sorted(_replaced(tokens, synonyms, _overlaid), key=lambda token: token.position)

    return lay


def graph_synonyms(synonyms: SynonymMap) -> Stream:
    """Each synonym is a path of its own beside the words that it stands for."""

    def weave(tokens: list[Token]) -> list[Token]:
        return _replaced(tokens, synonyms, _woven)

    return weave


def _replaced(
    tokens: list[Token],
    synonyms: SynonymMap,
    stand_in: Callable[[list[Token], _Entry], tuple[list[Token], int]],
) -> list[Token]:
    """Tokens with each phrase replaced; stand_in says by what, and how many positions that spans."""
    result: list[Token] = []
    shift = at = 0  # positions that have opened up so far
    while at < len(tokens):
        found = synonyms.longest(tokens, at)
        if found is None:
            result.append(_moved(tokens[at], shift))
            at += 1
            continue
        length, entry = found
        laid, span = stand_in([_moved(token, shift) for token in tokens[at : at + length]], entry)
        result += laid
        shift += span - length
        at += length
    return result


def _overlaid(given: list[Token], entry: _Entry) -> tuple[list[Token], int]:
    """Each word beside the given one at its place, and how many positions they span, no more than there were.

    Words beyond the last given one have its offsets.
    """
    laid = [
        _synonym(word, given[min(number, len(given) - 1)], given[0].position + number)
        for output in entry.outputs
        for number, word in enumerate(output)
    ]
    if entry.keep:
        return given + laid, len(given)
    return laid, min(len(given), max(map(len, entry.outputs)))


def _woven(given: list[Token], entry: _Entry) -> tuple[list[Token], int]:
    """Paths from one node to one other, with nodes of their own between, and how many positions they span.

    First the first word of each path, the given words' path last, then the rest, as Lucene orders them.
    """
    start, first, last = given[0].position, given[0], given[-1]
    paths = [[_synonym(word, first, 0, last) for word in output] for output in entry.outputs]
    paths += [[replace(token) for token in given]] if entry.keep else []
    end = start + 1 + sum(len(path) - 1 for path in paths)
    free = start + 1
    heads, rest = [], []
    for path in paths:
        nodes = [start, *range(free, free + len(path) - 1), end]
        free += len(path) - 1
        for token, node, following in zip(path, nodes, nodes[1:], strict=False):
            token.position, token.position_length = node, following - node
        heads.append(path[0])
        rest += path[1:]
    return heads + rest, end - start


def _synonym(word: str, beside: Token, position: int, last: Token | None = None) -> Token:
    end = (last or beside).end_offset
    return Token(word, beside.start_offset, end, "SYNONYM", position)


def _moved(token: Token, shift: int) -> Token:
    return token if shift == 0 else replace(token, position=token.position + shift)
