"""The tokenizers that settings can name, and their parameters."""

from collections.abc import Callable

import regex

from graphdb.search.analysis.case import java_lower
from graphdb.search.analysis.classic_tokenizers import ClassicTokenizer, UrlTokenizer
from graphdb.search.analysis.parameters import JavaPattern, Parameters
from graphdb.search.analysis.thai import ThaiTokenizer
from graphdb.search.analysis.token import Tokenizer
from graphdb.search.analysis.tokenizers import (
    CHARACTER_CLASSES,
    PathTokenizer,
    SpanTokenizer,
    StandardTokenizer,
    grams,
    letters,
    not_whitespace,
    pattern_spans,
    runs,
    whole,
)
from graphdb.search.errors import illegal_argument

__all__ = ["PREDEFINED_TOKENIZERS", "TOKENIZERS", "check_gram_sizes", "gram_sizes"]

_LENGTH_MAX = 255
_GRAM_MAX = 1024  # characters


def _standard(parameters: Parameters, max_diff: int) -> Tokenizer:
    return StandardTokenizer(parameters.number("max_token_length", _LENGTH_MAX, 1))


def _whitespace(parameters: Parameters, max_diff: int) -> Tokenizer:
    return SpanTokenizer(not_whitespace, parameters.number("max_token_length", _LENGTH_MAX, 1))


def _letter(parameters: Parameters, max_diff: int) -> Tokenizer:
    return SpanTokenizer(letters, _LENGTH_MAX)


def _lowercase(parameters: Parameters, max_diff: int) -> Tokenizer:
    return SpanTokenizer(letters, _LENGTH_MAX, java_lower)


def _keyword(parameters: Parameters, max_diff: int) -> Tokenizer:
    return SpanTokenizer(whole)


def _pattern(parameters: Parameters, max_diff: int) -> Tokenizer:
    pattern = JavaPattern(parameters.text("pattern", r"\W+"), parameters.text("flags", ""))
    group = parameters.number("group", -1, -1)
    if group > pattern.groups:
        raise illegal_argument(
            f"invalid group specified: pattern only has: {pattern.groups} capturing groups"
        )
    return SpanTokenizer(pattern_spans(pattern, group))


def _ngram(parameters: Parameters, max_diff: int) -> Tokenizer:
    low, high = gram_sizes(parameters, 2)
    check_gram_sizes(low, high, max_diff, "Tokenizer")
    return SpanTokenizer(grams(_token_chars(parameters), low, high, edges_only=False))


def _edge_ngram(parameters: Parameters, max_diff: int) -> Tokenizer:
    low, high = gram_sizes(parameters, 2)
    check_gram_sizes(low, high, None, "Tokenizer")
    return SpanTokenizer(grams(_token_chars(parameters), low, high, edges_only=True))


def gram_sizes(parameters: Parameters, high_default: int) -> tuple[int, int]:
    """The shortest and the longest gram, bounded so that a long text cannot make terms without end."""
    low = parameters.number("min_gram", 1, 1, _GRAM_MAX)
    return low, parameters.number("max_gram", high_default, 1, _GRAM_MAX)


def check_gram_sizes(low: int, high: int, max_diff: int | None, component: str) -> None:
    """Illegal argument where the sizes are the wrong way round or too far apart; None: they may be."""
    if low > high:
        raise illegal_argument("minGram must not be greater than maxGram")
    if max_diff is not None and high - low > max_diff:
        raise illegal_argument(
            f"The difference between max_gram and min_gram in NGram {component} must be less than or equal "
            f"to: [{max_diff}] but was [{high - low}]. This limit can be set by changing the "
            "[index.max_ngram_diff] index level setting."
        )


def _token_chars(parameters: Parameters) -> Callable[[str], list[tuple[int, int]]]:
    """The parts of a text that grams are taken from: all of it by default."""
    names = parameters.words("token_chars")
    if not names:
        return whole
    parts: list[str] = []
    for name in names:
        if name.lower() == "custom":
            parts += map(_escaped, parameters.text("custom_token_chars", ""))
        elif name.lower() in CHARACTER_CLASSES:
            parts.append(CHARACTER_CLASSES[name.lower()])
        else:
            allowed = ", ".join([*sorted(CHARACTER_CLASSES), "custom"])
            raise illegal_argument(f"Unknown token type: '{name.lower()}', must be one of [{allowed}]")
    return runs(f"[{''.join(parts)}]")


