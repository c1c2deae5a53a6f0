"""Writing by whoever does not see everything, to a shard over a real log and real readers."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import EditRefused, Forbidden, ShapesViolated, UnknownGraph
from graphdb.graphql.edits import EditKind, Edits, ResourceEdit
from graphdb.model import Confirmation
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.shards import Shard, open_shard

pytestmark = pytest.mark.anyio

ACL = "PREFIX acl: <urn:graphdb:acl#> "
OPEN, SECRET = NamedNode("urn:open"), NamedNode("urn:secret")
# sees every graph but urn:secret, and of what is annotated what is for one SID
SOME = Visibility(default_graph=True, patterns=frozenset({"urn:open*"}), sids=frozenset({"S-1"}))
DATA = """
    <urn:a> <urn:p> 1 , 2 .
    << <urn:a> <urn:p> 2 >> acl:allowedSid "S-1" .
    GRAPH <urn:open> {
        <urn:b> <urn:name> "public" , "hidden" , "for one" .
        << <urn:b> <urn:name> "hidden" >> acl:allowedSid "S-9" .
        << <urn:b> <urn:name> "for one" >> acl:allowedSid "S-1" . }
    GRAPH <urn:openshadow> { <urn:c> <urn:p> 1 . << <urn:c> <urn:p> 1 >> acl:allowedSid "S-9" }
    GRAPH <urn:secret> { <urn:s> <urn:p> 1 }
