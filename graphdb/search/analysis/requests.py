"""The answer of `_analyze`."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

from graphdb.search.analysis.analyzer import Analyzer
from graphdb.search.analysis.analyzers import Analyzers, Failure
from graphdb.search.analysis.token import Token
from graphdb.search.analysis.tokenizers import utf16_length
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage

__all__ = ["TOKENS_MAX", "FieldMapping", "analyze"]

TOKENS_MAX = 10_000  # the default of index.analyze.max_token_count
_CHARACTERS_PER_TOKEN = 100
_MEMBERS = {
    "analyzer",
    "tokenizer",
    "filter",
    "char_filter",
    "normalizer",
    "field",
    "text",
    "explain",
    "attributes",
}


class FieldMapping(Protocol):
    """What of a mapping is needed: its fields by path."""

    def field(self, path: str) -> FieldSpec | None: ...


def analyze(
    body: Mapping[str, Any],
    analyzers: Analyzers | None,
    mapping: FieldMapping | None = None,
    tokens_max: int = TOKENS_MAX,
) -> dict[str, Any]:
    """analyzers is None where the request names no index. Offsets in the answer count UTF-16 units.

    Errors: illegal_state_exception for more than tokens_max tokens, illegal_argument_exception for texts of
    more than 100 characters for each of these, and what is wrong with the request.
    """
    texts = _texts(body)
    _check_length(texts, tokens_max)
    analyzer = _chosen(body, analyzers, mapping)
    if body.get("explain") in (True, "true"):
        return {"detail": _explained(body, analyzer, texts, tokens_max)}
    answer: list[dict[str, Any]] = []
    position = offset = 0
    for text in texts:
        tokens, end = analyzer.with_end(text)
        if len(answer) + len(tokens) > tokens_max:
            raise _too_many_tokens(tokens_max)  # before they are shown, which takes the most memory
        answer += _shown(tokens, text, position, offset)
        position += end + analyzer.position_gap
        offset += utf16_length(text, 0, len(text)) + 1
    return {"tokens": answer}


def _texts(body: Mapping[str, Any]) -> list[str]:
    unknown = sorted(body.keys() - _MEMBERS)
    if unknown:
        raise SearchError("x_content_parse_exception", f"[analyze_request] unknown field [{unknown[0]}]")
    _check_shapes(body)
    text = body.get("text")
    texts = text if isinstance(text, list) else [] if text is None else [text]
    if not texts:
        raise SearchError("action_request_validation_exception", "Validation Failed: 1: text is missing;")
    if not all(isinstance(item, str | int | float) for item in texts):
        raise _wrong_shape("text", next(item for item in texts if not isinstance(item, str | int | float)))
    return [item if isinstance(item, str) else str(item).lower() for item in texts]


_SHAPES: Mapping[str, tuple[type[Any], ...]] = {
    "text": (str, list),
    "analyzer": (str,),
    "normalizer": (str,),
    "field": (str,),
    "tokenizer": (str, dict),
    "filter": (list,),
    "char_filter": (list,),
    "attributes": (list,),
}


def _check_shapes(body: Mapping[str, Any]) -> None:
    """Errors: x_content_parse_exception."""
    for name, shapes in _SHAPES.items():
        if name in body and not isinstance(body[name], shapes):
            raise _wrong_shape(name, body[name])
    if body.get("explain", False) not in (True, False, "true", "false"):
        reason = (
            f"Failed to parse value [{str(body['explain'])[:100]}] as only [true] or [false] are allowed."
        )
        raise SearchError(
            "x_content_parse_exception",
            "[analyze_request] failed to parse field [explain]",
            cause=illegal_argument(reason),
        )


def _wrong_shape(name: str, value: Any) -> SearchError:
    tokens = {str: "VALUE_STRING", bool: "VALUE_BOOLEAN", dict: "START_OBJECT", list: "START_ARRAY"}
    token = "VALUE_NULL" if value is None else tokens.get(type(value), "VALUE_NUMBER")
    reason = f"[analyze_request] {name} doesn't support values of type: {token}"
    return SearchError("x_content_parse_exception", reason)


def _check_chosen(body: Mapping[str, Any], has_index: bool) -> None:
    """Errors: action_request_validation_exception."""
    problems = []
    extras = [name for name in ("filter", "char_filter") if body.get(name)]
    if body.get("normalizer") is not None and not has_index:
        problems.append("index is required if normalizer is specified")
    if body.get("analyzer") is not None and (extras or body.get("tokenizer") is not None):
        problems.append("cannot define extra components on a named analyzer")
    if body.get("normalizer") is not None and (extras or body.get("tokenizer") is not None):
        problems.append("cannot define extra components on a named normalizer")
    if problems:
        listed = "".join(f"{number}: {one};" for number, one in enumerate(problems, 1))
        raise SearchError("action_request_validation_exception", f"Validation Failed: {listed}")


def _check_length(texts: Sequence[str], tokens_max: int) -> None:
    """All tokens of a text are made before they are counted, and take some hundred times its memory."""
    characters, most = sum(map(len, texts)), _CHARACTERS_PER_TOKEN * max(tokens_max, TOKENS_MAX)
    if characters > most:
        raise illegal_argument(f"[text] has [{characters}] characters, and [_analyze] takes at most [{most}]")


def _chosen(body: Mapping[str, Any], analyzers: Analyzers | None, mapping: FieldMapping | None) -> Analyzer:
    filters, char_filters = _list(body, "filter"), _list(body, "char_filter")
    known = analyzers or Analyzers.of({})
    scope = "global " if analyzers is None else ""
    failure = Failure(f"failed to find {scope}{{kind}} under [{{name}}]")
    _check_chosen(body, analyzers is not None)
    if (name := body.get("analyzer")) is not None:
        return _named(known.find(str(name)), f"failed to find {scope}analyzer [{name}]")
    if (tokenizer := body.get("tokenizer")) is not None:
        return known.components.chain(tokenizer, filters, char_filters, failure, 100)
    if (name := body.get("normalizer")) is not None:
        return _named(known.find_normalizer(str(name)), f"failed to find normalizer under [{name}]")
    if filters or char_filters:
        return known.components.chain("keyword", filters, char_filters, failure, 100)
    if (path := body.get("field")) is not None:
        return _of_field(str(path), known, mapping)
    return known.analyzer(known.default)


def _named(found: Analyzer | None, message: str) -> Analyzer:
    if found is None:
        raise illegal_argument(message)
    return found


def _of_field(path: str, analyzers: Analyzers, mapping: FieldMapping | None) -> Analyzer:
    if mapping is None:
        raise illegal_argument("analysis based on a specific field requires an index")
    spec = mapping.field(path)
    if spec is None:
        return analyzers.analyzer(analyzers.default)
    if spec.storage is Storage.TEXT:
        return analyzers.analyzer(spec.analyzer)
    if spec.type != "keyword":
        raise illegal_argument(
            f"Can't process field [{path}], Analysis requests are only supported on tokenized fields"
        )
    normalizer = spec.options.get("normalizer")
    found = analyzers.find_normalizer(str(normalizer)) if normalizer else None
    return found or analyzers.analyzer("keyword")


def _list(body: Mapping[str, Any], key: str) -> list[Any]:
    value = body.get(key)
    return value if isinstance(value, list) else [] if value is None else [value]


def _shown(tokens: list[Token], text: str, position: int, offset: int) -> list[dict[str, Any]]:
    units = _units(text)
    return [
        {
            "token": token.term,
            "start_offset": offset + units[token.start_offset],
            "end_offset": offset + units[token.end_offset],
            "type": token.type,
            "position": position + token.position,
            **({"positionLength": token.position_length} if token.position_length > 1 else {}),
        }
        for token in tokens
    ]


def _explained(
    body: Mapping[str, Any], analyzer: Analyzer, texts: Sequence[str], tokens_max: int
) -> dict[str, Any]:
    """What each component makes of the texts; of an analyzer that comes as it is, what it makes of them."""
    wanted = body.get("attributes")
    attributes = None if not wanted else frozenset(wanted if isinstance(wanted, list) else [wanted])
    found = [analyzer.stages(text) for text in texts]

    def tokens(stage: int) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        position = offset = 0
        for text, (_, stages) in zip(texts, found, strict=True):
            of_text = stages[stage]
            if len(shown) + len(of_text) > tokens_max:
                raise _too_many_tokens(tokens_max)
            shown += _detailed(of_text, text, position, offset, attributes)
            position += (of_text[-1].position + 1 if of_text else 0) + analyzer.position_gap
            offset += utf16_length(text, 0, len(text)) + 1
        return shown

    names = analyzer.names
    if names is None:
        name = body.get("analyzer") or "default"
        return {"custom_analyzer": False, "analyzer": {"name": str(name), "tokens": tokens(-1)}}
    char_filters = [
        {"name": name, "filtered_text": [filtered[number] for filtered, _ in found]}
        for number, name in enumerate(names.char_filters)
    ]
    filters = [{"name": name, "tokens": tokens(number)} for number, name in enumerate(names.filters, start=1)]
    return {
        "custom_analyzer": True,
        **({"charfilters": char_filters} if char_filters else {}),
        "tokenizer": {"name": names.tokenizer, "tokens": tokens(0)},
        **({"tokenfilters": filters} if filters else {}),
    }


def _detailed(
    tokens: list[Token], text: str, position: int, offset: int, attributes: frozenset[Any] | None
) -> list[dict[str, Any]]:
    """With the attributes that are asked for, or all."""
    shown = _shown(tokens, text, position, offset)
    for token, one in zip(tokens, shown, strict=True):
        raw = token.term.encode("utf-8", "surrogatepass")
        more = {
            "bytes": f"[{' '.join(f'{byte:x}' for byte in raw)}]",
            "keyword": token.keyword,
            "positionLength": token.position_length,
            "termFrequency": 1,
        }
        one.pop("positionLength", None)
        one.update({name: value for name, value in more.items() if attributes is None or name in attributes})
    return shown


def _units(text: str) -> Sequence[int]:
    """How many UTF-16 units stand before each character, and before the end."""
    if text.isascii():
        return range(len(text) + 1)
    return list(accumulate((2 if char > "\uffff" else 1 for char in text), initial=0))


def _too_many_tokens(most: int) -> SearchError:
    return SearchError(
        "illegal_state_exception",
        "The number of tokens produced by calling _analyze has exceeded the allowed maximum of "
        f"[{most}]. This limit can be set by changing the [index.analyze.max_token_count] index level "
        "setting.",
        500,
    )
