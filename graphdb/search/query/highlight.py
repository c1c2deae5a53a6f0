"""`highlight`: the parts of a hit's texts that say why it is one, as the unified highlighter shows them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.analysis import Token
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.mapping.wildcards import scalars_at
from graphdb.search.query.clause import Clause, QueryContext, malformed
from graphdb.search.query.parse import parse_query
from graphdb.search.query.passages import (
    SEPARATOR,
    Breaks,
    Match,
    Passage,
    Sought,
    best_passages,
    marked,
    whole_passages,
)
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Query

__all__ = ["Highlighter"]

TYPES = ("unified", "plain", "fvh")
_OF_FIELDS = {"fragment_offset", "matched_fields"}  # which `highlight` itself does not have
_FVH_SIZE_MIN = 18  # characters of a fragment. Source: Lucene's SimpleFragListBuilder


@dataclass(frozen=True, slots=True)
class Options:
    """How one field is shown. Sizes are in characters; number_of_fragments 0: whole values."""

    pre_tag: str
    post_tag: str
    fragment_size: int
    number_of_fragments: int
    no_match_size: int
    require_field_match: bool
    by_score: bool
    by_word: bool
    escape: bool
    analyzed_max: int | None
    type: str
    matched_fields: tuple[str, ...]
    query: Query | None


Lookout = tuple[FieldSpec, Sought]
"""How a text is cut, and what is looked for in it: a field is looked at as others see it (matched_fields)."""


class Highlighter:
    """Made once for a search; fields are (pattern, options) in the order in which they are asked for."""

    def __init__(
        self, fields: list[tuple[str, Options]], query: Query, context: QueryContext, searcher: Searcher
    ) -> None:
        self._fields = [
            (spec, options, _lookouts(spec, options, query, context, searcher))
            for pattern, options in fields
            for spec in _specs(pattern, context)
        ]
        for spec, options, _ in self._fields:
            _check_fast(spec, options)
        self._context = context

    @classmethod
    def of(cls, body: object, query: Query, context: QueryContext, searcher: Searcher) -> "Highlighter":
        """From the `highlight` of a search; query is what was searched for. Fails where the body is wrong."""
        if not isinstance(body, Mapping):
            raise malformed("[highlight] must be an object")
        given = body.get("fields", {})
        whole = {key: value for key, value in body.items() if key != "fields"}
        for member in _OF_FIELDS & whole.keys():
            raise SearchError("x_content_parse_exception", f"[highlight] unknown field [{member}]", 400)
        listed = given
        if isinstance(given, Mapping):
            listed = [{name: value} for name, value in given.items()]
        elif not isinstance(given, list):
            raise malformed("[highlight] [fields] must be an object of objects, or an array of them")
        fields = []
        for one in listed:
            if not isinstance(one, Mapping) or not all(isinstance(own, Mapping) for own in one.values()):
                raise malformed("[highlight] [fields] must be an object of objects, or an array of them")
            fields += [(name, _options({**whole, **own}, context)) for name, own in one.items()]
        return cls(fields, query, context, searcher)

    def fragments(self, source: Mapping[str, Any], doc_id: str = "") -> dict[str, list[str]]:
        """The fragments of a document by field, those without any left out."""
        shown = {}
        for spec, options, lookouts in self._fields:
            limit = spec.options.get("ignore_above")
            texts = [_text(value) for path in spec.value_paths for value in scalars_at(path, source)]
            texts = [text for text in texts if limit is None or len(text) <= limit]
            found = self._of_field(spec, options, lookouts, texts, doc_id)
            if found:
                shown[spec.path] = found
        return shown

    def _of_field(
        self, spec: FieldSpec, options: Options, lookouts: list[Lookout], texts: list[str], doc_id: str
    ) -> list[str]:
        text, limit = SEPARATOR.join(texts), self._context.max_analyzed_offset
        is_analyzed = options.type == "plain" or not _indexes_offsets(spec)
        if len(text) > limit and options.analyzed_max is None and is_analyzed:
            raise illegal_argument(
                f"The length [{len(text)}] of field [{spec.path}] in doc[{doc_id}]/index"
                f"[{self._context.index_name}] exceeds the [index.highlight.max_analyzed_offset] limit "
                f"[{limit}]. To avoid this error, set the query parameter [max_analyzed_offset] to a "
                f"value less than index setting [{limit}] and this will tolerate long field values by "
                "truncating them."
            )
        cut = limit if is_analyzed else len(text)
        if options.type != "fvh" and options.analyzed_max is not None:
            cut = options.analyzed_max
        matches = []
        for read_as, sought in lookouts:
            matches += sought.matches(self._tokens(read_as, texts, cut))
        if len(lookouts) > 1:
            matches.sort(key=lambda match: (match.start, match.end))
        passages = _passages(text, matches, options)
        return [marked(text, one, options.pre_tag, options.post_tag, options.escape) for one in passages]

    def _tokens(self, spec: FieldSpec, texts: list[str], limit: int) -> list[Token]:
        """The tokens of all values, as they stand in the whole text."""
        tokens: list[Token] = []
        offset = position = 0
        for text in texts:
            if spec.storage is Storage.TEXT:
                own = self._context.analyzers.analyzer(spec.analyzer).detailed(text[: max(0, limit - offset)])
            else:
                own = [Token(str(term_of(spec, text)), 0, len(text), "word", 0, 1)]
            tokens += [
                Token(
                    token.term,
                    token.start_offset + offset,
                    token.end_offset + offset,
                    token.type,
                    token.position + position,
                    token.position_length,
                )
                for token in own
            ]
            offset += len(text) + 1
            position = (tokens[-1].position if tokens else 0) + 101
        return tokens


def _passages(text: str, matches: list[Match], options: Options) -> list[Passage]:
    if not matches:
        return _nothing_matched(text, options)
    if options.number_of_fragments == 0:
        return whole_passages(text, matches)
    breaks = Breaks(text, options.fragment_size or len(text) + 1, options.by_word)
    return best_passages(text, matches, breaks, options.number_of_fragments, options.by_score)


def _nothing_matched(text: str, options: Options) -> list[Passage]:
    """The beginning of the first value, up to the end of a word."""
    if not options.no_match_size or not text:
        return []
    first = text.split(SEPARATOR, 1)[0]
    end = len(first)
    if options.no_match_size < end:
        end = Breaks(first, 1).word_after(options.no_match_size)
    return [Passage(0, end)]


def _lookouts(
    spec: FieldSpec, options: Options, query: Query, context: QueryContext, searcher: Searcher
) -> list[Lookout]:
    sought = options.query or query
    if not options.require_field_match:
        return [(spec, Sought.by(sought, None, searcher))]
    others = [context.mapping.field(path) for path in options.matched_fields if path != spec.path]
    return [(one, Sought.by(sought, (one.path,), searcher)) for one in (spec, *others) if one is not None]


def _specs(pattern: str, context: QueryContext) -> list[FieldSpec]:
    specs = context.mapping.match(pattern)
    return [
        spec
        for spec in specs
        if spec.storage in (Storage.TEXT, Storage.TERMS) and spec.type not in ("ip", "version")
    ]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(members: Mapping[str, Any], context: QueryContext) -> Options:
    clause = Clause("highlight", members, "[{}] unknown field [{}]")
    inner = clause.take("highlight_query")
    kind = clause.word("type", "unified")
    if kind not in TYPES:
        raise illegal_request(f"unknown highlighter type [{kind}] for the field [{clause.kind}]")
    if kind == "plain" and (fragmenter := clause.string("fragmenter")) not in (None, "simple", "span"):
        raise illegal_argument(f"unknown fragmenter option [{fragmenter}] for the field [{clause.kind}]")
    schema = clause.string("tags_schema")
    if "pre_tags" in clause and "post_tags" not in clause:
        raise malformed("pre_tags are set but post_tags are not set")
    default = '<em class="hlt1">' if schema == "styled" else "<em>"
    options = Options(
        pre_tag=_first(clause.take("pre_tags"), default),
        post_tag=_first(clause.take("post_tags"), "</em>"),
        fragment_size=clause.integer("fragment_size", 100),
        number_of_fragments=clause.integer("number_of_fragments", 5),
        no_match_size=clause.integer("no_match_size", 0),
        require_field_match=clause.flag("require_field_match", True),
        by_score=clause.word("order", "none").lower() == "score",
        by_word=_boundary(clause, kind) == "word",
        escape=clause.word("encoder", "default") == "html",
        analyzed_max=_analyzed_max(clause),
        type=kind,
        matched_fields=_names(clause.take("matched_fields", [])),
        query=None if inner is None else parse_query(inner, context),
    )
    clause.ignore(
        "boundary_chars", "boundary_max_scan", "boundary_scanner_locale", "force_source", "fragment_offset",
        "fragmenter", "max_fragment_length", "options", "phrase_limit",
    )  # fmt: skip
    clause.done()
    if options.matched_fields and not options.require_field_match:
        raise illegal_request("Matched fields are not supported when [require_field_match] is set to [false]")
    # Elasticsearch takes a negative size for none
    if options.number_of_fragments < 0:
        raise illegal_argument("[number_of_fragments] must not be negative")
    return replace(options, fragment_size=max(0, options.fragment_size))


def _boundary(clause: Clause, kind: str) -> str:
    """Where fragments end: at sentences, words or, of fvh, characters."""
    given = clause.word("boundary_scanner", "sentence").lower()
    if given not in ("sentence", "word", "chars"):
        cause = illegal_request(f"No enum constant for the boundary scanner [{given}]")
        reason = "[highlight] failed to parse field [boundary_scanner]"
        raise SearchError("x_content_parse_exception", reason, 400, {}, cause)
    if given == "chars" and kind == "unified":
        raise illegal_argument("Invalid boundary scanner type: chars")
    return given


def _check_fast(spec: FieldSpec, options: Options) -> None:
    """Errors: illegal_argument_exception for what the highlighter fvh cannot show."""
    if options.type != "fvh" or spec.storage is not Storage.TEXT:
        return
    if spec.options.get("term_vector") not in ("with_positions_offsets", "with_positions_offsets_payloads"):
        raise illegal_argument(
            f"the field [{spec.path}] should be indexed with term vector with position offsets to be used "
            "with fast vector highlighter"
        )
    if options.number_of_fragments and 0 < options.fragment_size < _FVH_SIZE_MIN:
        raise illegal_argument(
            f"fragCharSize({options.fragment_size}) is too small. It must be {_FVH_SIZE_MIN} or higher."
        )


def _analyzed_max(clause: Clause) -> int | None:
    """How far a value is read; None: as far as the index says, and longer ones are refused."""
    if "max_analyzed_offset" not in clause:
        return None
    given = clause.integer("max_analyzed_offset", 0)
    if given <= 0:
        cause = illegal_request("[max_analyzed_offset] must be a positive integer")
        reason = "[highlight] failed to parse field [max_analyzed_offset]"
        raise SearchError("x_content_parse_exception", reason, 400, {}, cause)
    return given


def _indexes_offsets(spec: FieldSpec) -> bool:
    vectors = str(spec.options.get("term_vector", "no"))
    return spec.options.get("index_options") == "offsets" or "offsets" in vectors


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list):
        raise malformed("[highlight_field] matched_fields must be names of fields")
    return tuple(str(name) for name in given)


def _first(tags: Any, default: str) -> str:
    if isinstance(tags, list):
        return str(tags[0]) if tags else default
    return default if tags is None else str(tags)
