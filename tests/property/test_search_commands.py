"""Commands as bytes: what is encoded comes back, and nothing else does."""

import zlib
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.errors import CorruptionError
from graphdb.search.catalog.catalog_commands import (
    AliasAction,
    CloseIndices,
    Command,
    CreateDataStream,
    CreateIndex,
    CursorMove,
    DeleteComponentTemplates,
    DeleteDataStreams,
    DeleteIndexTemplates,
    DeleteIndices,
    DeleteLegacyTemplates,
    DeleteLifecycles,
    DeletePipelines,
    DeleteScript,
    DeleteSynonyms,
    DocumentWrite,
    ForgetDeletions,
    IntroduceNode,
    MigrateToDataStream,
    ModifyDataStreams,
    MoveLifecycle,
    OpenIndices,
    PutClusterSettings,
    PutComponentTemplate,
    PutIndexTemplate,
    PutLegacyTemplate,
    PutLifecycle,
    PutMapping,
    PutPipeline,
    PutScript,
    PutSettings,
    PutStreamLifecycle,
    PutSynonyms,
    RefreshIndices,
    RollOver,
    SetOperationMode,
    UpdateAliases,
    WriteDocuments,
)
from graphdb.search.catalog.command_codec import decode_command, encode_command
from graphdb.search.errors import SearchError
from graphdb.search.segments.operations import Action, Operation

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
LEAVES = st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
BODIES = st.dictionaries(
    TEXTS,
    st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=5),
    max_size=3,
)
NAMES = st.lists(TEXTS, max_size=3).map(tuple)
ERRORS = st.recursive(
    st.builds(SearchError, TEXTS, TEXTS, st.integers(400, 599), BODIES),
    lambda inner: st.builds(SearchError, TEXTS, TEXTS, st.integers(400, 599), BODIES, inner),
    max_leaves=3,
)
OPERATIONS = st.builds(
    Operation,
    st.sampled_from(Action),
    TEXTS,
    st.binary(max_size=20),
    st.none() | TEXTS,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    st.sampled_from(["internal", "external", "external_gte"]),
    st.none(),  # value is not logged
    st.none() | st.frozensets(TEXTS, max_size=3),
    wants_source=st.just(False),  # nor are these
    numbers=st.none(),
    dynamic_templates=st.none() | st.dictionaries(TEXTS, TEXTS, max_size=3),
)
WRITES = st.builds(
    DocumentWrite,
    TEXTS,
    OPERATIONS,
    st.booleans(),
    st.none() | st.tuples(NUMBERS, NUMBERS),
    st.none() | ERRORS,
    st.booleans(),
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(CreateIndex, TEXTS, TEXTS, BODIES, st.just(False), st.booleans(), st.none() | NUMBERS),
    st.builds(CreateDataStream, TEXTS, TEXTS),
    st.builds(DeleteDataStreams, NAMES),
    st.builds(PutStreamLifecycle, NAMES, st.none() | BODIES),
    st.builds(
        ModifyDataStreams, st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=3).map(tuple), st.booleans()
    ),
    st.builds(MigrateToDataStream, TEXTS, st.booleans()),
    st.builds(MoveLifecycle, TEXTS, TEXTS),
    st.builds(SetOperationMode, TEXTS, TEXTS),
    st.builds(PutLifecycle, TEXTS, BODIES),
    st.builds(DeleteLifecycles, NAMES),
    st.builds(DeleteIndices, NAMES),
    st.builds(CloseIndices, NAMES),
    st.builds(OpenIndices, NAMES),
    st.builds(PutLegacyTemplate, TEXTS, BODIES, st.booleans()),
    st.builds(DeleteLegacyTemplates, NAMES),
    st.builds(PutMapping, NAMES, BODIES),
    st.builds(PutSettings, NAMES, BODIES, st.booleans(), st.booleans(), st.booleans()),
    st.builds(PutClusterSettings, BODIES, BODIES),
    st.builds(PutIndexTemplate, TEXTS, BODIES, st.booleans()),
    st.builds(RollOver, TEXTS, TEXTS, BODIES, TEXTS, TEXTS),
    st.builds(PutComponentTemplate, TEXTS, BODIES, st.booleans()),
    st.builds(PutScript, TEXTS, BODIES),
    st.builds(DeleteScript, TEXTS),
    st.builds(
        PutSynonyms, TEXTS, st.lists(st.fixed_dictionaries({"id": TEXTS, "synonyms": TEXTS})), st.booleans()
    ),
    st.builds(DeleteSynonyms, TEXTS, st.none() | TEXTS),
    st.builds(PutPipeline, TEXTS, BODIES, st.none() | NUMBERS),
    st.builds(DeletePipelines, NAMES),
    st.builds(DeleteIndexTemplates, NAMES),
    st.builds(DeleteComponentTemplates, NAMES),
    st.builds(RefreshIndices, NAMES),
    st.builds(ForgetDeletions, NAMES),
    st.builds(IntroduceNode, NUMBERS, TEXTS, TEXTS, TEXTS),
    st.builds(
        UpdateAliases, st.lists(st.builds(AliasAction, TEXTS, TEXTS, TEXTS, BODIES), max_size=3).map(tuple)
    ),
    st.builds(
        WriteDocuments,
        st.lists(WRITES, max_size=4).map(tuple),
        st.booleans(),
        st.none() | st.builds(CursorMove, TEXTS, NUMBERS, NUMBERS, NUMBERS),
    ),
)


