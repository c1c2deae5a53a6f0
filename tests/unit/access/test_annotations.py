"""What annotations hide, quad by quad."""

from collections.abc import Iterable

import pytest
from pyoxigraph import Quad, RdfFormat, Store, parse

from graphdb.access.annotations import VisibleQuads, has_annotations
from graphdb.access.visibility import FULL_VISIBILITY, NO_VISIBILITY, Visibility
from graphdb.store.quad_store import QuadStore

PREFIXES = """PREFIX : <urn:x:> PREFIX acl: <urn:graphdb:acl#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
"""
ANNOTATED = """
:a :pay 1 {| acl:allowedSid "S-1-1", "S-1-2" |} .
:b :pay 2 ~ :r {| :sure 0.5 |} .
:c :pay 3 .
<< :a :pay 9 >> acl:allowedSid "S-1-3" .
:said :that <<( :a :pay 1 )>> .
:heard :of <<( :said :that <<( :a :pay 1 )>> )>> .
:empty acl:allowedSid "S-1-1" .
GRAPH :g { :a :pay 1 . :secret :is 4 {| acl:allowedSid :nobody |} }
"""


def everywhere(*sids: str) -> Visibility:
    return Visibility(default_graph=True, patterns=frozenset({"*"}), sids=frozenset(sids))


def quads(text: str) -> list[Quad]:
    return [*parse(PREFIXES + text, RdfFormat.TRIG)]


def state(text: str) -> QuadStore:
    store = Store()
    store.extend(quads(text))
    return QuadStore(store)


def seen(visibility: Visibility, text: str = ANNOTATED) -> set[str]:
    quads_of = state(text)
    visible_quads = VisibleQuads(visibility, quads_of)
    return shown(quad for quad in quads_of.dataset_quads() if visible_quads.sees(quad))


def shown(found: Iterable[Quad]) -> set[str]:
    return {str(quad) for quad in found}


ALWAYS = """
:c :pay 3 . :b :pay 2 . :r :sure 0.5 ; rdf:reifies <<( :b :pay 2 )>> .
GRAPH :g { :a :pay 1 }
"""
TOLD = ":a :pay 1 . :said :that <<( :a :pay 1 )>> . :heard :of <<( :said :that <<( :a :pay 1 )>> )>> ."


@pytest.mark.parametrize("sid", ["S-1-1", "S-1-2"])
def test_one_sid_of_several_shows_a_triple_and_what_tells_of_it(sid: str) -> None:
    assert seen(everywhere(sid)) == shown(quads(ALWAYS + TOLD))


@pytest.mark.parametrize("sids", [(), ("S-1",), ("S-1-3",), ("urn:x:nobody", "nobody")])
def test_without_a_sid_neither_the_triple_nor_what_tells_of_it_is_seen(sids: tuple[str, ...]) -> None:
    assert seen(everywhere(*sids)) == shown(quads(ALWAYS))


SAID = """
:a :pay 1 ~ :note {| acl:allowedSid "S-1" ; :source :ledger {| :since 2020 |} |} .
:a :pay 1 ~ :review {| :by :eve {| :since 2021 |} |} .
:heard :of <<( :x :that <<( :review :by :eve )>> )>> .
:denies :that <<( :review :by :bob )>> .
:round rdf:reifies <<( :round :by :eve )>> ; :by :eve .
GRAPH :g { :note :source :ledger . :review :by :eve ; rdf:reifies <<( :a :pay 1 )>> }
"""
SAID_TO_ALL = """
:denies :that <<( :review :by :bob )>> .
:round rdf:reifies <<( :round :by :eve )>> ; :by :eve .
GRAPH :g { :note :source :ledger . :review :by :eve ; rdf:reifies <<( :a :pay 1 )>> }
"""
SAID_TO_ONE = """
:a :pay 1 ~ :review {| :by :eve |} .
:heard :of <<( :x :that <<( :review :by :eve )>> )>> .
"""


def test_what_is_said_about_a_hidden_triple_is_hidden_with_it() -> None:
    assert seen(everywhere(), SAID) == shown(quads(SAID_TO_ALL))


def test_who_sees_a_triple_sees_what_is_said_about_it_and_nothing_of_its_annotation() -> None:
    found = seen(everywhere("S-1"), SAID)
    assert found >= shown(quads(SAID_TO_ALL + SAID_TO_ONE))
    further = "".join(found - shown(quads(SAID_TO_ALL + SAID_TO_ONE)))
    assert "2021" in further
    assert "2020" not in further
    assert not [line for line in found if "urn:x:note" in line and "urn:x:g" not in line]


def test_an_annotation_holds_in_its_own_graph() -> None:
    only_named = Visibility(patterns=frozenset({"*"}))
    assert seen(only_named) == shown(quads("GRAPH :g { :a :pay 1 }"))


def test_a_whole_visibility_sees_the_annotations_too() -> None:
    told = state(ANNOTATED)
    visible_quads = VisibleQuads(FULL_VISIBILITY, told)
    assert all(visible_quads.sees(quad) for quad in told.dataset_quads())


def test_no_visibility_sees_nothing() -> None:
    assert seen(NO_VISIBILITY) == set()


def test_what_is_annotated_before_it_is_there_is_hidden_when_it_comes() -> None:
    text = "<< :a :pay 9 >> acl:allowedSid 'S-1-3' ."
    visible_quads = VisibleQuads(everywhere(), state(text))
    assert [visible_quads.sees(quad) for quad in quads(":a :pay 9 . :a :pay 8 .")] == [False, True]


def test_a_look_tells_whether_anything_is_annotated() -> None:
    assert has_annotations(state("GRAPH :g { << :a :b :c >> acl:allowedSid 'S-1' }"))
    assert not has_annotations(state(":a :b :c {| :d :e |} ."))
