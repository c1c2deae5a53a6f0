"""`Explainer`: how the service evaluates a query and why, found by evaluating it; `docs/http.md` has one."""

from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter
from typing import Any, TypeAlias

import orjson
from starlette.requests import Request

from graphdb.config.limits import GateLimits
from graphdb.errors import GraphDBError, QueryTimeout
from graphdb.planning.complexity import measure
from graphdb.planning.decisions import why_not_cheap
from graphdb.planning.engine_text import engine_text_and_services
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS
from graphdb.planning.sources import COUNTED_MAX, Scan, scans_of
from graphdb.public_text import public_text
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.syntax import Query
from serve.backend import AnswerStream, GraphReads
from serve.graph.answer_shapes import QueryPlanned
from serve.graph.asked_query import AskedQuery
from serve.graph.metrics import Outcome
from serve.graph.query_accounts import QueryAccounts, outcome_of
from serve.graph.responses import HERE, Head, past_limit

__all__ = ["Explainer", "Explanation", "PatternHints", "explanation_head"]

CLOSE_SHARE = 0.8  # of a limit, from which on a query is close to it
_SERVICE_TOKEN = "explained"  # in the names that endpoints of SERVICE have in the engine's text
_OF_UPDATES = "operations"  # the figure that queries do not have


PatternHints: TypeAlias = Callable[[Request, list[str]], Awaitable[list[str]]]
"""See `Hints.of_patterns`."""


class Explainer:
    """Owned by the application, on the port's event loop."""

    def __init__(
        self, limits: GateLimits, hints: PatternHints, accounts: QueryAccounts, *, keeps_answers: bool
    ) -> None:
        """keeps_answers: the result cache is on."""
        self._limits, self._hints, self._keeps_answers = limits, hints, keeps_answers
        self._accounts = accounts

    async def start(self, asked: AskedQuery, reads: GraphReads) -> "Explanation":
        """Have a reader evaluate the query, as `GraphReads.start_query`, even if it is cheap.

        Raises what `GraphReads.start_query` raises.
        """
        is_here = asked.is_cheap(reads)
        columns = await reads.explain_columns(asked.for_reader())
        ways = columns.pop("ways")
        about = {
            "query": _query(asked),
            "classification": self._classification(asked, is_here, columns),
            "ways": [self._at_once(asked, is_here), *(_beside(way) if is_here else way for way in ways)],
            "columns": None if is_here else columns,
            "complexity": self._complexity(asked.query),
        }
        return Explanation(await reads.start_query(asked.for_reader()), asked, about, self._hints)

    async def plan(self, asked: AskedQuery, reads: GraphReads) -> QueryPlanned:
        """How the query would be answered, without evaluating it. Raises what `explain_columns` raises."""
        is_here = asked.is_cheap(reads)
        columns = None if is_here else await reads.explain_columns(asked.for_reader())
        about = self._classification(asked, is_here, columns)
        if columns is not None and columns["reason"]:
            about["reasons"].append(f"the column view does not answer: {columns['reason']}")
        close = [
            f"{name.replace('_', ' ')}: {one['value']} of {one['limit']} ({one['setting']})"
            for name, one in self._complexity(asked.query).items()
            if one["value"] > CLOSE_SHARE * one["limit"]
        ]
        return QueryPlanned(**about, warnings=close)

    def _at_once(self, asked: AskedQuery, is_here: bool) -> dict[str, Any]:
        """An evaluation on the event loop, which is always the cheapest where it is possible."""
        reasons = "; ".join(_reasons(asked, is_here))
        mean_ms = self._accounts.at_once_ms
        return {
            "way": HERE,
            "possible": is_here,
            "reason": None if is_here else reasons,
            "estimated_rows": None,
            "estimated_ms": round(mean_ms, 2) if is_here and mean_ms is not None else None,
            "took_ms": None,
            "chosen": is_here,
        }

    def _classification(
        self, asked: AskedQuery, is_here: bool, columns: dict[str, Any] | None
    ) -> dict[str, Any]:
        is_in_columns = columns is not None and columns["path"] == "columns"
        return {
            "evaluated": "at once" if is_here else "by the column view" if is_in_columns else "by a reader",
            "reasons": list(_reasons(asked, is_here)),
            "repeatable": asked.is_repeatable,
            "cacheable": self._keeps_answers and asked.is_repeatable and not is_here,
        }

    def _complexity(self, query: Query) -> dict[str, Any]:
        figures = measure(query)
        return {
            name: {
                "value": getattr(figures, name),
                "limit": getattr(self._limits, f"max_{name}"),
                "setting": f"security.max_{name}",
            }
            for name in figures.__slots__
            if name != _OF_UPDATES
        }


