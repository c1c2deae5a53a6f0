"""Processors that say what runs, and where a document goes: others within them, pipelines, scripts; `drop`,
`fail`, `terminate`, `reroute`; and those that are refused.

Source: Elasticsearch's documentation of ingest processors.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.ingest.document import Dropped, IngestDocument, Template
from graphdb.search.ingest.options import ProcessorOptions
from graphdb.search.ingest.reading import Reading, Step
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.results import json_value
from graphdb.search.scripts.values import check_extent, type_name

__all__ = ["FLOW_PROCESSORS"]


def _foreach(options: ProcessorOptions, reading: Reading) -> Step:
    field, inner = options.text("field"), reading.processor(options.mapping("processor"))
    ignores = options.flag("ignore_missing", False)

    def step(document: IngestDocument) -> None:
        values = document.wanted(field, ignores, "cannot loop over its elements.")
        if values is None:
            return
        before: dict[str, Any] = {
            name: document.ingest[name] for name in ("_key", "_value") if name in document.ingest
        }
        try:
            if isinstance(values, dict):
                made: dict[str, Any] = {}
                for key, value in list(values.items()):
                    document.ingest |= {"_key": key, "_value": value}
                    inner.run(document)
                    made[str(document.ingest.get("_key"))] = document.ingest.get("_value")
                document.set(field, made)
            elif isinstance(values, list):
                listed = []
                for value in list(values):
                    document.ingest["_value"] = value
                    inner.run(document)
                    listed.append(document.ingest.get("_value"))
                document.set(field, listed)
            else:
                raise illegal_argument(
                    f"field [{field}] of type [{type_name(values)}] cannot be cast to a list or map"
                )
        finally:
            for name in ("_key", "_value"):
                document.ingest.pop(name, None)
            document.ingest |= before

    return step


def _pipeline(options: ProcessorOptions, reading: Reading) -> Step:
    name, ignores = Template(options.text("name")), options.flag("ignore_missing_pipeline", False)
    definitions = reading.definitions

    def step(document: IngestDocument) -> None:
        called = name.render(document)
        if not definitions.has(called):
            if ignores:
                return
            raise illegal_argument(
                f"Pipeline processor configured for non-existent pipeline [{called[:200]}]"
            )
        definitions.pipeline(called).run(document, document.trace)

    return step


def _script(options: ProcessorOptions, reading: Reading) -> Step:
    given = {name: options.take(name) for name in ("source", "id", "lang", "params") if name in options}
    script = reading.script(given)

    def step(document: IngestDocument) -> None:
        ctx = document.as_ctx()
        script.run({"ctx": ctx})
        try:
            check_extent(ctx)
            document.take_ctx(json_value(ctx))
        except ScriptFault as fault:
            raise script.error(fault) from None

    return step


def _drop(options: ProcessorOptions, reading: Reading) -> Step:
    def step(document: IngestDocument) -> None:
        raise Dropped

    return step


def _fail(options: ProcessorOptions, reading: Reading) -> Step:
    message = Template(options.text("message"))

    def step(document: IngestDocument) -> None:
        raise SearchError("fail_processor_exception", message.render(document), 500)

    return step


def _terminate(options: ProcessorOptions, reading: Reading) -> Step:
    def step(document: IngestDocument) -> None:
        document.is_terminated = True

    return step


_SCHEME = ("type", "dataset", "namespace")
_LENGTH_MAX = 100
_NOT_IN_NAMES = re.compile(r'[\\/*?"<>| ,#:]')


def _reroute(options: ProcessorOptions, reading: Reading) -> Step:
    """To another index, or to the data stream of another type, dataset or namespace."""
    destination = options.text("destination", None)
    given = {part: options.texts(part, None) for part in _SCHEME}
    if destination is not None:
        if any(value is not None for value in given.values()):
            raise options.error("destination", "can only be set if type, dataset, and namespace are not set")
        target = Template(destination)
        return lambda document: document.reroute(target.render(document))
    templates = {
        part: [Template(text) for text in given[part] or [f"{{{{data_stream.{part}}}}}"]] for part in _SCHEME
    }
    for part in _SCHEME:
        for text in given[part] or ():
            if "{{" not in text and _part_of_name(part, text) != text:
                raise options.error(part, f"'{text[:200]}' contains disallowed characters")

    def step(document: IngestDocument) -> None:
        name = str(document.meta.get("_index", ""))
        current = dict(zip(_SCHEME, name.split("-", 2), strict=False))
        if len(current) < len(_SCHEME):
            raise illegal_argument(
                f"invalid data stream name: [{name}]; must follow naming scheme <type>-<dataset>-<namespace>"
            )
        parts = {
            part: next((text for text in _rendered(part, templates[part], document) if text), current[part])
            for part in _SCHEME
        }
        for part, text in parts.items():
            document.set(f"data_stream.{part}", text)
        if document.has("event.dataset"):
            document.set("event.dataset", parts["dataset"])
        document.reroute("-".join(parts.values()))

    return step


def _rendered(part: str, templates: list[Template], document: IngestDocument) -> Iterator[str]:
    return (_part_of_name(part, template.render(document)) for template in templates)


def _part_of_name(part: str, text: str) -> str:
    """As it may stand between dashes; only a namespace, the last, may have some."""
    allowed = _NOT_IN_NAMES.sub("_", text.lower())
    return (allowed if part == "namespace" else allowed.replace("-", "_"))[:_LENGTH_MAX]


_NO_ADDRESSES = (
    "no database of IP addresses comes with this service; look addresses up before documents are sent"
)


def _refused(instead: str) -> Any:
    def made(options: ProcessorOptions, reading: Reading) -> Step:
        raise illegal_argument(f"the processor [{options.kind}] is not supported: {instead}")

    return made


FLOW_PROCESSORS: dict[str, Callable[[ProcessorOptions, Any], Step]] = {
    "drop": _drop,
    "fail": _fail,
    "foreach": _foreach,
    "pipeline": _pipeline,
    "reroute": _reroute,
    "script": _script,
    "terminate": _terminate,
    "attachment": _refused("extract the text of files before they are sent"),
    "enrich": _refused("a search can query the graph with [_ext] in its place"),
    "geoip": _refused(_NO_ADDRESSES),
    "inference": _refused("no models run here; make vectors and labels before documents are sent"),
    "ip_location": _refused(_NO_ADDRESSES),
}
