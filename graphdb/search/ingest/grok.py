"""`Grok`: expressions of named patterns, `%{SYNTAX:semantic:type}`, over regular expressions.

The patterns have the names that Logstash gave them and match what its documentation says of each; the regular
expressions are ours. `GET _ingest/processor/grok` shows them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from graphdb.search.analysis.parameters import JavaPattern
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["PATTERNS", "Grok"]

_MONTH_NAMES = "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?"
_MONTH_NAMES += "|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
PATTERNS: dict[str, str] = {
    # texts and numbers
    "WORD": r"\b\w+\b",
    "NOTSPACE": r"\S+",
    "SPACE": r"\s*",
    "DATA": r".*?",
    "GREEDYDATA": r".*",
    "GREEDYMULTILINE": r"(?s:.*)",
    "QUOTEDSTRING": r"\"(?:\\.|[^\\\"]|)*+\"|'(?:\\.|[^\\']|)*+'|`(?:\\.|[^\\`]|)*+`",
    "QS": r"%{QUOTEDSTRING}",
    "UUID": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "INT": r"[+-]?[0-9]+",
    "BASE10NUM": r"(?<![0-9.+-])[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)",
    "NUMBER": r"%{BASE10NUM}",
    "BASE16NUM": r"(?<![0-9A-Fa-f])[+-]?(?:0x)?[0-9A-Fa-f]+",
    "POSINT": r"\b[1-9][0-9]*\b",
    "NONNEGINT": r"\b[0-9]+\b",
    "USERNAME": r"[a-zA-Z0-9._-]+",
    "USER": r"%{USERNAME}",
    "EMAILLOCALPART": r"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+)*",
    "EMAILADDRESS": r"%{EMAILLOCALPART}@%{HOSTNAME}",
    "HTTPDUSER": r"%{EMAILADDRESS}|%{USER}",
    # the network
    "MAC": r"%{CISCOMAC}|%{WINDOWSMAC}|%{COMMONMAC}",
    "CISCOMAC": r"(?:[A-Fa-f0-9]{4}\.){2}[A-Fa-f0-9]{4}",
    "WINDOWSMAC": r"(?:[A-Fa-f0-9]{2}-){5}[A-Fa-f0-9]{2}",
    "COMMONMAC": r"(?:[A-Fa-f0-9]{2}:){5}[A-Fa-f0-9]{2}",
    "IPV4": rf"(?<![0-9])(?:{_OCTET}\.){{3}}{_OCTET}(?![0-9])",
    "IPV6": r"(?<![:.\w])(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}"
    r"|(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,5})?::(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,5})?)"
    r"(?:%[0-9A-Za-z]+)?(?![:.\w])",
    "IP": r"%{IPV4}|%{IPV6}",
    "HOSTNAME": r"\b[0-9A-Za-z][0-9A-Za-z-]{0,62}(?:\.[0-9A-Za-z][0-9A-Za-z-]{0,62})*\.?\b",
    "IPORHOST": r"%{IP}|%{HOSTNAME}",
    "HOSTPORT": r"%{IPORHOST}:%{POSINT}",
    # paths and addresses
    "UNIXPATH": r"(?:/[\w%!$@:.,+~-]*)+",
    "WINPATH": r"(?:[A-Za-z]+:|\\)(?:\\[^\\?*]*)+",
    "PATH": r"%{UNIXPATH}|%{WINPATH}",
    "URIPROTO": r"[A-Za-z][A-Za-z0-9+.-]*",
    "URIHOST": r"%{IPORHOST}(?::%{POSINT})?",
    "URIPATH": r"(?:/[A-Za-z0-9$.+!*'(){},~:;=@#%&_|-]*)+",
    "URIPARAM": r"\?[A-Za-z0-9$.+!*'|(){},~@#%&/=:;_?\-\[\]<>]*",
    "URIPATHPARAM": r"%{URIPATH}(?:%{URIPARAM})?",
    "URI": r"%{URIPROTO}://(?:%{USER}(?::[^@]*)?@)?(?:%{URIHOST})?(?:%{URIPATHPARAM})?",
    # dates
    "MONTH": rf"\b(?:{_MONTH_NAMES})\b",
    "MONTHNUM": r"0?[1-9]|1[0-2]",
    "MONTHNUM2": r"0[1-9]|1[0-2]",
    "MONTHDAY": r"0[1-9]|[12][0-9]|3[01]|[1-9]",
    "DAY": r"Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?",
    "YEAR": r"[0-9]{4}|[0-9]{2}",
    "HOUR": r"2[0123]|[01]?[0-9]",
    "MINUTE": r"[0-5][0-9]",
    "SECOND": r"(?:[0-5]?[0-9]|60)(?:[:.,][0-9]+)?",
    "TIME": r"(?<![0-9])%{HOUR}:%{MINUTE}(?::%{SECOND})?(?![0-9])",
    "DATE_US": r"%{MONTHNUM}[/-]%{MONTHDAY}[/-]%{YEAR}",
    "DATE_EU": r"%{MONTHDAY}[./-]%{MONTHNUM}[./-]%{YEAR}",
    "DATE": r"%{DATE_US}|%{DATE_EU}",
    "DATESTAMP": r"%{DATE}[- ]%{TIME}",
    "ISO8601_TIMEZONE": r"Z|[+-]%{HOUR}(?::?%{MINUTE})",
    "ISO8601_SECOND": r"%{SECOND}",
    "TIMESTAMP_ISO8601": r"%{YEAR}-%{MONTHNUM}-%{MONTHDAY}[T ]%{HOUR}:?%{MINUTE}(?::?%{SECOND})?"
    r"(?:%{ISO8601_TIMEZONE})?",
    "TZ": r"[A-Z]{3}|UTC",
    "DATESTAMP_RFC822": r"%{DAY} %{MONTH} %{MONTHDAY} %{YEAR} %{TIME} %{TZ}",
    "HTTPDATE": r"%{MONTHDAY}/%{MONTH}/%{YEAR}:%{TIME} %{INT}",
    "SYSLOGTIMESTAMP": r"%{MONTH} +%{MONTHDAY} %{TIME}",
    # logs
    "PROG": r"[\x21-\x5a\x5c\x5e-\x7e]+",
    "SYSLOGPROG": r"%{PROG:program}(?:\[%{POSINT:pid}\])?",
    "SYSLOGHOST": r"%{IPORHOST}",
    "SYSLOGFACILITY": r"<%{NONNEGINT:facility}\.%{NONNEGINT:priority}>",
    "SYSLOGBASE": r"%{SYSLOGTIMESTAMP:timestamp} (?:%{SYSLOGFACILITY} )?%{SYSLOGHOST:logsource} "
    r"%{SYSLOGPROG}:",
    "LOGLEVEL": r"(?i:alert|trace|debug|notice|info(?:rmation)?|warn(?:ing)?|err(?:or)?|crit(?:ical)?"
    r"|fatal|severe|emerg(?:ency)?)",
    "COMMONAPACHELOG": r"%{IPORHOST:clientip} %{HTTPDUSER:ident} %{HTTPDUSER:auth} \[%{HTTPDATE:timestamp}\] "
    r"\"(?:%{WORD:verb} %{NOTSPACE:request}(?: HTTP/%{NUMBER:httpversion})?|%{DATA:rawrequest})\" "
    r"(?:-|%{NUMBER:response}) (?:-|%{NUMBER:bytes})",
    "COMBINEDAPACHELOG": r"%{COMMONAPACHELOG} %{QS:referrer} %{QS:agent}",
}
_PART = re.compile(r"%\{(\w{1,100})(?::([\w.@\[\]-]{1,200}))?(?::(int|long|float|double|boolean))?\}")
_NAMED = re.compile(r"\(\?<([\w.@-]{1,200})>")
_LENGTH_MAX = 20_000  # characters of an expression with its patterns in it
_DEPTH_MAX = 20
_TYPES: dict[str | None, Any] = {
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": lambda text: text.lower() == "true",
}


class Grok:
    """One expression. Errors: illegal_argument_exception, where it names no pattern, or is none."""

    def __init__(self, expression: str, own: Mapping[str, Any] | None = None) -> None:
        """own: patterns that count before those that are known."""
        self._own = own or {}
        self._captured: list[tuple[str, str | None]] = []  # path and type, by number of the group
        self._length = 0
        self._pattern = JavaPattern(self._expanded(expression, 0), length_max=_LENGTH_MAX)

    def match(self, text: str) -> dict[str, Any] | None:
        """The parts that have a name, anywhere in the text; None where nothing matches.

        Errors: illegal_argument_exception where it takes too long, or a part is not of its type.
        """
        found = next(self._pattern.finditer(text), None)
        if found is None:
            return None
        values: dict[str, Any] = {}
        for number, (path, kind) in enumerate(self._captured):
            value = found.group(f"g{number}")
            if value is None or path in values:
                continue
            try:
                values[path] = value if kind is None else _TYPES[kind](value)
            except ValueError:
                raise illegal_argument(f"[{value[:200]}] is no {kind}") from None
        return values

    def extents(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, name) of all parts that have a name, everywhere in the text.

        Errors: illegal_argument_exception where it takes too long.
        """
        for found in self._pattern.finditer(text):
            for number, (path, _) in enumerate(self._captured):
                start, end = found.span(f"g{number}")
                if 0 <= start < end:
                    yield start, end, path

    def _expanded(self, expression: str, depth: int) -> str:
        if depth > _DEPTH_MAX:
            raise illegal_argument("circular reference in the patterns of a Grok expression")
        expression = _NAMED.sub(lambda found: f"(?P<{self._group(found[1], None)}>", expression)
        pieces, at = [], 0
        for found in _PART.finditer(expression):
            inner = self._expanded(self._definition(found[1]), depth + 1)
            name = None if found[2] is None else self._group(found[2], found[3])
            pieces += [
                expression[at : found.start()],
                f"(?:{inner})" if name is None else f"(?P<{name}>{inner})",
            ]
            at = found.end()
        made = "".join([*pieces, expression[at:]])
        self._length += len(made)
        if self._length > _LENGTH_MAX * 10 or len(made) > _LENGTH_MAX:
            raise illegal_argument(f"a Grok expression is longer than [{_LENGTH_MAX}] characters")
        return made

    def _definition(self, name: str) -> str:
        found = self._own.get(name, PATTERNS.get(name))
        if not isinstance(found, str):
            raise SearchError(
                "illegal_argument_exception", f"Unable to find pattern [{name}] in Grok's pattern dictionary"
            )
        return found

    def _group(self, path: str, kind: str | None) -> str:
        self._captured.append((path.replace("][", ".").strip("[]"), kind))
        return f"g{len(self._captured) - 1}"
