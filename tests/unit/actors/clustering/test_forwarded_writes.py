"""Writes as bytes: what goes in comes out, and what is none is refused with what callers expect."""

import struct
from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from actors.clustering.forwarded_writes import (
    AlertChange,
    ForwardedWrite,
    GraphDeletion,
    GraphWrite,
    NamedStateChange,
    NamespaceChange,
    QuadPatchWrite,
    ResourceEdits,
    SavedQueryChange,
    SparqlUpdate,
    WrittenBy,
    decode_confirmation,
    decode_write,
    encode_confirmation,
)
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.alerts.commands import Create, Delete
from graphdb.graphql.edits import EditKind, Edits, ResourceEdit
from graphdb.history.named_states import ForgetState, NamedState, NameState
from graphdb.model import Author, Confirmation, Interface
from graphdb.namespaces import ClearNamespaces, RemoveNamespace, SetNamespace
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch
from graphdb.saved_queries import CreateQuery, DeleteQuery, QueryDraft, QueryWriter, ReplaceQuery
from graphdb.sparql.dataset import Dataset
from tests.support.alerts import definition

TEXTS = st.text(st.characters(codec="utf-8"))
IRIS = st.sampled_from(["urn:a", "http://example/é", "urn:" + "x" * 300]) | st.none()
GRAPHS = IRIS.map(lambda iri: None if iri is None else NamedNode(iri))
NAMED = st.lists(st.sampled_from([NamedNode("urn:a"), NamedNode("urn:ü")])).map(tuple)
INDEXES = st.integers(0, 2**63 - 1)
DATASETS = st.builds(Dataset, NAMED, NAMED)

VISIBILITIES = st.just(FULL_VISIBILITY) | st.builds(
    Visibility,
    default_graph=st.booleans(),
    patterns=st.frozensets(st.sampled_from(["*", "urn:a", "urn:ü*"])),
    sids=st.frozensets(TEXTS, max_size=2),
)
AUTHORS = st.builds(Author, TEXTS, st.sampled_from(Interface))
WRITERS = st.builds(WrittenBy, VISIBILITIES, AUTHORS)
EVERYTHING = WrittenBy(FULL_VISIBILITY)
PROPERTIES = st.sampled_from([NamedNode("urn:p"), NamedNode("urn:q")])
TERMS = st.one_of(
    st.sampled_from([NamedNode("urn:o"), NamedNode("http://example/é")]),
    TEXTS.map(Literal),
    st.builds(Literal, TEXTS, language=st.sampled_from(["en", "de-at"])),
    st.builds(Literal, TEXTS, datatype=st.just(NamedNode("urn:datatype"))),
)
EDITS = st.builds(
    ResourceEdit,
    st.sampled_from(EditKind),
    st.just(NamedNode("urn:s")),
    GRAPHS,
    NAMED,
    st.dictionaries(PROPERTIES, st.lists(TERMS).map(tuple)),
    INDEXES | st.none(),
)

QUADS = st.builds(
    Quad,
    st.sampled_from([NamedNode("urn:s"), BlankNode("0a")]),
    PROPERTIES,
    TERMS,
    st.sampled_from([DefaultGraph(), NamedNode("urn:g"), BlankNode("b")]),
)
PATCHES = st.lists(QUADS, unique=True).map(
    lambda quads: QuadPatch(tuple(quads[:2]), tuple(quads[2:]), len(quads) > 3)
)
QUERY_WRITERS = st.builds(QueryWriter, TEXTS, TEXTS, st.booleans())
DRAFTS = st.builds(QueryDraft, TEXTS, TEXTS, TEXTS, TEXTS | st.none(), st.booleans())
QUERY_COMMANDS = st.one_of(
    st.builds(CreateQuery, TEXTS, DRAFTS, QUERY_WRITERS, INDEXES),
    st.builds(ReplaceQuery, TEXTS, DRAFTS, QUERY_WRITERS, INDEXES),
    st.builds(DeleteQuery, TEXTS, QUERY_WRITERS),
)

NAMESPACE_COMMANDS = st.one_of(
    st.builds(SetNamespace, TEXTS, TEXTS), st.builds(RemoveNamespace, TEXTS), st.builds(ClearNamespaces)
)
STATE_COMMANDS = st.one_of(
    st.builds(NameState, st.builds(NamedState, TEXTS, INDEXES, INDEXES, TEXTS, INDEXES)),
    st.builds(ForgetState, TEXTS),
)

