"""Indexes, aliases and templates: what may be, and Elasticsearch's words for what may not."""

from typing import Any

import pytest

from graphdb.search.catalog.catalog_commands import (
    AliasAction,
    Command,
    CreateIndex,
    CursorMove,
    DeleteComponentTemplates,
    DeleteIndexTemplates,
    DeleteIndices,
    DocumentWrite,
    IntroduceNode,
    PutClusterSettings,
    PutComponentTemplate,
    PutIndexTemplate,
    PutMapping,
    PutSettings,
    RollOver,
    UpdateAliases,
    WriteDocuments,
)
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.segments.operations import Action, Operation
from tests.unit.search.catalog.catalogs import Commands, put

KEYWORD = {"type": "keyword"}
TEXT = {"type": "text"}


def properties(**fields: Any) -> dict[str, Any]:
    return {"properties": fields}


def refused(commands: Commands, command: Command) -> SearchError:
    """The error, the same of checking and of applying."""
    with pytest.raises(SearchError) as checked:
        commands.catalog.check(command)
    with pytest.raises(SearchError) as applied:
        commands(command)
    assert repr(checked.value) == repr(applied.value)
    return applied.value


@pytest.mark.parametrize(
    ("name", "body", "kind", "reason"),
    [
        ("a", {}, "resource_already_exists_exception", "index [a/a] already exists"),
        ("x", {}, "invalid_index_name_exception", "Invalid index name [x], already exists as alias"),
        ("n", {"nonsense": 1}, "parse_exception", "unknown key [nonsense] for create index"),
        (
            "n",
            {"aliases": {"a": {}}},
            "invalid_alias_name_exception",
            "Invalid alias name [a]: an index or data stream exists with the same name as the alias",
        ),
        (
            "n",
            {"aliases": {"n": {}}},
            "invalid_alias_name_exception",
            "Invalid alias name [n]: an index or data stream exists with the same name as the alias",
        ),
        (
            "n",
            {"aliases": {"y": {"nonsense": 1}}},
            "illegal_argument_exception",
            "Unknown field [nonsense] in alias [y]",
        ),
        (
            "n",
            {"aliases": {"y": {"filter": {"nonsense": {}}}}},
            "illegal_argument_exception",
            "failed to parse filter for alias [y]",
        ),
        ("n", {"mappings": {"properties": {"f": {"type": "nonsense"}}}}, "mapper_parsing_exception", None),
        (
            "n",
            {"settings": {"analysis": {"analyzer": {"b": {"tokenizer": "nonsense"}}}}},
            "illegal_argument_exception",
            "Custom Analyzer [b] failed to find tokenizer under name [nonsense]",
        ),
        ("n", {"settings": {"graph": {"shape": "ex:X"}}}, "illegal_argument_exception", None),
    ],
)
def test_indexes_that_cannot_be_made(name: str, body: Any, kind: str, reason: str | None) -> None:
    commands = Commands("a")
    commands.alias("a", "x")
    error = refused(commands, CreateIndex(name, "new", body))
    assert error.kind == kind
    assert reason is None or error.reason == reason
    assert [index.name for index in commands.catalog.indexes()] == ["a"]


def test_there_are_no_more_than_a_thousand_indexes() -> None:
    commands = Commands(*(f"i{number}" for number in range(1000)))
    error = refused(commands, CreateIndex("n", "new"))
    assert "currently has [1000]/[1000] maximum normal shards open" in error.reason


def test_the_graphs_settings_are_asked_about() -> None:
    commands = Commands()
    asked = []

    def check(settings: Any) -> None:
        asked.append(settings)
        if settings["shape"] == "bad":
            raise illegal_argument("no shape")

    commands.catalog.check_graph = check
    commands.create("a", {"settings": {"graph": {"shape": {"class": "ex:X"}}}})
    assert refused(commands, CreateIndex("b", "b", {"settings": {"graph.shape": "bad"}})).reason == "no shape"
    assert asked[0] == {"shape": {"class": "ex:X"}}
    index = commands.catalog.find("a")
    assert index is not None
    assert index.settings["graph"] == {"shape": {"class": "ex:X"}}


def test_a_mapping_is_put_into_all_or_none() -> None:
    commands = Commands("a", "b")
    commands(PutMapping(("b",), properties(f=KEYWORD)))
    error = refused(commands, PutMapping(("a", "b"), properties(f=TEXT)))
    assert error.reason == "mapper [f] cannot be changed from type [keyword] to [text]"
    assert [index.mapping.as_json() for index in commands.catalog.indexes()] == [{}, properties(f=KEYWORD)]


