"""SHACL validations by real evaluators: what they answer, and what ends them."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store

from actors.readers.protocol import READER_MESSAGES, ValidationTask
from actors.readers.running_queries import RunningQueries
from actors.readers.write_evaluation import WriteChecks
from graphdb.config.limits import GateLimits
from graphdb.errors import (
    EvaluationFailed,
    MalformedShapes,
    QueryTimeout,
    RdfSyntaxError,
    UnavailableError,
    UnknownGraph,
)
from graphdb.rdf.formats import RdfSyntax
from graphdb.store.quad_store import QuadStore
from tests.support.reader_tasks import FEW, in_process, task
from tests.support.readers import readers, rest, wait_gone
from tests.support.timing import quick_enough
from tests.support.travelling import travelled

pytestmark = pytest.mark.anyio

# of the checkpoint: 43 subjects have <urn:p0>, each one value, "o 0", "o 7" and so on
SHAPES = b"""PREFIX sh: <http://www.w3.org/ns/shacl#>
<urn:Shape> sh:targetSubjectsOf <urn:p0> ; sh:property <urn:Value> .
<urn:Value> sh:path <urn:p0> ; sh:in ( "o 0" "o 7" "o 14" "o 21" "o 28" "o 35" "o 42" ) ."""
RESULT = NamedNode("http://www.w3.org/ns/shacl#result")
ENDLESS = b"""PREFIX sh: <http://www.w3.org/ns/shacl#>
<urn:Shape> sh:targetNode <urn:s0> ; sh:sparql [ sh:select '''SELECT $this WHERE {
    $this ?p ?o . ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l
    FILTER(CONCAT(STR(?c), STR(?f), STR(?i), STR(?l)) = STR($this)) }''' ] ."""


def validation(checkpoint: Path, shapes: bytes = SHAPES, **fields: Any) -> ValidationTask:
    given: dict[str, Any] = {"data_graph": "default", "shapes": shapes, "shapes_type": "text/turtle"}
    return ValidationTask(str(checkpoint), **(given | fields))


def test_the_wire_keeps_a_task() -> None:
    shapes = b'\xff\n{"a": "\n"}\n'
    sent = ValidationTask(
        "/tmp/c\n", "union", "urn:g", shapes, "text/turtle", None, True, ["_:a", '"\u00e9"']
    )
    assert travelled(READER_MESSAGES, sent) == sent


async def test_reports(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        report = orjson.loads(await there.answer(validation(checkpoint)))
        stats = report["stats"]
        assert (report["conforms"], stats["focus_nodes_validated"]) == (False, 43)
        assert len(report["results"]) == stats["violations"] == 36
        for syntax in (RdfSyntax.TURTLE, RdfSyntax.RDF_XML, RdfSyntax.JSON_LD, RdfSyntax.N_TRIPLES):
            document = await there.answer(validation(checkpoint, report_type=syntax.value))
            found = Store()
            found.load(document, format=RdfFormat.from_media_type(syntax.value))
            assert len(list(found.quads_for_pattern(None, RESULT, None, None))) == 36
        assert b"@prefix sh: " in await there.answer(validation(checkpoint, report_type="text/turtle"))
        named = orjson.loads(await there.answer(validation(checkpoint, data_graph="urn:g")))
        assert named["conforms"]
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))


async def test_sparql_in_shapes_has_the_limits_that_are_set(tmp_path: Path, checkpoint: Path) -> None:
    shapes = ENDLESS.replace(b" . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l", b"").replace(
        b", STR(?f), STR(?i), STR(?l)", b""
    )
    limits = {"max_patterns_per_group": 2}
    async with readers(tmp_path, count=1) as there:
        assert orjson.loads(await there.answer(validation(checkpoint, shapes, limits=limits)))["conforms"]
        limits = {"max_patterns_per_group": 1}
        with pytest.raises(MalformedShapes, match=r"security\.max_patterns_per_group"):
            await there.answer(validation(checkpoint, shapes, limits=limits))


async def test_a_long_report_comes_in_pieces(tmp_path: Path, checkpoint: Path) -> None:
    shapes = SHAPES.replace(b"sh:in", b'sh:message "%s" ; sh:in' % (b"m" * 5000))
    async with readers(tmp_path, count=1) as there:
        lease = await there.client.lease("q", 30)
        lease.evaluate(validation(checkpoint, shapes))
        pieces = []
        while (piece := await lease.read()) is not None:
            pieces.append(piece)
        lease.close()
    assert len(pieces) > 1
    assert len(orjson.loads(b"".join(pieces))["results"]) == 36


async def test_errors_keep_their_class_and_cost_no_evaluator(tmp_path: Path, checkpoint: Path) -> None:
    wrong: dict[type[Exception], dict[str, Any]] = {
        RdfSyntaxError: {"shapes": b"<urn:a> <urn:b>\n 1"},
        MalformedShapes: {"shapes": SHAPES.replace(b"sh:path <urn:p0> ;", b"sh:path 5 ;")},
        UnknownGraph: {"data_graph": "urn:none"},
    }
    async with readers(tmp_path, count=1) as there:
        before = await there.pids()
        for kind, fields in wrong.items():
            with pytest.raises(kind):
                await there.answer(validation(checkpoint, **fields))
        with pytest.raises(UnknownGraph, match="urn:none"):
            await there.answer(ValidationTask(str(checkpoint), "default", shapes_graph="urn:none"))
        with pytest.raises(RdfSyntaxError) as raised:
            await there.answer(validation(checkpoint, b"<urn:a> <urn:b>\n 1 ;;; ["))
        assert raised.value.line == 2
        assert await there.pids() == before


async def test_the_deadline_ends_a_validation_and_its_process(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        for took in quick_enough(1.5):
            [pid] = await there.pids()
            with took, pytest.raises(QueryTimeout):
                await there.answer(validation(checkpoint, ENDLESS), timeout_s=1)
            await wait_gone([pid])
            assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))


async def test_a_validation_whose_process_is_killed_is_tried_once_more(
    tmp_path: Path, checkpoint: Path
) -> None:
    async with readers(tmp_path, count=1) as there:
        lease = await there.client.lease("q", 30)
        lease.evaluate(validation(checkpoint, ENDLESS))
        answer = asyncio.create_task(rest(lease))
        first = await there.busy_pid()
        os.kill(first, signal.SIGKILL)
        await wait_gone([first])
        second = await there.busy_pid()
        assert second != first
        os.kill(second, signal.SIGKILL)
        with pytest.raises(UnavailableError, match="signal 9"):
            await answer
        lease.close()


async def test_a_client_that_leaves_ends_its_validation(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        lease = await there.client.lease("q", 30)
        lease.evaluate(validation(checkpoint, ENDLESS))
        pid = await there.busy_pid()
        lease.close()
        await wait_gone([pid])


@pytest.mark.parametrize(
    "focus", [None, ["<urn:s0>", "<urn:s7>", "<urn:s49>", "<urn:none>", '"a \\"b\\""', "_:b"]]
)
async def test_a_write_check(tmp_path: Path, checkpoint: Path, focus: list[str] | None) -> None:
    """A report of bounded size, of the nodes that are asked about."""
    advice = SHAPES.replace(b"sh:in", b"sh:severity sh:Info ; sh:in").replace(b"urn:p0", b"urn:p1")
    both = (
        advice.replace(b"urn:Shape", b"urn:Advice").replace(b"urn:Value", b"urn:Hint")
        + SHAPES.partition(b"\n")[2]
    )
    async with readers(tmp_path, count=1) as there:
        checked = validation(checkpoint, both, is_write_check=True, focus=focus)
        report = orjson.loads(await there.answer(checked))
        nowhere = validation(checkpoint, is_write_check=True, data_graph="urn:none")
        assert orjson.loads(await there.answer(nowhere))["conforms"]
    found = [result["focusNode"] for result in report["results"]]
    stats = report["stats"]
    if focus is None:
        assert (stats["violations"], stats["infos"]) == (36, 36)
        assert [result["severity"][-4:] for result in report["results"]] == ["tion"] * 36 + ["Info"] * 36
    else:
        assert (found, stats["focus_nodes_validated"]) == (["urn:s49"], 3)


async def test_what_is_too_deep_for_the_engine_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    nested = b"<urn:Shape> sh:targetNode <urn:s0> ; sh:not " + b"[ sh:not " * 3000 + b"<urn:x>" + b" ]" * 3000
    path = b"[ sh:inversePath " * 3000 + b"<urn:p>" + b" ]" * 3000
    endless_list = b"<urn:S> sh:targetNode 1 ; sh:in _:l . _:l " + (
        b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#first> 1 ; "
        b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:l ."
    )
    prefix = b"PREFIX sh: <http://www.w3.org/ns/shacl#> "
    with_path = (
        b"<urn:Shape> sh:targetNode <urn:s0> ; sh:property [ sh:path " + path + b" ; sh:minCount 1 ] ."
    )
    async with readers(tmp_path, count=1) as there:
        before = await there.pids()
        for shapes in (nested + b" .", with_path, endless_list):
            with pytest.raises((MalformedShapes, EvaluationFailed)):
                await there.answer(validation(checkpoint, prefix + shapes))
        assert await there.pids() == before


async def test_a_check_of_a_write_that_takes_too_long(tmp_path: Path) -> None:
    shapes_graph = NamedNode("urn:shapes")
    store = Store(str(tmp_path / "store"))
    store.load(ENDLESS, format=RdfFormat.TURTLE, to_graph=shapes_graph)
    store.extend(Quad(NamedNode(f"urn:s{n}"), NamedNode("urn:p"), Literal(n)) for n in range(300))
    async with readers(tmp_path, count=1) as there:
        checks = WriteChecks(
            there.client, RunningQueries(), tmp_path, 1, GateLimits(), asyncio.get_running_loop()
        )
        with pytest.raises(QueryTimeout, match="against the shapes of <urn:shapes> took longer than 1 s"):
            await asyncio.to_thread(checks.validate, shapes_graph, "default", QuadStore(store), None)
        assert not any(name.startswith("check-") for name in os.listdir(tmp_path))