class Explanation:
    """An `AnswerStream` of one piece: the explanation of the query that a reader evaluates."""

    def __init__(
        self, stream: AnswerStream, asked: AskedQuery, about: dict[str, Any], hints: PatternHints
    ) -> None:
        """about: the members that are known before the evaluation."""
        self._hints = hints
        self.query_id, self.where = stream.query_id, stream.where
        self.snapshot_index, self.is_exact = stream.snapshot_index, stream.is_exact
        self.outcome: Outcome = "ok"  # of the evaluation; valid after read()
        self._stream, self._asked, self._about = stream, asked, about
        self._found: dict[str, Any] = {}
        self._seconds = 0.0
        self._is_read = False

    async def read(self) -> bytes | None:
        """The whole explanation, once the query is over; it includes an error of the query."""
        if self._is_read:
            return None
        self._is_read = True
        error = None
        try:
            await self._evaluate()
        except GraphDBError as raised:
            error = past_limit(self._asked.timeout_s) if isinstance(raised, QueryTimeout) else raised
            self.outcome = outcome_of(raised)
        document = self._document(error)
        empty = [scan["pattern"] for scan in document["scans"] if scan["quads"] == 0]
        document["hints"] = await self._hints(self._asked.request, empty)
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def close(self) -> None:
        """See `AnswerStream`."""
        self._stream.close()

    async def _evaluate(self) -> None:
        """Keep the reader's results, and the duration of the evaluation without the counting."""
        began = perf_counter()
        try:
            while (piece := await self._stream.read()) is not None:
                if not self._found:
                    began = perf_counter()
                self._found |= orjson.loads(piece)
        finally:
            self._seconds = perf_counter() - began

    def _document(self, error: GraphDBError | None) -> dict[str, Any]:
        scans = scans_of(self._asked.query)
        quads = self._found.get("quads", [None] * len(scans))
        evaluation = {
            "outcome": self.outcome,
            "error": None if error is None else public_text(error),
            "rows": self._found.get("rows"),
            "seconds": round(self._seconds, 6),
            "where": self.where,
            "snapshot_index": self.snapshot_index,
            "snapshot_exact": self.is_exact,
        }
        for way in self._about["ways"]:
            if way["way"] == "reader" and self.outcome == "ok":
                way["took_ms"] = round(self._seconds * 1000, 1)
        return {
            **self._about,
            "scans": list(map(_scan, scans, quads)),
            "lookups": self._found.get("lookups", []),
            "evaluation": evaluation,
        }


def explanation_head(snapshot_index: int) -> Head:
    """The headers of an explanation, which is never cached."""
    return [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        (b"x-snapshot-index", b"%d" % snapshot_index),
    ]


def _beside(way: dict[str, Any]) -> dict[str, Any]:
    """One of the ways of a query that is answered on the event loop."""
    return way | {"chosen": False}


def _query(asked: AskedQuery) -> dict[str, Any]:
    query = asked.query
    made, services = engine_text_and_services(query, _SERVICE_TOKEN)
    return {
        "form": query.form,
        "text": query.text,
        "base_iri": query.base_iri,
        "engine_text": made.text,
        "services": services,
        "dataset": _dataset(asked.dataset or own_dataset(query)),
    }


def _dataset(dataset: Dataset) -> dict[str, list[str]] | None:
    if not dataset:
        return None
    return {
        "default_graphs": [graph.value for graph in dataset.default_graphs],
        "named_graphs": [graph.value for graph in dataset.named_graphs],
    }


def _reasons(asked: AskedQuery, is_here: bool) -> Iterator[str]:
    """Why a query is evaluated where it is, each in a few words."""
    yield from why_not_cheap(asked.query)
    plan = asked.plan
    if is_here and plan.is_cheap:
        yield "each step of the evaluation yields a row; a long answer is left to a reader"
    elif is_here:
        yield "but it joins little in what the store holds now; a long answer is left to a reader"
    elif asked.dataset:
        yield "the request's parameters choose the dataset"
    elif asked.format is ResultFormat.CANONICAL_N_TRIPLES:
        yield "canonical N-Triples are sorted first"
    elif len(plan.text) > SHORT_TEXT_CHARACTERS:
        yield f"the text has more than {SHORT_TEXT_CHARACTERS:,} characters"
    elif plan.is_cheap:
        yield "its answer was too long for the port"
    elif plan.join is not None:
        yield "it joins much in what the store holds now"


def _scan(scan: Scan, quads: int | None) -> dict[str, Any]:
    return {
        "pattern": scan.pattern,
        "quads": quads,
        "complete": quads is not None and quads < COUNTED_MAX,
    }
