"""The values of a field that an aggregation reads, what numbered values mean, and how values are written."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from graphdb.search.aggregations.aggregation import Definition, Scope
from graphdb.search.aggregations.columns import GlobalTerms, ListedTerms, Numbers
from graphdb.search.aggregations.options import required
from graphdb.search.aggregations.scripted import ScriptedValues
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Doubles, Longs
from graphdb.search.mapping.dates import DEFAULT_FORMAT, DateFormat, date_format
from graphdb.search.mapping.instants import zone_of
from graphdb.search.mapping.value_formats import shown, term_of
from graphdb.search.query import QueryContext

__all__ = [
    "COMPARABLE",
    "DATE_TYPES",
    "NUMERIC",
    "DecimalPattern",
    "Display",
    "NumberVocabulary",
    "Source",
    "TermVocabulary",
    "Vocabulary",
    "aggregatable",
    "json_number",
]

# What numbered values mean: the terms of a field, or the distinct numbers that some documents have.


class Vocabulary(Protocol):
    """Values by number, from 0."""

    def __len__(self) -> int: ...
    def value(self, number: int) -> Any:
        """The value in its stored form."""

    def listed(self, numbers: Longs) -> list[Any]:
        """The value of each."""

    def places(self, numbers: Longs) -> Doubles:
        """Where each stands among the others, to sort by."""


@dataclass(frozen=True, slots=True)
class NumberVocabulary:
    """Distinct numbers, ascending."""

    values: Numbers

    @staticmethod
    def of(scope: Scope, data: Numbers) -> "NumberVocabulary":
        """Of these data of all shards."""
        own = np.unique(data)
        if scope.searcher.peers is None:
            return NumberVocabulary(own)
        return NumberVocabulary(np.unique(np.concatenate(scope.gathered("numbers", own))))

    def __len__(self) -> int:
        return len(self.values)

    def value(self, number: int) -> Any:
        return self.values[number].item()

    def listed(self, numbers: Longs) -> list[Any]:
        return list(self.values[numbers].tolist())

    def find(self, data: Numbers) -> Longs:
        return np.searchsorted(self.values, data)

    def places(self, numbers: Longs) -> Doubles:
        return numbers.astype(np.float64)


@dataclass(frozen=True, slots=True)
class TermVocabulary:
    """The terms of a field, and one more where `missing` is a term that no document has."""

    terms: GlobalTerms | None
    missing: str | None

    @property
    def _held(self) -> int:
        return 0 if self.terms is None else len(self.terms)

    @property
    def missing_number(self) -> int:
        """The number of `missing`."""
        found = -1 if self.terms is None or self.missing is None else self.terms.find(self.missing)
        return found if found >= 0 else self._held

    def __len__(self) -> int:
        return self._held + (self.missing is not None and self.missing_number == self._held)

    def value(self, number: int) -> Any:
        return self.missing if self.terms is None or number >= self._held else self.terms.term(number)

    def listed(self, numbers: Longs) -> list[Any]:
        if self.terms is None:
            return [self.missing] * len(numbers)
        held, term = self._held, self.terms.term
        return [term(number) if number < held else self.missing for number in numbers.tolist()]

    def places(self, numbers: Longs) -> Doubles:
        places = numbers.astype(np.float64)
        if self.terms is not None and self.missing is not None:
            places[numbers >= self._held] = self.terms.lower_bound(self.missing) - 0.5
        return places

    def shared(self, scope: Scope, used: Longs, numbers: Longs) -> tuple[Longs, "TermVocabulary"]:
        """(numbers, vocabulary) with the used terms of all shards and no others; numbers are of used ones."""
        used = np.unique(used)
        own = [self.value(number) for number in used.tolist()]
        terms = ListedTerms(sorted(set().union(*scope.gathered("terms", own))))
        known = np.array([terms.find(term) for term in own], np.int64)
        return known[np.searchsorted(used, numbers)], TermVocabulary(GlobalTerms([terms]), None)


# The values of a field.

# How the values of a field appear in answers: keys, and the texts beside numbers (`..._as_string`).

DATE_TYPES = ("date", "date_nanos")
_DECIMAL = re.compile(r"([^#0.,;'%]{0,20})([#,]*)(0*)(?:\.(0*)(#*))?(%?)([^#0.,;'%]{0,20})")


@dataclass(frozen=True, slots=True)
class DecimalPattern:
    """A number pattern of Java's DecimalFormat: `#,##0.00`, `0.#`, `0%`, with text before and after."""

    prefix: str
    suffix: str
    grouped: bool
    digits_min: int
    fraction_min: int
    fraction_max: int
    percent: bool

    @staticmethod
    def of(pattern: str) -> "DecimalPattern":
        """Errors: illegal_argument_exception for a pattern beyond that."""
        match = _DECIMAL.fullmatch(pattern) if 0 < len(pattern) <= 100 else None
        if match is None or not re.search("[#0]", pattern):
            raise illegal_request(f'Malformed pattern "{pattern[:100]}"')
        prefix, hashes, zeros, least, more, percent, suffix = match.groups()
        fraction_min = len(least or "")
        return DecimalPattern(
            prefix, percent + suffix, "," in hashes, len(zeros), fraction_min, fraction_min + len(more or ""),
            bool(percent),
        )  # fmt: skip

    def write(self, number: float) -> str:
        number = number * 100 if self.percent else number
        text = f"{abs(number):{',' if self.grouped else ''}.{self.fraction_max}f}"
        whole, _, fraction = text.partition(".")
        while len(fraction) > self.fraction_min and fraction.endswith("0"):
            fraction = fraction[:-1]
        whole = whole.rjust(self.digits_min, "0") if whole != "0" or self.digits_min else ""
        sign = "-" if number < 0 else ""
        return f"{sign}{self.prefix}{whole}{'.' + fraction if fraction else ''}{self.suffix}"


