"""Versions of software as terms that sort by precedence.

A valid version is numbers with dots, then perhaps `-pre.release` and `+build`; `1.2` and `1.2.3.4` are valid
too. In its term each group of digits has its length before it, a version without a pre-release sorts after
those with one, and the numeric identifiers of a pre-release sort before the others. What is no version sorts
after all versions, as text.

Source: https://semver.org/ section 11, and the documentation of Elasticsearch's field type `version`.
"""

import re

__all__ = ["version_of", "version_term"]

_LENGTH_MAX = 8_000
_IDENTIFIER = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION = re.compile(
    rf"((?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*))*)(-{_IDENTIFIER}(?:\.{_IDENTIFIER})*)?(\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_DIGITS = re.compile(r"\d+", re.ASCII)
_VALID, _OTHER = "\x01", "\x02"
_NUMERIC, _PRE_RELEASE, _RELEASE = "\x03", "\x04", "\x05"  # all of them before `+`, `-` and `.`
_MARKS = re.compile(r"[\x01-\x05\x80-\U0010ffff]")
_LENGTHS = 0x80  # the character before a group of digits is this one and its length further on


def version_term(text: str) -> str:
    """The term of a version, and of what is none."""
    match = _VERSION.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if match is None:
        return _OTHER + text
    numbers, pre_release, build = match.groups()
    if pre_release is None:
        rest = _RELEASE
    else:
        parts = pre_release[1:].split(".")
        marked = (_NUMERIC + part if part.isdigit() else part for part in parts)
        rest = _PRE_RELEASE + "-" + ".".join(map(_with_lengths, marked))
    return _VALID + _with_lengths(numbers) + rest + (build or "")


def _with_lengths(text: str) -> str:
    return _DIGITS.sub(lambda digits: chr(_LENGTHS + len(digits[0])) + digits[0], text)


def version_of(term: str) -> str:
    """The version as it was given."""
    return _MARKS.sub("", term) if term[:1] == _VALID else term[1:]