WRITES: st.SearchStrategy[ForwardedWrite] = st.one_of(
    st.builds(SparqlUpdate, TEXTS, IRIS, DATASETS, INDEXES, WRITERS),
    st.builds(
        GraphWrite,
        st.binary(),
        st.sampled_from(RdfSyntax),
        GRAPHS,
        st.booleans(),
        st.booleans(),
        IRIS,
        INDEXES,
        WRITERS,
    ),
    st.builds(GraphDeletion, GRAPHS, INDEXES, WRITERS),
    st.builds(ResourceEdits, st.builds(Edits, st.lists(EDITS).map(tuple), st.booleans()), INDEXES, WRITERS),
    st.builds(QuadPatchWrite, PATCHES, INDEXES, WRITERS),
    st.builds(AlertChange, st.builds(Create, TEXTS, TEXTS.map(definition), INDEXES), INDEXES),
    st.builds(AlertChange, st.builds(Delete, TEXTS), INDEXES),
    st.builds(SavedQueryChange, QUERY_COMMANDS, INDEXES),
    st.builds(NamespaceChange, NAMESPACE_COMMANDS, INDEXES),
    st.builds(NamedStateChange, STATE_COMMANDS, INDEXES),
)


@given(WRITES)
def test_writes_round_trip(write: ForwardedWrite) -> None:
    assert decode_write(write.operation, write.encode()) == write


@given(INDEXES, INDEXES, TEXTS)
def test_confirmations_round_trip(index: int, affected: int, message: str) -> None:
    confirmation = Confirmation(index, affected, message)
    assert decode_confirmation(encode_confirmation(confirmation)) == confirmation


def test_a_node_of_an_earlier_version_does_not_say_who_the_author_is() -> None:
    body = GraphDeletion(None, 3, EVERYTHING).encode()
    head = orjson.loads(body[4:])
    del head["author"], head["interface"]
    head = orjson.dumps(head)
    assert decode_write("delete_graph", struct.pack("<I", len(head)) + head) == GraphDeletion(
        None, 3, EVERYTHING
    )


def test_kinds_are_told_apart() -> None:
    assert (SparqlUpdate.operation, GraphWrite.operation, GraphDeletion.operation) == (
        "update",
        "write_graph",
        "delete_graph",
    )
    deletion = GraphDeletion(None, 3, EVERYTHING).encode()
    with pytest.raises(KeyError):
        decode_write("update", deletion)
    with pytest.raises(KeyError):
        decode_write("applied_index", deletion)


@given(
    st.sampled_from(
        ["update", "write_graph", "delete_graph", "edit", "change_alerts", "change_saved_queries", "nothing"]
    ),
    st.binary(),
)
def test_garbage_is_refused_in_the_ways_that_are_told(operation: str, body: bytes) -> None:
    with suppress(KeyError, ValueError, TypeError, StopIteration, struct.error):
        decode_write(operation, body)
        raise AssertionError("it was taken")


@given(WRITES, st.data())
def test_a_body_that_is_cut_within_its_head_is_refused(write: ForwardedWrite, data: st.DataObject) -> None:
    body = write.encode()
    head_end = 4 + struct.unpack_from("<I", body)[0]
    end = data.draw(st.integers(0, head_end - 1))
    with pytest.raises((ValueError, struct.error)):
        decode_write(write.operation, body[:end])


def test_a_syntax_that_is_not_known_is_refused() -> None:
    body = GraphWrite(b"", RdfSyntax.TURTLE, None, False, False, None, 0, EVERYTHING).encode()
    name = RdfSyntax.TURTLE.value.encode()
    with pytest.raises(StopIteration):
        decode_write("write_graph", body.replace(name, b"x" * len(name)))


def test_what_is_logged_of_a_write_does_not_show_its_content() -> None:
    update = SparqlUpdate("INSERT DATA { <urn:secret> <urn:p> 1 }", None, Dataset(), 0, EVERYTHING)
    document = GraphWrite(b"<urn:secret>", RdfSyntax.TURTLE, None, False, False, None, 0, EVERYTHING)
    assert "secret" not in repr((update, document))
