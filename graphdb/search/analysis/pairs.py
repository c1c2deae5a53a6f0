"""Tokens in pairs: `cjk_bigram` for scripts without spaces, `common_grams` for frequent words."""

import unicodedata
from collections.abc import Callable
from dataclasses import replace

import regex

from graphdb.search.analysis.token import Token

__all__ = ["cjk_bigrams", "cjk_width", "common_grams"]

_SCRIPTS = {
    "han": "<IDEOGRAPHIC>",
    "hiragana": "<HIRAGANA>",
    "katakana": "<KATAKANA>",
    "hangul": "<HANGUL>",
}
_DOUBLE, _SINGLE = "<DOUBLE>", "<SINGLE>"


def cjk_bigrams(ignored: frozenset[str], unigrams: bool) -> Callable[[list[Token]], list[Token]]:
    """Characters of the scripts that are not ignored, two by two where they stand side by side; one alone
    stays. unigrams: each alone as well.
    """
    kinds = {kind for script, kind in _SCRIPTS.items() if script not in ignored}

    def change(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        position, run = 0, list[Token]()

        def flush() -> None:
            nonlocal position
            for place, token in enumerate(run):
                two = run[place + 1] if place + 1 < len(run) else None
                if unigrams or len(run) == 1:
                    result.append(replace(token, type=_SINGLE, position=position))
                if two is not None:
                    both = replace(
                        token,
                        term=token.term + two.term,
                        end_offset=two.end_offset,
                        type=_DOUBLE,
                        position=position,
                        position_length=2 if unigrams else 1,
                    )
                    result.append(both)
                if two is not None or unigrams or len(run) == 1:
                    position += 1
            run.clear()

        for token in tokens:
            if token.type not in kinds:
                flush()
                result.append(replace(token, position=position))
                position += 1
                continue
            for each in _characters(token):
                if run and run[-1].end_offset != each.start_offset:
                    flush()
                run.append(each)
        flush()
        return result

    return change


def _characters(token: Token) -> list[Token]:
    if len(token.term) == 1 or token.end_offset - token.start_offset != len(token.term):
        return [token]
    start = token.start_offset
    return [
        replace(token, term=char, start_offset=start + place, end_offset=start + place + 1)
        for place, char in enumerate(token.term)
    ]


_WIDE = regex.compile("[\uff01-\uff5e\uff65-\uff9f]+")


def cjk_width(term: str) -> str:
    """Full-width ASCII as ASCII, half-width Katakana as Katakana."""
    return str(_WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), term))


def common_grams(common: Callable[[str], bool], query_mode: bool) -> Callable[[list[Token]], list[Token]]:
    """Each two neighbours of which one is a common word, as in `the_quick`, beside the words. query_mode:
    without the words that are in a pair.
    """

    def change(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        paired = False  # whether the word is the second of a pair
        for place, token in enumerate(tokens):
            after = tokens[place + 1] if place + 1 < len(tokens) else None
            pairs = after is not None and (common(token.term) or common(after.term))
            if not (query_mode and (pairs or paired)):
                result.append(token)
            if pairs and after is not None:
                term = f"{token.term}_{after.term}"
                result.append(
                    replace(
                        token,
                        term=term,
                        end_offset=after.end_offset,
                        type="gram",
                        position_length=1 if query_mode else 2,
                    )
                )
            paired = pairs
        return result

    return change
