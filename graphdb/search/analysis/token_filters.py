"""Token filters on streams: n-grams, shingles, fingerprints, unique, multiplexer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from graphdb.search.analysis.analyzer import MULTIPLIED_MAX, applied, too_many_tokens
from graphdb.search.analysis.token import Token, TokenFilter
from graphdb.search.errors import illegal_argument

__all__ = [
    "Stream",
    "fingerprint",
    "gram_filter",
    "limit",
    "multiplexer",
    "parts_in",
    "shingles",
    "trailing_shingles",
    "unique",
]

# Filters that make shorter or longer tokens of tokens: n-grams, shingles, fingerprints.

Stream = Callable[[list[Token]], list[Token]]


_GRAMS_MAX = 5_000_000  # of one text, which take about a gigabyte


def gram_filter(low: int, high: int, edges_only: bool, preserve_original: bool) -> Stream:
    """All of low to high characters of each token, where it stands, with its offsets. The filter raises an
    illegal argument for a text of too many.
    """

    def cut(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        for token in tokens:
            if len(result) > _GRAMS_MAX:
                raise illegal_argument(f"The n-grams of one text are more than [{_GRAMS_MAX}]")
            term = token.term
            starts = range(1 if edges_only else len(term))
            parts = [
                term[start : start + length]
                for start in starts
                for length in range(low, min(high, len(term) - start) + 1)
            ]
            if preserve_original and not low <= len(term) <= high:
                parts.append(term)
            result += [replace(token, term=part) for part in parts]
        return result

    return cut


def shingles(
    low: int, high: int, unigrams: bool, unigrams_if_none: bool, separator: str, filler: str
) -> Stream:
    """Tokens side by side joined to one, low to high of them; filler stands in a hole of the positions."""

    def join(tokens: list[Token]) -> list[Token]:
        slots = _slots(tokens)
        alone = unigrams or (unigrams_if_none and len(slots) < low)
        result = []
        for at, slot in enumerate(slots):
            if alone and slot is not None:
                result.append(slot)
            for length in range(low, high + 1):
                shingle = _shingle(slots[at : at + length], length, separator, filler)
                if shingle is not None:
                    span = length if unigrams else length - low + 1
                    result.append(replace(shingle, position=at, position_length=span))
        return result

    return join


def trailing_shingles(size: int) -> Stream:
    """Each token joined with those after it, up to `size` of them: fewer at the end of the text."""

    def join(tokens: list[Token]) -> list[Token]:
        slots = _slots(tokens)
        parts = (slots[at : at + size] for at in range(len(slots)))
        found = (_shingle(part, len(part), " ", "") for part in parts)
        return [replace(one, position=at) for at, one in enumerate(found) if one is not None]

    return join


def _slots(tokens: list[Token]) -> list[Token | None]:
    """One for each position up to the last; None in a hole. Tokens of a graph need not be in their order."""
    slots: list[Token | None] = [None] * (1 + max((token.position for token in tokens), default=-1))
    for token in tokens:
        if slots[token.position] is None:
            slots[token.position] = token
    return slots


def _shingle(part: list[Token | None], length: int, separator: str, filler: str) -> Token | None:
    present = [token for token in part if token is not None]
    if len(part) < length or not present:
        return None
    term = separator.join(filler if token is None else token.term for token in part)
    return Token(term, present[0].start_offset, present[-1].end_offset, "shingle")


def fingerprint(separator: str, length_max: int) -> Stream:
    """One token of all terms, sorted and each once; none where it would be longer than length_max."""

    def join(tokens: list[Token]) -> list[Token]:
        if not tokens:
            return []
        term = separator.join(sorted({token.term for token in tokens}))
        if len(term) > length_max:
            return []
        return [Token(term, 0, tokens[-1].end_offset, "fingerprint")]

    return join


def unique(only_on_same_position: bool) -> Stream:
    """Each term once. Where a term goes for good its position closes up, as in Elasticsearch."""

    def filter_same(tokens: list[Token]) -> list[Token]:
        seen: set[tuple[str, int]] = set()
        kept = []
        for token in tokens:
            if (token.term, token.position) not in seen:
                seen.add((token.term, token.position))
                kept.append(token)
        return kept

    def filter_all(tokens: list[Token]) -> list[Token]:
        seen: set[str] = set()
        kept: list[Token] = []
        position = -1
        before = -1
        for token in tokens:
            increment, before = token.position - before, token.position
            if token.term in seen:
                continue
            seen.add(token.term)
            position += increment
            kept.append(replace(token, position=position))
        return kept

    return filter_same if only_on_same_position else filter_all


_PARTS_MAX = 10_000  # of one word


def parts_in(words: frozenset[str], word_min: int, low: int, high: int, longest_only: bool) -> Stream:
    """Each token, and behind it at its place the parts of low to high characters that are among the words.

    Tokens shorter than word_min have none. longest_only: one part at most for each place where parts begin.
    """

    def parts(term: str) -> Iterator[str]:
        for start in range(len(term) - low + 1):
            ends = range(start + low, min(start + high, len(term)) + 1)
            found = [term[start:end] for end in ends if term[start:end] in words]
            yield from found[-1:] if longest_only else found

    def split(tokens: list[Token]) -> list[Token]:
        result = []
        for token in tokens:
            result.append(token)
            if len(token.term) >= word_min:
                result += [replace(token, term=part) for part in islice(parts(token.term), _PARTS_MAX)]
        return result

    return split


def limit(count_max: int) -> Stream:
    return lambda tokens: tokens[:count_max]


def multiplexer(chains: Sequence[Sequence[TokenFilter]], preserve_original: bool) -> Stream:
    """Each token as it is, where that is wanted, and what each chain of filters makes of it alone, once each.

    Illegal argument where the chains make too many tokens.
    """

    def multiply(tokens: list[Token]) -> list[Token]:
        made: list[Token] = []
        grown = 0  # tokens that filters have made more than they got
        for token in tokens:
            forms = [token] if preserve_original else []
            for chain in chains:
                own = [replace(token, position=0)]  # filters may count from the first position
                for step in chain:
                    count = len(own)
                    own = applied(step, own)
                    grown += max(0, len(own) - count)
                    if grown > MULTIPLIED_MAX:
                        raise too_many_tokens()
                forms += [replace(form, position=form.position + token.position) for form in own]
            made += forms
        made.sort(key=lambda token: token.position)  # a chain may go beyond the position of the next token
        return unique(only_on_same_position=True)(made)

    return multiply
