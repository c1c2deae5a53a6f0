"""What must hold for every text that somebody sends as a query or an update."""

import time
from collections.abc import Callable

from pyoxigraph import Store

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded, QuerySyntaxError
from graphdb.planning import gate
from graphdb.planning.engine_text import engine_text
from graphdb.sparql.syntax import Query, Update
from graphdb.sparql.term_order import MAXIMUM, MINIMUM
from graphdb.store.engine_query import engine_functions
from tests.support.fuzzing.engine_differences import why_refused
from tests.support.fuzzing.findings import BrokenPromise

__all__ = ["BASE", "DECISION_MS_MAX", "check_text"]

BASE = "http://e/base"
DECISION_MS_MAX = 50
LIMITS = GateLimits()
# The keys of a condition of ORDER BY are two BINDs of some 200 tokens. The engine plans 96 of them in 50 ms.
WRITTEN_LIMITS = GateLimits(
    max_query_bytes=1_000_000, max_query_tokens=50_000, max_binds=500, max_expression_size=20_000
)


def check_text(data: bytes, decision_ms_max: float = DECISION_MS_MAX) -> str:
    """Read a text as a query and as an update; what came of it. Raises BrokenPromise.

    - Nothing but QuerySyntaxError and LimitExceeded is raised, within so many milliseconds of processor time.
    - An admitted query is read by the engine, unless it is of a known class; and what we ask the engine reads
      again as a query.
    """
    text = data.decode("utf-8", "surrogateescape")
    query = _decided("query", gate.read_query, text, decision_ms_max)
    update = _decided("update", gate.read_update, text, decision_ms_max)
    if isinstance(query, Query) and not query.service_hosts:
        _check_engine(query)
    return _outcome(query, update)


def _outcome(query: Query | Update | Exception, update: Query | Update | Exception) -> str:
    if isinstance(query, Query):
        return "query"
    if isinstance(update, Update):
        return "update"
    return "over a limit" if LimitExceeded in (type(query), type(update)) else "malformed"


def _decided(
    kind: str,
    read: Callable[[str, str | None, GateLimits], Query | Update],
    text: str,
    decision_ms_max: float,
) -> Query | Update | Exception:
    """The tree, or why there is none. What was slow is done anew, for the machine does other things too."""
    for attempt in range(4):
        # Another base each time: what is parsed once is not parsed again.
        request, spent_ms = _timed(kind, read, text, f"{BASE}{attempt or ''}")
        if spent_ms <= decision_ms_max:
            return request
    raise BrokenPromise(f"slow: deciding on the {kind} takes {spent_ms:.0f} ms")


def _timed(
    kind: str, read: Callable[[str, str | None, GateLimits], Query | Update], text: str, base: str
) -> tuple[Query | Update | Exception, float]:
    began = time.thread_time()
    request: Query | Update | Exception
    try:
        request = read(text, base, LIMITS)
        gate.check(request, LIMITS)
    except (QuerySyntaxError, LimitExceeded) as error:
        request = error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise BrokenPromise(f"{type(error).__name__}: reading it as a {kind} raises {error!r}") from error
    return request, (time.thread_time() - began) * 1000


def _check_engine(query: Query) -> None:
    if why_refused(query) is not None:
        return
    text = engine_text(query).text
    try:
        functions, aggregates = engine_functions(calls_geometry=False)
        Store().query(
            text,
            base_iri=query.base_iri,
            custom_functions=functions,
            custom_aggregate_functions=aggregates,
        )
    except SyntaxError as error:
        raise BrokenPromise(f"refused: the engine does not read {text!r}: {error}") from error
    except (RuntimeError, ValueError):
        pass  # an unknown function, or a term that cannot be: refused while it is evaluated
    if text == query.text or "LATERAL" in text:  # a word of the engine's own
        return
    text = text.replace(f"<{MINIMUM}>", "MIN").replace(f"<{MAXIMUM}>", "MAX")  # aggregates that only it has
    try:
        gate.read_query(text, query.base_iri, WRITTEN_LIMITS)
    except (QuerySyntaxError, LimitExceeded) as error:
        raise BrokenPromise(f"changed: the engine's text {text!r} is none of ours: {error}") from error
