"""What is checked in an RDF document before the native parser sees it, which would crash or be fooled.

Each guard sees the whole document, chunk after chunk, and keeps nothing but a few numbers of it.
"""

import codecs
import re
from typing import ClassVar, Protocol
from xml.parsers import expat

from graphdb.errors import RdfSyntaxError

__all__ = ["DEPTH_MAX", "XML_DEPTH_MAX", "Guard", "JsonDepthGuard", "Utf8Guard", "XmlGuard"]

DEPTH_MAX = 200  # JSON-LD: 6,000 nested objects overflow the stack of the native parser
XML_DEPTH_MAX = 1_000  # RDF/XML: the native parser takes quadratic time in the depth, a minute at 100,000


class Guard(Protocol):
    """Raises RdfSyntaxError from either method."""

    def check(self, chunk: bytes) -> None:
        """See the next chunk."""

    def finish(self) -> None:
        """See the end of the document."""


class Utf8Guard:
    """Refuses what is not UTF-8, wherever it stands; the native parsers do not look into comments."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line = self._column = 1

    def check(self, chunk: bytes, final: bool = False) -> None:
        try:
            self._advance(self._decoder.decode(chunk, final))
        except UnicodeDecodeError as error:
            self._advance(error.object[: error.start].decode())
            raise RdfSyntaxError(f"not UTF-8: {error.reason}", self._line, self._column) from None

    def finish(self) -> None:
        self.check(b"", final=True)

    def _advance(self, text: str) -> None:
        newline = text.rfind("\n")
        if newline >= 0:
            self._line += text.count("\n")
            self._column = len(text) - newline
        else:
            self._column += len(text)


class JsonDepthGuard:
    """Refuses JSON nested deeper than DEPTH_MAX; brackets in strings do not count."""

    _STRING = re.compile(rb'"(?:[^"\\]++|\\.|)*+"', re.DOTALL)
    _STRING_REST = re.compile(rb'(?:[^"\\]++|\\.|)*+', re.DOTALL)
    _NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
    _STEP: ClassVar = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._carry = b""  # an escape cut in two: at most the backslash

    def check(self, chunk: bytes) -> None:
        text, self._carry = self._carry + chunk, b""
        if self._in_string:
            text = self._after_string(text)
        outside, quote, begun = self._STRING.sub(b"", text).partition(b'"')
        if quote:
            self._in_string = True
            self._after_string(begun)
        for bracket in outside.translate(None, self._NO_BRACKETS):
            self._depth += self._STEP[bracket]
            if self._depth > DEPTH_MAX:
                raise RdfSyntaxError(f"nested more than {DEPTH_MAX} levels deep")

    def finish(self) -> None:
        """Nothing: the parser knows whether the document is whole."""

    def _after_string(self, text: bytes) -> bytes:
        """What follows the string that text begins in; sets the state if that does not end here."""
        match = self._STRING_REST.match(text)
        assert match is not None
        end = match.end()
        if text[end : end + 1] == b'"':
            self._in_string = False
            return text[end + 1 :]
        self._carry = text[end:]
        return b""


class XmlGuard:
    """Refuses XML that is not well-formed or not whole, is nested deeper than XML_DEPTH_MAX or has a DOCTYPE.

    The native parser takes a truncated document for a whole one, and expands entities without bound.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._on_doctype
        self._parser.StartElementHandler = self._on_start
        self._parser.EndElementHandler = self._on_end

    def check(self, chunk: bytes, final: bool = False) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            raise RdfSyntaxError(expat.ErrorString(error.code), error.lineno, error.offset + 1) from None
        except (ValueError, LookupError) as error:  # of the encodings that Python finds for expat
            raise self._error(f"the XML declaration: {error}") from None

    def finish(self) -> None:
        self.check(b"", final=True)

    def _on_doctype(self, *declaration: object) -> None:
        raise self._error("RDF/XML with a DOCTYPE is refused")

    def _on_start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > XML_DEPTH_MAX:
            raise self._error(f"nested more than {XML_DEPTH_MAX} levels deep")

    def _on_end(self, name: str) -> None:
        self._depth -= 1

    def _error(self, reason: str) -> RdfSyntaxError:
        return RdfSyntaxError(reason, self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)
