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
        """The longest phrase that begins at a token: its length and what it means.

        Of several tokens at one place each stands alone.
        """
        end = at + 1
        while end - at < self.length_max and end < len(tokens) and _follows(tokens, end):
            end += 1
        for stop in range(end, at, -1):
            entry = self.entries.get(tuple(token.term for token in tokens[at:stop]))
            if entry is not None:
                return stop - at, entry
        return None


def _follows(tokens: Sequence[Token], number: int) -> bool:
    return tokens[number].position > tokens[number - 1].position


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
    """Words of a synonym take the positions of the words that it stands for, and those after.

    Each has the offsets of the given word at its place, and stands behind it; those after the end have the
    offsets of the last. A single word stands for all of the given ones. Source: what Lucene's SynonymFilter
    makes of texts.
    """

    def lay(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        waiting: dict[int, list[Token]] = {}  # by the number of the token that they stand beside
        matched = 0  # where the last match ends
        stay = True  # whether the words of that match do
        position = before = -1
        for number, token in enumerate(tokens):
            found = synonyms.longest(tokens, number) if number >= matched else None
            if found is not None:
                length, entry = found
                matched, stay = number + length, entry.keep
                _lay_beside(waiting, number, tokens[number:matched], entry)
            step, before = token.position - before, token.position
            beside = waiting.pop(number, [])
            if stay or number >= matched:
                position += step
                result.append(replace(token, position=position))
            elif beside:
                position += 1
            result += (_beside(word, token, position) for word in beside)
        for number in sorted(waiting):
            position += 1
            result += (_beside(word, tokens[-1], position) for word in waiting[number])
        return result

    return lay


def _lay_beside(waiting: dict[int, list[Token]], number: int, given: list[Token], entry: _Entry) -> None:
    """Queue the words of what stands for the given ones, beside token number and those after it."""
    for output in entry.outputs:
        for place, word in enumerate(output):
            laid = Token(word, 0, 0, "SYNONYM")
            if len(output) == 1:
                laid.end_offset = given[-1].end_offset
                laid.position_length = len(given) if entry.keep else 1
            waiting.setdefault(number + place, []).append(laid)


def _beside(laid: Token, token: Token, position: int) -> Token:
    laid.start_offset, laid.position = token.start_offset, position
    laid.end_offset = max(laid.end_offset, token.end_offset)
    return laid


def graph_synonyms(synonyms: SynonymMap) -> Stream:
    """Each synonym is a path of its own beside the words that it stands for.

    Positions whose tokens were dropped are not kept within what is replaced, nor before it, as in Lucene.
    """

    def weave(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        shift = at = 0  # positions that have opened up so far
        while at < len(tokens):
            found = synonyms.longest(tokens, at)
            if found is None:
                result.append(_moved(tokens[at], shift))
                at += 1
                continue
            length, entry = found
            given = tokens[at : at + length]
            shift -= given[0].position - (tokens[at - 1].position if at else -1) - 1
            woven, span = _woven([_moved(token, shift) for token in given], entry)
            result += woven
            shift += span - (given[-1].position - given[0].position + 1)
            at += length
        return result

    return weave


def _woven(given: list[Token], entry: _Entry) -> tuple[list[Token], int]:
    """Paths from one node to one other, with nodes of their own between, and how many positions they span.

    First the first word of each path, the given words' path last, then the rest, as Lucene orders them.
    """
    start, first, last = given[0].position, given[0], given[-1]
    paths = [
        [Token(word, first.start_offset, last.end_offset, "SYNONYM") for word in output]
        for output in entry.outputs
    ]
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


def _moved(token: Token, shift: int) -> Token:
    return token if shift == 0 else replace(token, position=token.position + shift)
