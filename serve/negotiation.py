"""Media types: parses Content-Type, and chooses a format by Accept (RFC 9110, 8.3.1 and 12.5.1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from graphdb.errors import InvalidParameter, NotAcceptable, RequestError

__all__ = ["MediaType", "Offer", "choose", "parse_media_type", "wants_page"]

T = TypeVar("T")

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# A value that is not a token should be quoted; many clients send the IRI of a profile without quotes.
_VALUE = r'"(?:[^"\\]|\\.)*"|[^\s;,"]+'
_PARAMETER = re.compile(rf"\s*;\s*(?:({_TOKEN})=({_VALUE}))?", re.ASCII)
_TYPE = re.compile(rf"\s*({_TOKEN})(?:/({_TOKEN}))?", re.ASCII)
_ELEMENT = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
_QUALITY = re.compile(r"0?\.\d{1,3}|0(?:\.\d{0,3})?|1(?:\.0{0,3})?", re.ASCII)
# Parameters that every text answer of this service satisfies.
_ALWAYS = frozenset({("charset", "utf-8"), ("version", "1.2")})


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type or range. name is "type/subtype"; it and parameter names are in lower case."""

    name: str
    parameters: frozenset[tuple[str, str]] = frozenset()

    def parameter(self, name: str) -> str | None:
        return next((value for key, value in self.parameters if key == name), None)


@dataclass(frozen=True, slots=True)
class Offer(Generic[T]):
    """A format that can be sent, and its media type."""

    media_type: MediaType
    value: T


@dataclass(frozen=True, slots=True)
class _Range:
    media_type: MediaType
    quality: float
    position: int  # in the header, from 0

    def specificity(self, offered: MediaType) -> int | None:
        """How specific this range is for an offered type: larger is more specific; None if it does not
        match.
        """
        wanted = self.media_type.parameters - _ALWAYS
        if not wanted <= offered.parameters:
            return None
        kind, _, subtype = self.media_type.name.partition("/")
        if self.media_type.name == offered.name:
            return 2 + len(wanted)
        if subtype == "*" and kind == offered.name.partition("/")[0]:
            return 1
        return 0 if self.media_type.name == "*/*" else None


@lru_cache(maxsize=512)
def parse_media_type(text: str) -> MediaType:
    """Read "type/subtype; name=value". Raises ValueError if it is malformed."""
    start = _TYPE.match(text)
    if start is None or not (start[2] or start[1] == "*"):
        raise ValueError(f"malformed media type {text!r}")
    parameters, end = [], start.end()
    while (parameter := _PARAMETER.match(text, end)) is not None:
        end = parameter.end()
        if parameter[1]:
            parameters.append(_normal(parameter[1].lower(), parameter[2]))
    if text[end:].strip():
        raise ValueError(f"malformed media type {text!r}")
    # Old Java clients send "*" for "*/*".
    return MediaType(f"{start[1]}/{start[2] or '*'}".lower(), frozenset(parameters))


def _normal(name: str, value: str) -> tuple[str, str]:
    if value.startswith('"'):
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    return name, value.lower() if name == "charset" else value


def choose(accept: str | None, offers: tuple[Offer[T], ...]) -> Offer[T]:
    """The offer that the client prefers.

    accept: the header, None without one. offers: in the server's order of preference. The most specific range
    that matches an offer decides its quality. Among equal qualities the more specific range wins, then the
    earlier one, then the server's order.
    Raises NotAcceptable, and InvalidParameter for a header without a single well-formed element.
    """
    if accept is None or not accept.strip():
        return offers[0]
    ranges = _parse_accept(accept)
    best, best_rank = None, (0.0, 0, 0)
    for offer in offers:
        rank = _rank(offer.media_type, ranges)
        if rank[0] > 0 and (best is None or rank > best_rank):
            best, best_rank = offer, rank
    if best is None:
        raise NotAcceptable(accept, tuple(dict.fromkeys(_written(offer.media_type) for offer in offers)))
    return best


# JSON first: a client without Accept, or with */*, is a program.
_PROGRAM_OR_BROWSER = (Offer(MediaType("application/json"), False), Offer(MediaType("text/html"), True))


def wants_page(accept: str | None) -> bool:
    """Whether a client is a browser: its Accept header prefers text/html to JSON."""
    try:
        return choose(accept, _PROGRAM_OR_BROWSER).value
    except RequestError:
        return False


def _rank(offered: MediaType, ranges: Sequence[_Range]) -> tuple[float, int, int]:
    """(quality, specificity, earliness); quality 0 if no range matches or the client refuses the type."""
    fitting = [
        (specificity, -r.position, r.quality)
        for r in ranges
        if (specificity := r.specificity(offered)) is not None
    ]
    if not fitting:
        return (0.0, 0, 0)
    specificity, earliness, quality = max(fitting)
    return (quality, specificity, earliness)


def _parse_accept(header: str) -> list[_Range]:
    """The well-formed elements of the header. Others are ignored: browsers and proxies damage some."""
    ranges = []
    for position, element in enumerate(_ELEMENT.findall(header)):
        try:
            media_type = parse_media_type(element)
        except ValueError:
            continue
        weight = media_type.parameter("q") or "1"
        if _QUALITY.fullmatch(weight):
            rest = frozenset(pair for pair in media_type.parameters if pair[0] != "q")
            ranges.append(_Range(MediaType(media_type.name, rest), float(weight), position))
    if not ranges:
        raise InvalidParameter("Accept", f"{header!r} holds no media type")
    return ranges


def _written(media_type: MediaType) -> str:
    parameters = "".join(f'; {name}="{value}"' for name, value in sorted(media_type.parameters))
    return media_type.name + parameters