_TEXTS_MAX = 4_096
_AS_THEY_ARE = ("long", "integer", "short", "byte", "double", "float", "half_float")  # numbers without a text


@lru_cache(maxsize=64)
def _known_texts(pattern: DateFormat, zone: tzinfo) -> dict[float, str]:
    """By milliseconds: the same intervals are shown again and again."""
    return {}


@dataclass(frozen=True, slots=True)
class Display:
    """type is the field's, `double` where it is not mapped."""

    spec: FieldSpec | None
    pattern: DateFormat | DecimalPattern | None
    zone: tzinfo

    @staticmethod
    def of(spec: FieldSpec | None, shape: str | None, zone: str | None, dates: bool = False) -> "Display":
        """shape is the request's `format`. dates: values are instants although no field says so."""
        where = UTC if zone is None else zone_of(zone)
        if dates or (spec is not None and spec.type in (*DATE_TYPES, "date_range")):
            own = None if spec is None else spec.options.get("format")
            return Display(spec, date_format(shape or own or DEFAULT_FORMAT), where)
        numeric = spec is None or (spec.storage in (Storage.INTS, Storage.FLOATS) and spec.type != "boolean")
        return Display(spec, DecimalPattern.of(shape) if shape and numeric else None, where)

    def key(self, value: Any) -> Any:
        """The key of a bucket, from a stored value."""
        if self.spec is not None and self.spec.type in ("ip", "version"):
            return shown(self.spec, value, None)
        return value

    def key_text(self, value: Any) -> str | None:
        """`key_as_string`, None where it would only repeat the key."""
        return None if isinstance(value, str) else self.text(value)

    @property
    def shows_no_text(self) -> bool:
        """Whether keys are numbers that stand without a text."""
        return self.pattern is None and (self.spec is None or self.spec.type in _AS_THEY_ARE)

    def key_texts(self, values: list[Any]) -> list[str | None]:
        """`key_text` of each."""
        if isinstance(self.pattern, DateFormat):
            known = _known_texts(self.pattern, self.zone)
            texts = list(map(known.get, values))
            return self._written(values, known) if None in texts else texts
        if self.shows_no_text:
            return [None] * len(values)
        return [self.key_text(value) for value in values]

    def _written(self, values: list[Any], known: dict[float, str]) -> list[str | None]:
        """Of dates, and those are known from then on."""
        assert isinstance(self.pattern, DateFormat)
        if len(known) + len(values) > _TEXTS_MAX:
            known.clear()
        texts: list[str | None] = []
        for value in values:
            texts.append(text := self.pattern.write(int(value), self.zone))
            if len(known) < _TEXTS_MAX:
                known[value] = text
        return texts

    def text(self, value: float) -> str | None:
        """The text beside a number, None where there is none."""
        if isinstance(self.pattern, DateFormat):
            return self.pattern.write(int(value), self.zone)
        if self.pattern is not None:
            return self.pattern.write(value)
        if self.spec is not None and self.spec.type == "boolean":
            return "true" if value else "false"
        return None