"""


@pytest.fixture
async def shard(tmp_path: Path) -> AsyncIterator[Shard]:
    async with open_shard(tmp_path) as opened:
        await update(opened, f"INSERT DATA {{ {DATA} }}", FULL_VISIBILITY)
        yield opened


async def update(
    shard: Shard, text: str, visibility: Visibility = SOME, using: Dataset | None = None
) -> Confirmation:
    return await shard.writes(visibility).update(parse_update(ACL + text), using or Dataset())


async def put(
    shard: Shard, body: bytes, graph: NamedNode | None, *, replace: bool = True, visibility: Visibility = SOME
) -> Confirmation:
    async def once() -> AsyncIterator[bytes]:
        yield body

    syntax = RdfSyntax.TURTLE
    return await shard.writes(visibility).write_graph(
        once(), syntax, graph=graph, whole_dataset=False, replace=replace, base_iri=None
    )


def quads(shard: Shard) -> set[Quad]:
    return set(shard.dataset_quads())


def names(shard: Shard, graph: NamedNode = OPEN) -> set[str]:
    """What is really there."""
    found = shard.quads_matching(None, NamedNode("urn:name"), None, graph)
    return {quad.object.value for quad in found if isinstance(quad.object, Literal)}


async def seen(shard: Shard, visibility: Visibility = SOME, graph: NamedNode = OPEN) -> set[str]:
    found = (await shard.reads(visibility)).quads_matching(None, NamedNode("urn:name"), None, graph)
    return {quad.object.value for quad in found if isinstance(quad.object, Literal)}


@pytest.mark.parametrize(
    "text",
    [
        "INSERT DATA { GRAPH <urn:secret> { <urn:x> <urn:p> 1 } }",
        "INSERT DATA { GRAPH <urn:nowhere> { <urn:x> <urn:p> 1 } }",
        "DELETE DATA { GRAPH <urn:secret> { <urn:s> <urn:p> 1 } }",
        "DELETE DATA { GRAPH <urn:secret> { <urn:never> <urn:was> <urn:there> } }",
        "INSERT { GRAPH <urn:secret> { ?s ?p ?o } } WHERE { GRAPH <urn:open> { ?s ?p ?o } }",
        "DELETE { GRAPH <urn:secret> { ?s ?p ?o } } WHERE { GRAPH <urn:open> { ?s ?p ?o } }",
        "WITH <urn:secret> INSERT { <urn:x> <urn:p> 1 } WHERE { }",
        "CREATE GRAPH <urn:secret>",
        "CREATE SILENT GRAPH <urn:nowhere>",
        "CLEAR SILENT GRAPH <urn:secret>",
        "DROP GRAPH <urn:secret>",
        "DROP SILENT GRAPH <urn:nowhere>",
        "COPY GRAPH <urn:secret> TO <urn:open>",
        "COPY SILENT GRAPH <urn:open> TO <urn:secret>",
        "MOVE <urn:secret> TO <urn:open>",
        "ADD DEFAULT TO <urn:secret>",
        "LOAD SILENT <urn:document> INTO GRAPH <urn:secret>",
        "INSERT DATA { <urn:x> acl:allowedSid 'S-1' }",
        "INSERT { ?s acl:allowedSid 'S-1' } WHERE { ?s <urn:p> 1 }",
        "INSERT DATA { << <urn:a> <urn:p> 1 >> acl:allowedSid 'S-1' }",
    ],
)
async def test_refused_as_a_whole(shard: Shard, text: str) -> None:
    before = quads(shard)
    with pytest.raises(Forbidden):
        await update(shard, text)
    with pytest.raises(Forbidden):
        await update(shard, f"INSERT DATA {{ <urn:fine> <urn:p> 1 }} ; {text}")
    assert quads(shard) == before


async def test_whoever_knows_what_annotates_cannot_annotate_by_it(shard: Shard) -> None:
    await update(shard, "INSERT DATA { <urn:r> acl:allowedSid 'S-9' }", FULL_VISIBILITY)
    reifying = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> INSERT DATA { %s }"
    triple = "<urn:r> rdf:reifies <<( <urn:a> <urn:p> 1 )>>"
    with pytest.raises(Forbidden, match="statements of <urn:r>"):
        await update(shard, reifying % triple)
    assert (await update(shard, reifying % f"GRAPH <urn:open> {{ {triple} }}")).affected_triples == 1


async def test_where_sees_what_its_writer_sees(shard: Shard) -> None:
    text = (
        "INSERT { GRAPH <urn:openseen> { ?s <urn:name> ?name } } WHERE { GRAPH ?g { ?s <urn:name> ?name } }"
    )
    assert (await update(shard, text)).affected_triples == 2
    assert names(shard, NamedNode("urn:openseen")) == {"public", "for one"}
    count = (
        "INSERT { GRAPH <urn:openseen> { <urn:n> <urn:is> ?n } }"
        " WHERE { SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } } }"
    )
    await update(shard, count)
    found = shard.quads_matching(NamedNode("urn:n"), None, None, NamedNode("urn:openseen"))
    assert [quad.object.value for quad in found] == ["6"]


async def test_what_is_hidden_is_not_deleted(shard: Shard) -> None:
    assert (await update(shard, "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }")).affected_triples == 2
    assert names(shard) == {"hidden"}
    hidden = "DELETE DATA { GRAPH <urn:open> { <urn:b> <urn:name> 'hidden' } }"
    assert (await update(shard, hidden)).affected_triples == 0
    assert (await update(shard, "DELETE WHERE { ?r acl:allowedSid ?sid }")).affected_triples == 0
    await update(shard, "CLEAR ALL ; DROP NAMED")
    assert names(shard) == {"hidden"}
    assert shard.graph_exists(SECRET)


async def test_what_is_hidden_counts_as_added_and_changes_nothing(shard: Shard) -> None:
    before, index = quads(shard), shard.snapshot_index()
    text = "INSERT DATA { GRAPH <urn:open> { <urn:b> <urn:name> 'hidden' } }"
    for more in (1, 2):
        assert await update(shard, text) == Confirmation(index + more, 1), (
            "as one that really changes something"
        )
    assert quads(shard) == before
    assert "hidden" not in await seen(shard)


async def test_a_write_that_is_sent_again_tells_the_same_after_a_restart_too(tmp_path: Path) -> None:
    named = " ".join(f"<urn:b> <urn:name> '{name}' ." for name in ("public", "hidden", "new"))
    inserting = parse_update(f"INSERT DATA {{ GRAPH <urn:open> {{ {named} }} }}")
    key, copy = bytes(15) + b"1", bytes(15) + b"2"
    copying = parse_update("COPY <urn:open> TO <urn:opencopy>")
    async with open_shard(tmp_path) as shard:
        await update(shard, f"INSERT DATA {{ {DATA} }}", FULL_VISIBILITY)
        told = [
            await shard.writes(SOME).update(inserting, Dataset(), key),
            await shard.writes(SOME).update(copying, Dataset(), copy),
        ]
    assert [one.affected_triples for one in told] == [2, 3]
    async with open_shard(tmp_path) as shard:
        for request_id, one in zip((key, copy), told, strict=True):
            again = await shard.writes(SOME).update(inserting, Dataset(), request_id)
            assert again == replace(one, message="applied before")


async def test_annotations_outlive_what_they_protect(shard: Shard) -> None:
    data = "DATA { GRAPH <urn:open> { <urn:b> <urn:name> 'for one' } }"
    await update(shard, f"DELETE {data}")
    await update(shard, f"INSERT {data}")
    assert await seen(shard) == {"public", "for one"}
    assert await seen(shard, Visibility(patterns=frozenset({"urn:open"}))) == {"public"}


async def test_a_graph_of_hidden_triples_is_not_there_and_stays(shard: Shard) -> None:
    with pytest.raises(UnknownGraph):
        await update(shard, "DROP GRAPH <urn:openshadow>")
    before = quads(shard)
    assert (await update(shard, "CREATE GRAPH <urn:openshadow>")).affected_triples == 0
    assert quads(shard) == before


@pytest.mark.parametrize("verb", ["COPY", "ADD", "MOVE"])
async def test_copies_are_protected_as_their_source(shard: Shard, verb: str) -> None:
    target = NamedNode("urn:opencopy")
    await update(shard, f"{verb} <urn:open> TO <urn:opencopy>")
    assert names(shard, target) == {"public", "for one"}
    assert await seen(shard, graph=target) == {"public", "for one"}
    others = Visibility(patterns=frozenset({"*"}), sids=frozenset({"S-9"}))
    assert await seen(shard, others, target) == {"public"}
    assert names(shard) == ({"hidden"} if verb == "MOVE" else {"public", "hidden", "for one"})


async def test_copying_again_lets_nobody_in(shard: Shard) -> None:
    protect = (
        "INSERT DATA { GRAPH <urn:opencopy> { << <urn:b> <urn:name> 'for one' >> acl:allowedSid 'S-9' } }"
    )
    await update(shard, protect, FULL_VISIBILITY)
    await update(shard, "ADD <urn:open> TO <urn:opencopy>")
    assert await seen(shard, graph=NamedNode("urn:opencopy")) == {"public"}


async def test_a_document_replaces_what_is_seen(shard: Shard) -> None:
    assert (await put(shard, b"<urn:b> <urn:name> 'new' .", OPEN)).affected_triples == 3
    assert names(shard) == {"new", "hidden"}
    assert (await put(shard, b"", OPEN)).affected_triples == 1
    assert names(shard) == {"hidden"}


async def test_documents_are_refused_as_updates_are(shard: Shard) -> None:
    before = quads(shard)
    annotated = b"<< <urn:b> <urn:name> 'public' >> <urn:graphdb:acl#allowedSid> 'S-1' ."
    for body, graph in ((annotated, OPEN), (b"", SECRET), (b"<urn:x> <urn:p> 1 .", NamedNode("urn:nowhere"))):
        for replaces in (False, True):
            with pytest.raises(Forbidden):
                await put(shard, body, graph, replace=replaces)
    assert quads(shard) == before


async def test_a_graph_is_deleted_as_far_as_it_is_seen(shard: Shard) -> None:
    writes = shard.writes(SOME)
    with pytest.raises(Forbidden):
        await writes.delete_graph(SECRET)
    with pytest.raises(UnknownGraph):
        await writes.delete_graph(NamedNode("urn:opennever"))
    assert (await writes.delete_graph(OPEN)).affected_triples == 2
    assert names(shard) == {"hidden"}
    with pytest.raises(UnknownGraph):
        await writes.delete_graph(OPEN)
    assert (await writes.delete_graph(None)).affected_triples == 2
    assert not {q for q in quads(shard) if q.graph_name == DefaultGraph() and q.predicate.value == "urn:p"}


async def test_a_patch_reaches_what_is_seen(shard: Shard) -> None:
    hidden = Quad(NamedNode("urn:b"), NamedNode("urn:name"), Literal("hidden"), OPEN)
    for graph in (SECRET, NamedNode("urn:nowhere")):
        quad = Quad(hidden.subject, hidden.predicate, hidden.object, graph)
        with pytest.raises(Forbidden):
            await shard.writes(SOME).patch(QuadPatch((quad,)))
    assert (await shard.writes(SOME).patch(QuadPatch((hidden,)))).affected_triples == 0
    new = Quad(hidden.subject, hidden.predicate, Literal("new"), OPEN)
    assert (await shard.writes(SOME).patch(QuadPatch((hidden,), (new,)))).affected_triples == 1
    secret = [quad for quad in quads(shard) if quad.graph_name == SECRET]
    await shard.writes(SOME).patch(QuadPatch((), (new,), replaces_all=True))
    assert names(shard) == {"new", "hidden"}
    assert [quad for quad in quads(shard) if quad.graph_name == SECRET] == secret


def edit(kind: EditKind, graph: NamedNode, since: int | None = None) -> Edits:
    values = {NamedNode("urn:name"): (Literal("new"),)} if kind is not EditKind.DELETE else {}
    one = ResourceEdit(kind, NamedNode("urn:b"), graph, (NamedNode("urn:Thing"),), values, since)
    return Edits((one,))


async def test_resources_are_edited_as_far_as_they_are_seen(shard: Shard) -> None:
    for kind in EditKind:
        with pytest.raises(Forbidden):
            await shard.writes(SOME).edit(edit(kind, SECRET))
    with pytest.raises(EditRefused):
        await shard.writes(SOME).edit(edit(EditKind.UPDATE, OPEN))
    await update(shard, "INSERT DATA { GRAPH <urn:open> { <urn:b> a <urn:Thing> } }")
    assert (await shard.writes(SOME).edit(edit(EditKind.UPDATE, OPEN))).affected_triples == 3
    assert names(shard) == {"new", "hidden"}
    assert (await shard.writes(SOME).edit(edit(EditKind.DELETE, OPEN))).affected_triples == 2
    assert names(shard) == {"hidden"}


async def test_a_hidden_change_is_none_to_whoever_edits(shard: Shard) -> None:
    typed = "INSERT DATA { GRAPH <urn:open> { <urn:b> a <urn:Thing> } }"
    since = (await update(shard, typed)).snapshot_index
    hidden = "INSERT DATA { GRAPH <urn:open> { << <urn:b> <urn:name> 'h' >> acl:allowedSid 'S-9' } } ;"
    await update(
        shard, hidden + "INSERT DATA { GRAPH <urn:open> { <urn:b> <urn:name> 'h' } }", FULL_VISIBILITY
    )
    confirmed = await shard.writes(SOME).edit(edit(EditKind.UPDATE, OPEN, since))
    assert confirmed.affected_triples == 3
    with pytest.raises(EditRefused, match="has changed"):
        await shard.writes(SOME).edit(edit(EditKind.UPDATE, OPEN, since))


async def test_shapes_judge_what_the_writer_sees(tmp_path: Path) -> None:
    shapes = """PREFIX sh: <http://www.w3.org/ns/shacl#> INSERT DATA {
        GRAPH <urn:shapes> {
            <urn:S> sh:targetClass <urn:P> ; sh:property [ sh:path <urn:name> ; sh:maxCount 1 ] .
            <urn:T> sh:targetClass <urn:Q> ; sh:sparql [ sh:message "secretly {?value}" ;
                sh:select "SELECT $this ?value { $this <urn:name> ?value . ?other <urn:bans> ?value }" ] }
        <urn:a> a <urn:P> ; <urn:name> "hidden" . << <urn:a> <urn:name> "hidden" >> acl:allowedSid "S-9" .
        <urn:x> <urn:bans> "banned" . << <urn:x> <urn:bans> "banned" >> acl:allowedSid "S-9" .
        <urn:x> <urn:bans> "spam" }"""
    visibility = Visibility(default_graph=True, patterns=frozenset({"urn:shapes"}))
    async with open_shard(tmp_path, shacl={"enforce_graph": "urn:shapes"}) as shard:
        await update(shard, shapes, FULL_VISIBILITY)
        assert (await update(shard, "INSERT DATA { <urn:a> <urn:name> 'one' }")).affected_triples == 1
        for writer, told in ((SOME, "does not see"), (visibility, "at most 1|urn:a")):
            with pytest.raises(ShapesViolated, match=told) as raised:
                await update(shard, "INSERT DATA { <urn:a> <urn:name> 'two' }", writer)
            assert "hidden" not in str(raised.value)
        allowed = "INSERT DATA { <urn:q> a <urn:Q> ; <urn:name> 'banned' }"
        assert (await update(shard, allowed)).affected_triples == 2
        for writer, told in ((SOME, "does not see"), (visibility, "secretly spam")):
            with pytest.raises(ShapesViolated, match=told):
                await update(shard, "INSERT DATA { <urn:r> a <urn:Q> ; <urn:name> 'spam' }", writer)


async def test_a_large_document_goes_in_by_parts(shard: Shard) -> None:
    lines = b"".join(b"<urn:n%d> <urn:name> 'n' .\n" % number for number in range(25_000))
    confirmed = await put(shard, lines + b"<urn:b> <urn:name> 'hidden' .", OPEN)
    assert confirmed.affected_triples == 25_000 + 1 + 2
    assert names(shard) == {"n", "hidden"}
    before = quads(shard)
    with pytest.raises(Forbidden):
        await put(
            shard, lines.replace(b"'n'", b"'m'") + b"<urn:x> <urn:graphdb:acl#allowedSid> 'S-1' .", OPEN
        )
    assert quads(shard) == before