def test_an_alias_changes_nothing_else() -> None:
    commands = Commands("a")
    commands(IntroduceNode(1, "n", "host:9200", "cluster"))
    commands(PutClusterSettings({"action.auto_create_index": "false"}))
    before = commands.catalog.state
    commands(UpdateAliases((AliasAction("add", "a", "x"),)))
    after = commands.catalog.state
    assert after.by_alias.keys() == {"x"}
    assert (after.cluster_uuid, after.nodes, after.cluster_settings) == (
        before.cluster_uuid,
        before.nodes,
        before.cluster_settings,
    )
    assert after.cluster_uuid == "cluster"


def test_a_rollover_meets_another_state_than_it_was_made_for() -> None:
    commands = Commands("a-1", "b")
    commands(
        UpdateAliases(
            (AliasAction("add", "a-1", "x"), AliasAction("add", "b", "x", {"is_write_index": True}))
        )
    )
    error = refused(commands, RollOver("a-2", "u", {}, "x", "a-1"))
    assert error.reason == "[a-1] is not what is written to by alias [x] any more"
    assert commands.catalog.find("a-2") is None


@pytest.mark.parametrize(
    "command",
    [
        DeleteIndices(("a", "gone")),
        PutMapping(("a", "gone"), {}),
        PutSettings(("a", "gone"), {"hidden": True}),
        UpdateAliases((AliasAction("add", "gone", "x"),)),
        UpdateAliases((AliasAction("remove_index", "gone"),)),
    ],
)
def test_an_index_that_is_gone_by_now(command: Command) -> None:
    commands = Commands("a")
    assert refused(commands, command).reason == "no such index [gone]"
    index = commands.catalog.find("a")
    assert index is not None
    assert "hidden" not in index.settings


def test_aliases_change_together() -> None:
    commands = Commands("old", "new")
    commands.alias("old", "logs", is_write_index=True)
    swap = (
        AliasAction("add", "new", "logs", {"is_write_index": True}),
        AliasAction("remove", "old", "logs", {"must_exist": True}),
    )
    error = refused(commands, UpdateAliases(swap[:1]))
    assert (error.kind, error.reason) == (
        "illegal_state_exception",
        "alias [logs] has more than one write index [new,old]",
    )
    commands(UpdateAliases(swap))
    assert commands.catalog.aliases == {"logs": {"new": {"is_write_index": True}}}
    error = refused(commands, UpdateAliases(swap[1:]))
    assert (error.kind, error.reason) == ("aliases_not_found_exception", "aliases [logs] missing")


def test_an_alias_takes_the_name_of_an_index_that_goes() -> None:
    commands = Commands("logs", "logs-2")
    take = (AliasAction("remove_index", "logs"), AliasAction("add", "logs-2", "logs"))
    commands(UpdateAliases(take))
    assert [index.name for index in commands.catalog.indexes()] == ["logs-2"]
    assert commands.catalog.write_index("logs").name == "logs-2"


def test_how_routing_of_an_alias_is_kept() -> None:
    commands = Commands("a")
    commands.alias("a", "x", routing=1, search_routing="2,3", is_hidden="true")
    assert commands.catalog.aliases["x"]["a"] == {
        "index_routing": "1",
        "search_routing": "2,3",
        "is_hidden": True,
    }


def template(**members: Any) -> PutIndexTemplate:
    return PutIndexTemplate("t", {"index_patterns": ["logs-*"], **members})


def test_an_index_gets_what_its_template_says() -> None:
    commands = Commands()
    component = {"settings": {"number_of_replicas": 0}, "mappings": properties(a=KEYWORD, b=KEYWORD)}
    commands(PutComponentTemplate("c", {"template": component}))
    own = {"settings": {"refresh_interval": "9s"}, "mappings": properties(b=TEXT), "aliases": {"all": {}}}
    commands(template(composed_of=["c"], priority=2, template=own))
    commands(
        PutIndexTemplate("low", {"index_patterns": "*", "priority": 1, "template": {"aliases": {"z": {}}}})
    )
    commands.create("logs-1", {"settings": {"index.refresh_interval": "1s"}, "mappings": properties(c=TEXT)})
    index = commands.catalog.find("logs-1")
    assert index is not None
    assert index.settings == {"number_of_replicas": "0", "refresh_interval": "1s"}
    assert index.mapping.as_json() == properties(a=KEYWORD, b=TEXT, c=TEXT)
    assert index.aliases == {"all": {}}