def _char_group(parameters: Parameters, max_diff: int) -> Tokenizer:
    parts = []
    for name in parameters.lines("tokenize_on_chars") or []:
        if name in CHARACTER_CLASSES:
            parts.append(CHARACTER_CLASSES[name])
        elif len(name) == 1 or (len(name) == 2 and name[0] == "\\"):
            parts.append(_escaped({"\\n": "\n", "\\t": "\t", "\\r": "\r"}.get(name, name[-1])))
        else:
            raise illegal_argument(f"Invalid escaped char in [{name}]")
    length_max = parameters.number("max_token_length", _LENGTH_MAX, 1)
    return SpanTokenizer(runs(f"[^{''.join(parts)}]") if parts else whole, length_max)


def _escaped(char: str) -> str:
    escaped: str = regex.escape(char, special_only=False)
    return escaped


def _path(parameters: Parameters, max_diff: int) -> Tokenizer:
    delimiter = parameters.text("delimiter", "/")
    replacement = parameters.text("replacement", delimiter)
    if len(delimiter) != 1:
        raise illegal_argument("delimiter must be a one char value")
    if len(replacement) != 1:
        raise illegal_argument("replacement must be a one char value")
    return PathTokenizer(
        delimiter, replacement, parameters.flag("reverse", False), parameters.number("skip", 0)
    )


def _classic(parameters: Parameters, max_diff: int) -> Tokenizer:
    return ClassicTokenizer(parameters.number("max_token_length", _LENGTH_MAX, 1))


def _uax_url_email(parameters: Parameters, max_diff: int) -> Tokenizer:
    return UrlTokenizer(parameters.number("max_token_length", _LENGTH_MAX, 1))


def _simple_pattern(parameters: Parameters, max_diff: int) -> Tokenizer:
    pattern = _lucene_pattern(parameters)
    return SpanTokenizer(pattern_spans(pattern, 0) if pattern else lambda text: [])


def _simple_pattern_split(parameters: Parameters, max_diff: int) -> Tokenizer:
    pattern = _lucene_pattern(parameters)
    return SpanTokenizer(pattern_spans(pattern, -1) if pattern else whole)


_LUCENE_ONLY = regex.compile(r'(?:[^\\]|^)(?:\\\\)*[~&<@#"]')
_ANCHORS = regex.compile(r"\\.|\[[^\]]*\]|[$^]", regex.DOTALL)


def _lucene_pattern(parameters: Parameters) -> JavaPattern | None:
    """Of the longest match, in what Lucene's and Java's syntax have in common; None where it is empty."""
    text = parameters.text("pattern", "")
    if _LUCENE_ONLY.search(text):
        raise illegal_argument(
            f'pattern [{text[:100]}]: the operators ~ & < @ # and " are not supported here'
        )
    literal = _ANCHORS.sub(lambda found: f"\\{found[0]}" if found[0] in "$^" else found[0], text)
    return JavaPattern(literal, longest=True) if text else None


def _thai(parameters: Parameters, max_diff: int) -> Tokenizer:
    return ThaiTokenizer()


# By type; the number is the largest difference that `ngram` may have between its sizes.
TOKENIZERS: dict[str, Callable[[Parameters, int], Tokenizer]] = {
    "standard": _standard,
    "whitespace": _whitespace,
    "letter": _letter,
    "lowercase": _lowercase,
    "keyword": _keyword,
    "pattern": _pattern,
    "ngram": _ngram,
    "edge_ngram": _edge_ngram,
    "char_group": _char_group,
    "classic": _classic,
    "path_hierarchy": _path,
    "simple_pattern": _simple_pattern,
    "simple_pattern_split": _simple_pattern_split,
    "thai": _thai,
    "uax_url_email": _uax_url_email,
}
PREDEFINED_TOKENIZERS = TOKENIZERS.keys() - {"char_group"}
