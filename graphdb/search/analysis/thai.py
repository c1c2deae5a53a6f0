"""The tokenizer `thai`: words of a script that has no spaces between them."""

import re
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from graphdb.search.analysis.token import Token
from graphdb.search.analysis.tokenizers import StandardTokenizer

if TYPE_CHECKING:
    from budoux import Parser

__all__ = ["ThaiTokenizer"]

_THAI = re.compile("[\u0e01-\u0e3a\u0e40-\u0e4e]")


@cache
def _parser() -> "Parser":
    import budoux  # few fields are in Thai

    return budoux.load_default_thai_parser()


class ThaiTokenizer:
    """The tokens of the standard tokenizer; runs of Thai are cut into words by BudouX's model.

    Elasticsearch cuts by the dictionary of Java's BreakIterator.
    """

    consecutive = True

    def __init__(self) -> None:
        self._standard = StandardTokenizer()

    def terms(self, text: str) -> list[str]:
        terms = self._standard.terms(text)
        if text.isascii():
            return terms
        return [word for term in terms for word in _words(term)]

    def tokens(self, text: str) -> list[Token]:
        tokens: list[Token] = []
        for token in self._standard.tokens(text):
            words = _words(token.term)
            ends = accumulate(map(len, words), initial=token.start_offset)
            for word, start in zip(words, ends, strict=False):
                tokens.append(Token(word, start, start + len(word), "word", len(tokens)))
        return tokens


def _words(term: str) -> list[str]:
    return _parser().parse(term) if _THAI.search(term) else [term]