@pytest.mark.parametrize(
    ("command", "kind", "reason"),
    [
        (
            template(composed_of=["c", "gone"]),
            "invalid_index_template_exception",
            "index_template [t] invalid, cause [index template [t] specifies component templates [gone] that "
            "do not exist]",
        ),
        (
            PutIndexTemplate("t", {"index_patterns": ["l*"], "priority": 3}),
            "illegal_argument_exception",
            "index template [t] has index patterns [l*] matching patterns from existing templates [there] "
            "with patterns (there => [lo*]) that have the same priority [3], multiple index templates may "
            "not match during index creation, please use a different priority",
        ),
        (template(nonsense=1), "x_content_parse_exception", "[index_template] unknown field [nonsense]"),
        (PutIndexTemplate("t", {}), "illegal_argument_exception", "Required [index_patterns]"),
        (PutIndexTemplate("t", {"index_patterns": [1]}), "invalid_index_template_exception", None),
        (PutIndexTemplate("t", {"index_patterns": ["_a"]}), "invalid_index_template_exception", None),
        (template(priority=-1), "action_request_validation_exception", None),
        (template(data_stream={"colour": True}), "x_content_parse_exception", None),
        (template(template={"settings": {"nonsense": 1}}), "invalid_index_template_exception", None),
        (
            template(template={"mappings": {"properties": {"f": {"type": "nonsense"}}}}),
            "illegal_argument_exception",
            "composable template [t] template after composition is invalid",
        ),
        (
            PutIndexTemplate("there", {"index_patterns": ["x"]}, create=True),
            "illegal_argument_exception",
            "index template [there] already exists",
        ),
        (
            DeleteComponentTemplates(("c",)),
            "illegal_argument_exception",
            "component templates [c] cannot be removed as they are still in use by index templates [there]",
        ),
        (
            DeleteIndexTemplates(("there", "gone")),
            "index_template_missing_exception",
            "index_template [gone] missing",
        ),
        (DeleteComponentTemplates(("gone",)), "resource_not_found_exception", "gone"),
        (
            PutComponentTemplate("c", {"template": {"mappings": properties(f={"type": "nonsense"})}}),
            "illegal_argument_exception",
            "composable template [there] template after composition is invalid",
        ),
    ],
)
def test_templates_that_cannot_be(command: Command, kind: str, reason: str | None) -> None:
    commands = Commands()
    commands(PutComponentTemplate("c", {"template": {}}))
    there = {"index_patterns": ["lo*"], "priority": 3, "composed_of": ["c"]}
    commands(PutIndexTemplate("there", there))
    error = refused(commands, command)
    assert error.kind == kind
    assert reason is None or error.reason == reason
    assert list(commands.catalog.templates) == ["there"]


def test_templates_are_shown_as_they_count() -> None:
    commands = Commands()
    commands(template(template={"settings": {"number_of_shards": 2}}, version=3, _meta={"by": "me"}))
    assert commands.catalog.templates["t"] == {
        "index_patterns": ["logs-*"],
        "composed_of": [],
        "version": 3,
        "_meta": {"by": "me"},
        "template": {"settings": {"index": {"number_of_shards": "2"}}},
    }
    commands(DeleteIndexTemplates(("t",)))
    assert commands.catalog.templates == {}


def test_a_document_makes_its_index() -> None:
    commands = Commands()
    commands(template(allow_auto_create=False))
    writes = WriteDocuments(
        (
            put("new", "1"),
            put("Bad", "1"),
            put("logs-1", "1"),
            put("absent", "1", require_alias=True),
            put("new", "2"),
        )
    )
    results = commands(writes)
    assert [one.result.error and one.result.error.reason for one in results] == [
        None,
        "Invalid index name [Bad], must be lowercase",
        "no such index [logs-1] and composable template [['logs-*']] forbids index auto creation",
        "no such index [absent] and [require_alias] request flag is [true] and [absent] is not an alias",
        None,
    ]
    other = Commands()
    other(template(allow_auto_create=False))
    other(writes)
    (made,), (again,) = commands.catalog.indexes(), other.catalog.indexes()
    assert made.uuid == again.uuid
    assert len(made.uuid) == 22


def test_deleting_a_document_makes_no_index() -> None:
    commands = Commands()
    plain = Operation(Action.DELETE, "1")
    external = Operation(Action.DELETE, "1", version=3, version_type="external")
    results = commands.write(DocumentWrite("gone", plain), DocumentWrite("kept", external))
    assert [one.result.status for one in results] == [404, 404]
    assert [one.result.error is None for one in results] == [False, True]
    assert [index.name for index in commands.catalog.indexes()] == ["kept"]