def comparable(value: Any) -> Any:
    """What has the same type and content is equal, errors and nan too; 1, 1.0 and True are not."""
    if isinstance(value, SearchError):
        return SearchError, comparable(vars(value))
    if is_dataclass(value):
        return type(value), [comparable(getattr(value, part.name)) for part in fields(value)]
    if isinstance(value, dict):
        return dict, {name: comparable(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value), [comparable(one) for one in value]
    if isinstance(value, float):
        return float, value.hex()  # 0.0 is not -0.0 either
    return type(value), value


@given(COMMANDS)
def test_a_command_comes_back(command: Command) -> None:
    assert comparable(decode_command(encode_command(command))) == comparable(command)


@given(COMMANDS, st.data())
def test_damage_is_corruption_or_another_command(command: Command, data: st.DataObject) -> None:
    payload = bytearray(encode_command(command))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.sampled_from([len(payload), place]))
    with suppress(CorruptionError):
        decode_command(bytes(payload[:cut]))


def test_a_value_that_was_read_already_is_not_logged() -> None:
    operation = Operation(Action.INDEX, "1", b'{"a":1}')
    payloads = {
        encode_command(WriteDocuments((DocumentWrite("i", one),)))
        for one in (operation, operation._replace(value={"a": 1}))
    }
    assert len(payloads) == 1


def test_documents_stand_as_they_came() -> None:
    body = b'{ "a" : 1.0,\n"b":"\\u0041" }'
    payload = encode_command(WriteDocuments((DocumentWrite("i", Operation(Action.INDEX, "1", body)),)))
    assert payload.endswith(body)
    assert len(payload) == 5 + 61 + len(body)
    assert zlib.crc32(payload) == zlib.crc32(encode_command(decode_command(payload)))


@pytest.mark.parametrize("value", [2**64, "\ud800", b"x"])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(SearchError, match="cannot be stored"):
        encode_command(PutSettings((), {"x": value}))


def test_what_is_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(2000):
        deep = {"a": deep}
    with pytest.raises(SearchError, match="cannot be stored"):
        encode_command(PutMapping((), deep))


def test_another_format_is_refused() -> None:
    payload = encode_command(RefreshIndices(()))
    with pytest.raises(CorruptionError, match="format 3, not 2"):
        decode_command(b"\x03" + payload[1:])