# Where an aggregation's values come from: a field, what stands for absent values, and how they are shown.

NUMERIC = frozenset({Storage.INTS, Storage.FLOATS})
COMPARABLE = frozenset({Storage.INTS, Storage.FLOATS, Storage.TERMS})

_OF_DATES = ("auto_date_histogram", "date_histogram", "date_range")
_VALUE_TYPES = {
    "string": ("keyword", Storage.TERMS),
    "boolean": ("boolean", Storage.INTS),
    "date": ("date", Storage.INTS),
    "ip": ("ip", Storage.TERMS),
    **dict.fromkeys(("byte", "short", "integer", "long"), ("long", Storage.INTS)),
    **dict.fromkeys(("float", "double", "number", "numeric"), ("double", Storage.FLOATS)),
}


@dataclass(frozen=True, slots=True)
class Source:
    """spec is None where no such field is mapped: then there are no values but those of `missing`, and
    display knows them by `value_type`. It is also None where a script makes the values: of each document,
    or of each value of the field `of`.
    """

    spec: FieldSpec | None
    display: Display
    missing: Any = None  # in its stored form
    scripted: ScriptedValues | None = None
    of: "Source | None" = None

    @staticmethod
    def parse(
        definition: Definition, accepts: Collection[Storage] | None, *, takes_script: bool = True
    ) -> "Source":
        """From `field`, `script`, `missing`, `format` and `time_zone`. accepts None: all that have columns.

        Raises SearchError.
        """
        options = definition.options
        script = options.take("script") if takes_script else None
        path = options.text("field")
        if path is None and script is None:
            required(path, "field, script")
        missing, shape, zone = options.take("missing"), options.text("format"), options.text("time_zone")
        value_type = options.text("value_type")
        spec = None if path is None else aggregatable(definition.context, path)
        if spec is not None and accepts is not None and spec.storage not in accepts:
            raise illegal_argument(
                f"Field [{path}] of type [{spec.type}] is not supported for aggregation [{definition.kind}]"
            )
        shown, scripted = spec, None
        if script is not None and (spec is not None or path is None):
            shown = _returned_by_script(spec, value_type, accepts, options.owner)
            scripted = ScriptedValues.parse(script, shown.storage)
        elif spec is None and value_type is not None and path is not None:
            shown = _unmapped(path, value_type)
        if missing is not None and shown is not None:
            # Aggregations know dates to the millisecond, as Elasticsearch's do.
            known = replace(shown, type="date") if shown.type == "date_nanos" else shown
            given, missing = missing, term_of(known, missing, definition.context.now_ms)
            if missing in (np.inf, -np.inf) and shown.storage is Storage.INTS:
                raise illegal_argument(f"[missing] [{str(given)[:100]}] is out of range for [{shown.type}]")
        if scripted is None:
            return Source(spec, Display.of(shown, shape, zone), missing)
        of = None if spec is None else Source(spec, Display.of(spec, None, None))
        of_dates = spec is not None and spec.type in DATE_TYPES
        display = Display.of(spec if of_dates else shown, shape, zone)
        return Source(None, display, missing, scripted, of)

    def head(self, value: Any) -> dict[str, Any]:
        """How a bucket shows its key: `key`, and `key_as_string` where that is another."""
        shown, text = {"key": self.display.key(value)}, self.display.key_text(value)
        return shown if text is None else {**shown, "key_as_string": text}

    def shown(self, value: Any) -> Any:
        """A value as one member of a list: as its text where it has one."""
        if self.spec is not None and self.spec.type == "boolean":
            return bool(value)
        text = self.display.key_text(value)
        return self.display.key(value) if text is None else text

    def values_among(self, scope: Scope, documents: int) -> int:
        """How many terms so many documents may have, if all have about as many."""
        assert self.spec is not None
        held = [leaf.segment.terms(self.spec.path) for leaf in scope.columns.leaves]
        every = sum(int(one.ordinals.starts[-1]) for one in held if one is not None)
        return documents * every // max(1, scope.columns.size)

    def numbers(self, scope: Scope, docs: Longs) -> tuple[Longs, Numbers]:
        """(rows, values): the numbers of these documents, those of `missing` among them, to compute with."""
        rows, data = self._numbers(scope, docs)
        return rows, data.astype(np.float64) if data.dtype == np.uint64 else data

    def _numbers(self, scope: Scope, docs: Longs) -> tuple[Longs, Numbers]:
        if self.scripted is not None:
            kind = np.int64 if self.scripted.storage is Storage.INTS else np.float64
            rows, returned = self._returned(self.scripted, scope, docs)
            return self._absent(rows, np.array(returned, kind), docs)
        if self.spec is None:
            return self._absent(np.empty(0, np.int64), np.empty(0), docs)
        values = scope.columns.numbers(self.spec, docs)
        return self._absent(values.rows, values.data, docs)

    def countable(self, scope: Scope, docs: Longs) -> tuple[Longs, Numbers]:
        """As numbers; of a field that has none, a number for each value, equal for equal values."""
        if self.spec is not None and self.spec.storage is Storage.POINTS:
            points = scope.columns.points(self.spec, docs)
            both = points.latitudes * 1000.0 + points.longitudes
            return points.rows, both
        if self.textual or (self.spec is not None and self.spec.storage is Storage.CODES):
            rows, data, _ = self.own_terms(scope, docs)
            return rows, data
        return self._numbers(scope, docs)

    def keyed(self, scope: Scope, docs: Longs, whole: bool = False) -> tuple[Longs, Longs, Vocabulary]:
        """(rows, numbers of values, what the numbers mean): the numbers ascend as the values do.

        whole: what they mean covers the values of all documents, not just of these.
        """
        if not self.textual:
            rows, data = self._numbers(scope, docs)
            every = self._numbers(scope, np.flatnonzero(scope.live()))[1] if whole else data
            numbers = NumberVocabulary.of(scope, np.concatenate([every, data]) if whole else data)
            return rows, numbers.find(data), numbers
        rows, data, terms = self.own_terms(scope, docs, whole)
        if scope.searcher.peers is not None:
            used = data
            if whole:
                used = np.append(data, self.own_terms(scope, np.flatnonzero(scope.live()), whole)[1])
            data, terms = terms.shared(scope, used, data)
        return rows, data, terms

    def _returned(self, scripted: ScriptedValues, scope: Scope, docs: Longs) -> tuple[Longs, list[Any]]:
        """What the script returns for these documents."""
        if self.of is None:
            return scripted.of(scope, docs)
        if self.of.textual:
            rows, numbers, terms = self.of.own_terms(scope, docs)
            return scripted.of(scope, docs, (rows, terms.listed(numbers)))
        rows, data = self.of.numbers(scope, docs)
        return scripted.of(scope, docs, (rows, data.tolist()))

    def own_terms(
        self, scope: Scope, docs: Longs, whole: bool = False
    ) -> tuple[Longs, Longs, TermVocabulary]:
        """`keyed` of a textual source, with numbers that mean something in this shard only."""
        if self.scripted is not None:
            rows, returned = self._returned(self.scripted, scope, docs)
            every = set(returned)
            if whole:
                every.update(self._returned(self.scripted, scope, np.flatnonzero(scope.live()))[1])
            listed = ListedTerms(sorted(every))
            vocabulary = TermVocabulary(GlobalTerms([listed]), self.missing)
            numbers = np.array([listed.find(value) for value in returned], np.int64)
            rows, numbers = self._placed(rows, numbers, docs, vocabulary.missing_number)
            return rows, numbers, vocabulary
        if self.spec is None:
            terms = TermVocabulary(None, self.missing)
            rows, data = self._placed(np.empty(0, np.int64), np.empty(0, np.int64), docs, 0)
            return rows, data, terms
        terms = TermVocabulary(scope.columns.dictionary(self.spec), self.missing)
        values = scope.columns.ordinals(self.spec, docs)
        rows, data = self._placed(values.rows, values.data, docs, terms.missing_number)
        return rows, data, terms

    @property
    def storage(self) -> Storage | None:
        """What the values are kept as; None where nothing says so."""
        if self.scripted is not None:
            return self.scripted.storage
        return None if self.spec is None else self.spec.storage

    @property
    def textual(self) -> bool:
        """Whether the values are terms."""
        storage = self.storage
        return isinstance(self.missing, str) if storage is None else storage is Storage.TERMS

    def text(self, value: Any) -> str | None:
        """`..._as_string`: None where the value is shown as a number alone."""
        return self.display.text(value)

    def _absent(self, rows: Longs, data: Numbers, docs: Longs) -> tuple[Longs, Numbers]:
        try:
            value = self.missing if isinstance(self.missing, int | None) else float(self.missing)
        except ValueError as error:
            raise SearchError("number_format_exception", f'For input string: "{self.missing}"') from error
        return self._placed(rows, data, docs, value)

    def _placed(self, rows: Longs, data: Any, docs: Longs, value: float | None) -> tuple[Longs, Any]:
        """Add a value for each document that has none."""
        if self.missing is None or value is None:
            return rows, data
        lacking = np.setdiff1d(np.arange(len(docs)), rows)
        if not len(lacking):
            return rows, data
        kind = np.dtype(np.float64)
        if data.dtype.kind in "iu" and _is_of(data.dtype, value):
            value, kind = int(value), data.dtype
        rows, data = np.concatenate([rows, lacking]), np.append(data, np.full(len(lacking), value, kind))
        order = np.argsort(rows, kind="stable")
        return rows[order], data[order]


