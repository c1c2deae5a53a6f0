"""The tokenizers `classic` and `uax_url_email`: words, hosts, addresses of mail, URLs.

Sources: the grammar of Lucene's ClassicTokenizer; RFC 3986 and RFC 5322 for URLs and addresses.
"""

from collections.abc import Iterator
from functools import cache

import regex

from graphdb.search.analysis.token import Token
from graphdb.search.analysis.tokenizers import StandardTokenizer, utf16_length

__all__ = ["ClassicTokenizer", "UrlTokenizer"]

# Every pattern is linear: runs are possessive, and what stands between two runs is in none.
_CJ = (
    r"\u3100-\u312f\u3040-\u309f\u30a0-\u30ff\u31f0-\u31ff\u3300-\u337f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\uff65-\uff9f"
)
_LETTER = rf"[\p{{L}}--[{_CJ}]]"
_A = rf"[\p{{L}}\p{{Nd}}--[{_CJ}]]"
_RUN = rf"{_A}++"
_DIGITS = rf"(?=(?:(?!\p{{Nd}}){_A})*+\p{{Nd}}){_RUN}"  # a run with a digit in it
_P = "[-_/.,]"
_KINDS = {
    # in the order that decides between tokens of the same length
    "<ALPHANUM>": _RUN,
    "<APOSTROPHE>": rf"{_LETTER}++(?:'{_LETTER}++)++",
    "<ACRONYM>": rf"{_LETTER}\.(?:{_LETTER}\.)++",
    "<COMPANY>": rf"{_LETTER}++[&@]{_LETTER}++",
    "<EMAIL>": rf"{_RUN}(?:[-._]{_RUN})*+@{_RUN}(?:[-.]{_RUN})++",
    "<HOST>": rf"{_RUN}(?:\.{_RUN})++",
    # every other run has a digit
    "<NUM>": rf"{_RUN}{_P}{_DIGITS}(?:{_P}{_RUN}{_P}{_DIGITS})*+(?:{_P}{_RUN})?+",
    "<NUM> ": rf"{_DIGITS}{_P}{_RUN}(?:{_P}{_DIGITS}{_P}{_RUN})*+(?:{_P}{_DIGITS})?+",
    "<CJ>": f"[{_CJ}]",
}


@cache
def _patterns() -> "tuple[list[tuple[str, regex.Pattern[str]]], regex.Pattern[str]]":
    """(of each kind of token, of the first character of any). Compiling takes a while, and few need it."""
    kinds = [(kind.strip(), regex.compile(pattern, regex.VERSION1)) for kind, pattern in _KINDS.items()]
    return kinds, regex.compile(rf"{_A}|[{_CJ}]", regex.VERSION1)


_WINDOW = 8_192  # characters that one token may look at


class ClassicTokenizer:
    """A token longer than length_max UTF-16 units is left out, and its position stays empty."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self.consecutive = False

    def terms(self, text: str) -> list[str]:
        return [token.term for token in self.tokens(text)]

    def tokens(self, text: str) -> list[Token]:
        return [
            Token(text[start:end], start, end, kind, position)
            for position, (start, end, kind) in enumerate(_found(text))
            if utf16_length(text, start, end) <= self._length_max
        ]


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    patterns, beginning = _patterns()
    place = 0
    while (first := beginning.search(text, place)) is not None:
        start, limit = first.start(), first.start() + _WINDOW
        ends = [
            (match.end() if (match := pattern.match(text, start, limit)) else -1, kind)
            for kind, pattern in patterns
        ]
        end, kind = max(ends, key=lambda found: found[0])
        yield start, end, kind
        place = end


# URLs without a scheme need a top-level domain: that of a country, or a generic one that is much used. The
# root zone has a thousand more.
_DOMAINS = """
    aero app arpa asia bar biz blog cat cloud club com coop dev edu foo gov info int io jobs live mil mobi
    museum name net news online org page post pro shop site store tech tel top travel wiki xxx xyz ac ad
    ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv bw by bz
    ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj
    fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in
    iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me
    mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf
    pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st
    su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu
    wf ws ye yt za zm zw"""
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?+"
_TOP = rf"(?:{'|'.join(_DOMAINS.split())})(?![A-Za-z0-9_-])"
_IP = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.-])|\[[0-9A-Fa-f:.]{2,45}\]"
_HOST = rf"(?:{_LABEL}\.){{1,20}}{_TOP}"
_REST = r"(?::[0-9]{1,5}+)?+(?:[/?#](?:[A-Za-z0-9\-._~%!$&'()*+;=:@/?#]*[A-Za-z0-9\-_~%$&*+=@/#])?+)?+"
_URL = rf"(?:(?i:https?|ftps?|file)://(?:(?=/)|{_HOST}|{_IP}|{_LABEL}(?:\.{_LABEL}){{0,20}})|{_HOST}){_REST}"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}+"
_MAIL = rf"{_ATOM}(?:\.{_ATOM}){{0,20}}@{_HOST}"


@cache
def _web() -> "regex.Pattern[str]":
    pattern = rf"(?<![\w@.-])(?:(?P<mail>{_MAIL})|(?P<url>{_URL}))"
    return regex.compile(pattern, regex.VERSION1 | regex.IGNORECASE)


_TYPES = {"mail": "<EMAIL>", "url": "<URL>"}


class UrlTokenizer:
    """The standard tokenizer, which leaves URLs and addresses whole."""

    consecutive = True

    def __init__(self, length_max: int) -> None:
        self._words, self._length_max = StandardTokenizer(length_max), length_max

    def terms(self, text: str) -> list[str]:
        return [token.term for token in self.tokens(text)]

    def tokens(self, text: str) -> list[Token]:
        tokens: list[Token] = []
        place = 0
        for found in _web().finditer(text) if "." in text or "://" in text else ():
            start, end = found.span()
            if end - start <= self._length_max:
                tokens += self._between(text, place, start)
                tokens.append(Token(found[0], start, end, _TYPES[found.lastgroup or "url"]))
                place = end
        tokens += self._between(text, place, len(text))
        for position, token in enumerate(tokens):
            token.position = position
        return tokens

    def _between(self, text: str, start: int, end: int) -> list[Token]:
        tokens = self._words.tokens(text[start:end])
        for token in tokens:
            token.start_offset, token.end_offset = token.start_offset + start, token.end_offset + start
        return tokens