def test_writing_through_an_alias() -> None:
    commands = Commands("a", "b")
    commands.alias("a", "x", index_routing="r")
    commands.alias("b", "x", is_write_index=True, index_routing="r")
    results = commands.write(put("x", "1"), put("x", "2", routing="s"), put("x", "3", require_alias=True))
    assert [one.index for one in results] == ["b", "x", "b"]
    assert results[1].result.error is not None
    assert results[1].result.error.reason == (
        "Alias [x] has index routing associated with it [r], and was provided with routing value [s], "
        "rejecting operation"
    )
    index = commands.catalog.find("b")
    assert index is not None
    document = index.shards.get("1")
    assert document is not None
    assert document.routing == "r"


def test_what_keeps_documents_out() -> None:
    commands = Commands()
    commands.create("a", {"settings": {"blocks.write": True}})
    commands.create("b", {"mappings": {"_routing": {"required": True}}})
    results = commands.write(put("a", "1"), put("b", "1"), put("b", "2", routing="r"))
    errors = [one.result.error for one in results]
    assert [error and (error.kind, error.status, error.reason) for error in errors] == [
        ("cluster_block_exception", 403, "index [a] blocked by: [FORBIDDEN/8/index write (api)];"),
        ("routing_missing_exception", 400, "routing is required for [b]/[1]"),
        None,
    ]


def test_a_mistake_of_ours_is_one_documents_failure(caplog: pytest.LogCaptureFixture) -> None:
    commands = Commands("a")
    index = commands.catalog.find("a")
    assert index is not None
    parse = index.mapping.parse

    def fail(source: Any, doc_id: str, templates: Any) -> Any:
        if doc_id == "2":
            raise ZeroDivisionError("oh")
        return parse(source, doc_id, templates)

    index.mapping.parse = fail  # type: ignore[method-assign, assignment]
    results = commands.write(*(put("a", str(number)) for number in range(1, 4)))
    assert [one.result.status for one in results] == [201, 500, 201]
    error = results[1].result.error
    assert error is not None
    assert (error.kind, error.reason) == ("exception", "ZeroDivisionError: oh")
    assert "could not be applied" in caplog.text


def test_a_cursor_lets_each_change_of_the_graph_in_once() -> None:
    commands = Commands("a")
    writes = (put("a", "1"),)
    assert len(commands(WriteDocuments(writes, cursor=CursorMove("a", 0, 5)))) == 1
    assert commands(WriteDocuments(writes, cursor=CursorMove("a", 0, 5))) == []
    index = commands.catalog.find("a")
    assert index is not None
    assert (index.cursor, index.shards.get("1").version) == (5, 1)  # type: ignore[union-attr]
    assert refused_cursor(commands) == "no such index [gone]"


def test_a_cursor_stays_unfinished_while_an_older_form_of_a_refused_document_is_there() -> None:
    commands = Commands()
    commands.create("a", {"mappings": {"properties": {"year": {"type": "long"}}}})
    index = commands.catalog.find("a")
    assert index is not None
    refused = put("a", "1", b'{"year": "some"}')
    commands(WriteDocuments((refused, put("a", "2")), cursor=CursorMove("a", 0, 5, -7)))
    assert index.cursor == 5, "there was none"
    commands(WriteDocuments((put("a", "1"),), cursor=CursorMove("a", 5, 6, -8)))
    commands(WriteDocuments((refused,), cursor=CursorMove("a", 6, 7, -9)))
    assert index.cursor == -9
    gone = DocumentWrite("a", Operation(Action.DELETE, "1"))
    commands(WriteDocuments((gone,), cursor=CursorMove("a", -9, 7, -10)))
    assert (index.cursor, sorted(index.shards.ids())) == (7, ["2"])


def test_a_blocked_index_does_not_move_its_cursor() -> None:
    commands = Commands("a")
    commands(PutSettings(("a",), {"blocks.write": True}))
    with pytest.raises(SearchError, match="FORBIDDEN/8"):
        commands(WriteDocuments((put("a", "1"),), cursor=CursorMove("a", 0, 5)))
    index = commands.catalog.find("a")
    assert index is not None
    assert (index.cursor, index.shards.get("1")) == (0, None)


def refused_cursor(commands: Commands) -> str:
    with pytest.raises(SearchError) as raised:
        commands(WriteDocuments((), cursor=CursorMove("gone", 0, 1)))
    return raised.value.reason


def test_refreshed_documents_are_found() -> None:
    commands = Commands("a", "b")
    commands.write(put("a", "1"), refresh=True)
    commands.write(put("b", "1"))
    found = [index.shards.stats().documents for index in commands.catalog.indexes()]
    assert found == [1, 0]