def aggregatable(context: QueryContext, path: str) -> FieldSpec | None:
    """The field that a path names, None where nothing is mapped; refused if it has no columns."""
    if path == "_id":
        raise illegal_argument(
            "Fielddata access on the _id field is disallowed, you can re-enable it by updating the dynamic "
            "cluster setting: indices.id_field_data.enabled"
        )
    spec = context.mapping.field(path)
    if spec is None or spec.type in ("object", "nested"):
        return None
    if spec.storage is Storage.TEXT and spec.doc_values:
        return replace(spec, storage=Storage.TERMS)  # `fielddata`: its tokens
    if spec.storage is Storage.TEXT:
        raise illegal_argument(
            f"Fielddata is disabled on [{path}] in [{context.index_name}]. Text fields are not optimised for "
            "operations that require per-document field data like aggregations and sorting, so these "
            "operations are disabled by default. Please use a keyword field instead. Alternatively, set "
            f"fielddata=true on [{path}] in order to load field data by uninverting the inverted index. "
            "Note that this can use significant memory."
        )
    if path == "_routing":
        raise illegal_argument("Fielddata is not supported on field [_routing] of type [_routing]")
    if not spec.doc_values or spec.storage is Storage.NONE:
        raise illegal_argument(
            f"Can't load fielddata on [{path}] because fielddata is unsupported on fields of type "
            f"[{spec.type}]. Use doc values instead."
        )
    return spec


