"""`Pipeline`: processors one after the other, read from its definition; what happens where one fails.

Source: Elasticsearch's documentation of ingest pipelines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.ingest.document import Dropped, IngestDocument
from graphdb.search.ingest.options import ProcessorOptions, java_kind
from graphdb.search.ingest.processors import PROCESSORS
from graphdb.search.ingest.reading import Step
from graphdb.search.scripts.script import INGEST, Script, parse_script
from graphdb.search.scripts.stored import StoredScripts, script_named

__all__ = ["Definitions", "Pipeline", "Processor", "Traced", "checked_pipeline"]

_DEPTH_MAX = 50  # of processors in one another, and of pipelines that call one another
_PROCESSORS_MAX = 1_000  # of one pipeline
_CIRCLE = "Cycle detected for pipeline: "
_MEMBERS = {"description", "processors", "on_failure", "version", "_meta", "deprecated"}
Trace = Callable[["Traced"], None]


@dataclass(frozen=True, slots=True)
class Traced:
    """One processor that has run, for `_simulate` with `verbose`. document: as it was then, None: dropped."""

    processor: "Processor"
    status: str
    document: IngestDocument | None = None
    error: SearchError | None = None

    @property
    def condition(self) -> str | None:
        """The text of its `if`."""
        script = self.processor.condition
        return None if script is None else script.source


@dataclass(frozen=True, slots=True)
class Processor:
    """One step with what all have: a condition, and what is done where it fails."""

    kind: str
    step: Step
    tag: str | None = None
    description: str | None = None
    condition: Script | None = None
    ignores_failure: bool = False
    on_failure: tuple["Processor", ...] = ()

    def run(self, document: IngestDocument, trace: Trace | None = None) -> None:
        """Raises Dropped, and SearchError where it fails and nothing is said for that."""
        document.spend()
        checkpoint()
        is_shown = True
        try:
            if self.condition is not None and not self._holds(document):
                if trace is not None:
                    trace(Traced(self, "skipped"))
                return
            if trace is not None and self.kind == "pipeline":
                self._refuse_circle(document)
                is_shown = False  # again: what fails in what it calls is shown there
                trace(Traced(self, "success"))
            self.step(document)
        except Dropped:
            if trace is not None:
                trace(Traced(self, "dropped"))
            raise
        except (SearchError, RecursionError, orjson.JSONEncodeError, UnicodeError) as failure:
            error = failure if isinstance(failure, SearchError) else _unwritable()
            if self.ignores_failure:
                if is_shown:
                    _note(trace, self, "error_ignored", document, error)
                return
            if is_shown:
                _note(trace, self, "error", None, error)
            if not self.on_failure:
                raise self._named(error) from None
            run_on_failure(self.on_failure, document, self, error, trace)
        else:
            if is_shown:
                _note(trace, self, "success", document)

    def _holds(self, document: IngestDocument) -> bool:
        """A condition has a copy, so that it changes nothing."""
        assert self.condition is not None
        return self.condition.run({"ctx": orjson.loads(orjson.dumps(document.as_ctx()))}) is True

    def _refuse_circle(self, document: IngestDocument) -> None:
        """Raises the error of pipelines that call each other in a circle below this one, before any step of
        theirs is shown.

        As Elasticsearch does, by trying it: conditions may keep a document out of a circle.
        """
        with document.tried() as copy:
            try:
                self.step(copy)
            except SearchError as error:
                if error.reason.startswith(_CIRCLE):
                    raise
            except (Dropped, RecursionError, orjson.JSONEncodeError, UnicodeError):
                pass  # so it will again

    def _named(self, error: SearchError) -> SearchError:
        """The error with the processor that it is of; the innermost one counts."""
        names = {"processor_type": self.kind} | ({} if self.tag is None else {"processor_tag": self.tag})
        return SearchError(error.kind, error.reason, error.status, {**names, **error.metadata}, error.cause)


def _note(
    trace: Trace | None,
    processor: Processor,
    status: str,
    document: IngestDocument | None,
    error: SearchError | None = None,
) -> None:
    if trace is not None:
        trace(Traced(processor, status, None if document is None else document.copied(), error))


def _unwritable() -> SearchError:
    return illegal_argument("the document is nested too deeply, or has a text that is not Unicode")


def _run_all(processors: Sequence[Processor], document: IngestDocument, trace: Trace | None) -> None:
    """One after the other, until one of them ends the pipeline."""
    for processor in processors:
        processor.run(document, trace)
        if document.is_done:
            return


def run_on_failure(
    processors: Sequence[Processor],
    document: IngestDocument,
    failed: Processor | None,
    error: SearchError,
    trace: Trace | None,
) -> None:
    """Run them with what failed in `_ingest`, and take that away again. failed: None where the error names
    it.
    """
    about = {
        "on_failure_message": error.reason,
        "on_failure_processor_type": error.metadata.get("processor_type") if failed is None else failed.kind,
        "on_failure_processor_tag": error.metadata.get("processor_tag") if failed is None else failed.tag,
        "on_failure_pipeline": document.running[-1] if document.running else None,
    }
    document.ingest |= about
    try:
        _run_all(processors, document, trace)
    finally:
        for name in about:
            document.ingest.pop(name, None)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """name: its id; `_simulate_pipeline` for one that has none."""

    name: str
    processors: tuple[Processor, ...]
    on_failure: tuple[Processor, ...] = ()

    def run(self, document: IngestDocument, trace: Trace | None = None) -> None:
        """Raises Dropped, and SearchError where it fails. What it calls itself again fails."""
        if self.name in document.running:
            raise illegal_argument(f"{_CIRCLE}{self.name}")
        if len(document.running) >= _DEPTH_MAX:
            raise illegal_argument(f"more than [{_DEPTH_MAX}] pipelines call one another")
        outer = document.running
        document.trace = trace
        document.running = (*outer, self.name)
        if self.name not in document.executed:
            document.executed.append(self.name)
        document.ingest["pipeline"] = self.name
        try:
            self._run(document, trace)
        finally:
            document.running, document.is_terminated = outer, False
            if outer:
                document.ingest["pipeline"] = outer[-1]
            else:
                document.ingest.pop("pipeline", None)

    def _run(self, document: IngestDocument, trace: Trace | None) -> None:
        try:
            _run_all(self.processors, document, trace)
        except SearchError as error:
            if not self.on_failure:
                raise
            run_on_failure(self.on_failure, document, None, error, trace)


class Definitions:
    """Pipelines by id, each read when it is first wanted. For one thread at a time."""

    def __init__(self, bodies: Mapping[str, Mapping[str, Any]], scripts: StoredScripts) -> None:
        self._bodies, self._scripts = bodies, scripts
        self._read: dict[str, Pipeline] = {}

    def pipeline(self, name: str) -> Pipeline:
        """Errors: illegal_argument_exception where there is none of this id."""
        if name not in self._read:
            body = self._bodies.get(name)
            if body is None:
                raise illegal_argument(f"pipeline with id [{name}] does not exist")
            self._read[name] = self.read(name, body)
        return self._read[name]

    def has(self, name: str) -> bool:
        return name in self._bodies

    def read(self, name: str, body: Mapping[str, Any]) -> Pipeline:
        """Of its definition. Errors: parse_exception, illegal_argument_exception, script_exception."""
        if not isinstance(body, Mapping):
            raise SearchError("parse_exception", "a pipeline must be an object")
        if "processors" not in body:
            reason = "[processors] required property is missing"
            raise SearchError("parse_exception", reason, 400, {"property_name": "processors"})
        unknown = sorted(body.keys() - _MEMBERS)
        if unknown:
            raise SearchError(
                "parse_exception",
                f"pipeline [{name}] doesn't support one or more provided configuration parameters "
                f"[{', '.join(unknown)[:200]}]",
            )
        reading = _Reading(self, self._scripts)
        processors = reading.processors(body["processors"], "processors")
        on_failure = reading.processors(body.get("on_failure", []), "on_failure")
        if "on_failure" in body and not on_failure:
            reason = f"pipeline [{name}] cannot have an empty on_failure option defined"
            raise SearchError("parse_exception", reason)
        return Pipeline(name, processors, on_failure)


class _Reading:
    """Of one pipeline."""

    def __init__(self, definitions: Definitions, scripts: StoredScripts) -> None:
        self.definitions, self._scripts = definitions, scripts
        self._count = self._depth = 0

    def processors(self, given: Any, name: str) -> tuple[Processor, ...]:
        if not isinstance(given, list):
            reason = f"[{name}] property isn't a list, but of type [{java_kind(given)}]"
            raise SearchError("parse_exception", reason, 400, {"property_name": name})
        return tuple(self.processor(one) for one in given)

    def processor(self, given: Any) -> Processor:
        """`{"set": {...}}`."""
        self._count += 1
        if not isinstance(given, Mapping) or len(given) != 1:
            raise SearchError("parse_exception", "a processor must be an object with one member, its type")
        if self._count > _PROCESSORS_MAX or self._depth >= _DEPTH_MAX:
            raise illegal_argument(
                f"a pipeline has more than [{_PROCESSORS_MAX}] processors, or too deep ones"
            )
        ((kind, values),) = given.items()
        if not isinstance(values, Mapping):
            raise SearchError(
                "parse_exception", f"property isn't a map, but of type [{type(values).__name__}]"
            )
        if kind not in PROCESSORS:
            reason = f"No processor type exists with name [{kind[:100]}]"
            raise SearchError("parse_exception", reason, 400, {"processor_type": kind[:100]})
        self._depth += 1
        try:
            return self._read(kind, ProcessorOptions(kind, values))
        finally:
            self._depth -= 1

    def _read(self, kind: str, options: ProcessorOptions) -> Processor:
        description, condition = options.text("description", None), options.take("if", None)
        ignores, on_failure = options.flag("ignore_failure", False), options.take("on_failure", None)
        step = PROCESSORS[kind](options, self)
        options.done()
        steps = () if on_failure is None else self.processors(on_failure, "on_failure")
        if on_failure is not None and not steps:
            raise options.error("on_failure", "processors list cannot be empty")
        script = None if condition is None else self.script(condition)
        return Processor(kind, step, options.tag, description, script, ignores, steps)

    def script(self, body: Any) -> Script:
        """Errors: script_exception, resource_not_found_exception."""
        if isinstance(body, Mapping) and isinstance(body.get("id"), str):
            body = script_named(body, self._scripts)
        return parse_script(body, INGEST)


_MEMBER_SHAPES: Mapping[str, tuple[type[Any], str]] = {
    "description": (str, "string"),
    "version": (int, "number"),
    "_meta": (dict, "map"),
    "deprecated": (bool, "boolean"),
}


def checked_pipeline(name: str, body: Any, scripts: StoredScripts) -> dict[str, Any]:
    """What is stored of the body of `PUT _ingest/pipeline/{id}`. Errors: as of `Definitions.read`."""
    Definitions({}, scripts).read(name, body)
    for member, (shape, shown) in _MEMBER_SHAPES.items():
        value = body.get(member)
        if value is not None and (
            not isinstance(value, shape) or isinstance(value, bool) is not (shape is bool)
        ):
            reason = f"[{member}] property isn't a {shown}, but is [{str(value)[:100]}]"
            raise SearchError("parse_exception", reason, 400, {"property_name": member})
    return dict(body)
