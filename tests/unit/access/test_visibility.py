"""What `[acl]` lets whom see, by graph."""

import pytest
from pyoxigraph import BlankNode, DefaultGraph, NamedNode

from graphdb.access.permissions import Permission
from graphdb.access.visibility import FULL_VISIBILITY, NO_VISIBILITY, Contexts, Visibility
from graphdb.config.access import Acl
from graphdb.model import GraphName

DEFAULT = DefaultGraph()
ACL = Acl.model_validate(
    {
        "contexts": {
            "all": {"visible_graphs": ["**"]},
            "named": {"visible_graphs": ["*"]},
            "default": {"visible_default_graph": True},
            "hr": {"visible_graphs": ["urn:hr:*", "urn:one"]},
            "nothing": {},
        },
        "role_contexts": {"clerk": "hr", "teller": "default", "auditor": "all", "archivist": "named"},
        "actor_contexts": {"ada": "nothing", "bob": "default"},
    }
)


def visibility(actor: str, *roles: str, permission: Permission = Permission.WRITE) -> Visibility:
    return Contexts(ACL).visibility_of(actor, roles, frozenset({"S-1-5-21-7"}), permission)


@pytest.mark.parametrize(
    ("roles", "graph", "is_seen"),
    [
        (("clerk",), NamedNode("urn:hr:pay"), True),
        (("clerk",), NamedNode("urn:hr:"), True),
        (("clerk",), NamedNode("urn:hr"), False),
        (("clerk",), NamedNode("urn:one"), True),
        (("clerk",), NamedNode("urn:one:more"), False),
        (("clerk",), DEFAULT, False),
        (("clerk",), BlankNode("g"), False),
        (("teller",), DEFAULT, True),
        (("teller",), NamedNode("urn:one"), False),
        (("archivist",), NamedNode("urn:any"), True),
        (("archivist",), BlankNode("g"), True),
        (("archivist",), DEFAULT, False),
        (("auditor",), DEFAULT, True),
        (("auditor",), NamedNode("urn:any"), True),
        (("clerk", "teller"), DEFAULT, True),
        (("clerk", "teller"), NamedNode("urn:hr:pay"), True),
        (("stranger",), DEFAULT, False),
        ((), NamedNode("urn:any"), False),
    ],
)
def test_roles_show_the_graphs_of_their_contexts(
    roles: tuple[str, ...], graph: GraphName, is_seen: bool
) -> None:
    assert visibility("eve", *roles).sees_graph(graph) is is_seen


def test_an_actors_context_wins_over_its_roles() -> None:
    assert not visibility("ada", "auditor").sees_graph(DEFAULT)
    assert not visibility("bob", "clerk").sees_graph(NamedNode("urn:one"))
    assert visibility("bob", "clerk").sees_graph(DEFAULT)


def test_an_admin_sees_everything_whatever_the_contexts_say() -> None:
    assert visibility("ada", permission=Permission.ADMIN) == FULL_VISIBILITY


def test_without_contexts_every_graph_is_seen_and_sids_count() -> None:
    found = Contexts(None).visibility_of("eve", ["reader"], frozenset({"S-1-5-21-7"}), Permission.READ)
    assert found.has_all_graphs
    assert not found.is_whole
    assert found.sids == {"S-1-5-21-7"}


def test_only_who_sees_the_default_graph_and_all_named_ones_sees_all_graphs() -> None:
    names = ("auditor", "archivist", "teller", "clerk")
    assert [visibility("eve", name).has_all_graphs for name in names] == [True, False, False, False]
    assert visibility("eve", "archivist", "teller").has_all_graphs


@pytest.mark.parametrize("one", [FULL_VISIBILITY, NO_VISIBILITY, visibility("eve", "clerk", "teller")])
def test_a_visibility_goes_through_json(one: Visibility) -> None:
    assert Visibility.from_json(one.to_json()) == one


@pytest.mark.parametrize("text", ["", "[]", "[true]", "[1, false, [], []]", "[false, false, [1], []]", "{}"])
def test_what_is_no_visibility_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no visibility|Expecting"):
        Visibility.from_json(text)


@pytest.mark.parametrize(
    ("roles", "plain", "of_the_graph"),
    [
        (("clerk",), True, False),
        (("teller",), True, False),
        (("archivist",), True, False),
        (("auditor",), True, True),
        (("archivist", "teller"), True, True),  # together they see all graphs
        (("stranger",), False, False),
        ((), False, False),
    ],
)
def test_a_context_that_names_no_indexes_shows_all_that_say_nothing_of_hidden_graphs(
    roles: tuple[str, ...], plain: bool, of_the_graph: bool
) -> None:
    found = Contexts(ACL).index_visibility_of("eve", roles, frozenset(), Permission.READ)
    assert (found.sees_index("books"), found.sees_index("books", follows_graph=True)) == (plain, of_the_graph)


@pytest.mark.parametrize(
    ("given", "plain", "of_the_graph"),
    [
        (["*"], ["books", "maps"], []),
        (["**"], ["books", "maps"], ["books", "maps"]),
        (["b*"], ["books"], ["books"]),
        (["maps", "*"], ["books", "maps"], ["maps"]),
        ([], [], []),
    ],
)
def test_an_index_of_hidden_graphs_has_to_be_named(
    given: list[str], plain: list[str], of_the_graph: list[str]
) -> None:
    context = {"visible_graphs": ["urn:one"], "visible_indexes": given}
    acl = Acl.model_validate({"contexts": {"some": context}, "role_contexts": {"clerk": "some"}})
    found = Contexts(acl).index_visibility_of("eve", ["clerk"], frozenset(), Permission.READ)
    names = ("books", "maps")
    assert [name for name in names if found.sees_index(name)] == plain
    assert [name for name in names if found.sees_index(name, follows_graph=True)] == of_the_graph


def test_without_contexts_every_index_is_seen() -> None:
    found = Contexts(None).index_visibility_of("eve", ["reader"], frozenset(), Permission.READ)
    assert found.sees_index("books")
    assert found.sees_index("books", follows_graph=True)