def _returned_by_script(
    spec: FieldSpec | None, value_type: str | None, accepts: Collection[Storage] | None, kind: str
) -> FieldSpec:
    """What the values of a script are. spec: of the field for whose values it runs. Without a type they are
    dates where those are meant, numbers where the field has numbers or nothing else is accepted, else texts.
    """
    if accepts is not None and not COMPARABLE & set(accepts):
        raise illegal_argument(f"aggregation [{kind}] does not support scripts")
    if value_type is None:
        if spec is not None:
            is_number = spec.storage in NUMERIC
        else:
            is_number = accepts is not None and Storage.TERMS not in accepts
        value_type = "date" if kind in _OF_DATES else "double" if is_number else "string"
    shown = _unmapped("script", value_type)
    if accepts is not None and shown.storage not in accepts:
        raise illegal_argument(f"Values of type [{shown.type}] are not supported for aggregation [{kind}]")
    return shown


def _unmapped(path: str, value_type: str) -> FieldSpec:
    """What `value_type` says of a field that is not mapped."""
    found = _VALUE_TYPES.get(value_type.lower())
    if found is None:
        raise illegal_request(f"Unknown value type [{value_type[:100]}]")
    name, storage = found
    return FieldSpec(path, name, storage, options={"format": DEFAULT_FORMAT} if name == "date" else {})


def json_number(number: float) -> float | str:
    """JSON has no NaN and no infinity: Elasticsearch writes them as strings."""
    if number != number:
        return "NaN"
    return number if abs(number) != np.inf else ("Infinity" if number > 0 else "-Infinity")


def _is_of(dtype: "np.dtype[Any]", value: float) -> bool:
    """Whether a type of whole numbers has a value."""
    bounds = np.iinfo(dtype)
    return bounds.min <= value <= bounds.max and value == int(value)
