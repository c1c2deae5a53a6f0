"""Aliases: what clients may write, and what is refused."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import reason_of


@pytest.fixture(autouse=True)
def indexes(http: httpx.Client) -> None:
    for name in ("cats", "dogs"):
        assert http.put(f"/{name}").status_code == 200


def shown(http: httpx.Client) -> dict[str, list[str]]:
    return {name: sorted(one["aliases"]) for name, one in http.get("/_alias").json().items()}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/cats/_alias/pets", None, {"cats": ["pets"], "dogs": []}),
        ("/*/_aliases/pets", {}, {"cats": ["pets"], "dogs": ["pets"]}),
        ("/_alias/pets", {"index": "dogs"}, {"cats": [], "dogs": ["pets"]}),
        ("/cats,dogs/_alias/pets", {"is_hidden": True}, {"cats": ["pets"], "dogs": ["pets"]}),
    ],
)
def test_one_alias(http: httpx.Client, path: str, body: Any, expected: dict[str, list[str]]) -> None:
    answer = http.put(path, json=body) if body is not None else http.put(path)
    assert (answer.status_code, answer.json()["acknowledged"]) == (200, True)
    assert shown(http) == expected


@pytest.mark.parametrize(
    ("action", "status", "kind"),
    [
        ({"add": {"index": "cats"}}, 400, "x_content_parse_exception"),
        ({"add": {"alias": "a"}}, 400, "x_content_parse_exception"),
        ({"add": {"index": "none", "alias": "a"}}, 404, "index_not_found_exception"),
        ({"add": {"index": "none*", "alias": "a"}}, 404, "index_not_found_exception"),
        ({"add": {"index": "cats", "alias": "a", "colour": 1}}, 400, "x_content_parse_exception"),
        ({"add": {"index": "cats", "alias": "a"}, "remove": {}}, 400, "x_content_parse_exception"),
        ({"move": {}}, 400, "x_content_parse_exception"),
        ({"add": 3}, 400, "x_content_parse_exception"),
        ("add", 400, "x_content_parse_exception"),
        ({"remove": {"index": "cats", "alias": "a"}}, 404, "aliases_not_found_exception"),
        ({"add": {"index": "cats", "alias": "dogs"}}, 400, "invalid_alias_name_exception"),
        ({"add": {"index": "cats", "alias": "a", "filter": {"no": {}}}}, 400, "illegal_argument_exception"),
        (
            {"add": {"index": "*", "aliases": [str(n) for n in range(9_000)]}},
            400,
            "illegal_argument_exception",
        ),
    ],
)
def test_actions_that_cannot_be(http: httpx.Client, action: Any, status: int, kind: str) -> None:
    assert reason_of(http.post("/_aliases", json={"actions": [action]}))[:2] == (status, kind)
    assert shown(http) == {"cats": [], "dogs": []}


@pytest.mark.parametrize("body", [{}, {"actions": []}, {"actions": {}}, {"actions": [None]}])
def test_no_actions(http: httpx.Client, body: Any) -> None:
    assert reason_of(http.post("/_aliases", json=body))[0] == 400


def test_a_name_that_only_some_indexes_have(http: httpx.Client) -> None:
    http.put("/cats/_alias/pets")
    answer = http.get("/_alias/pets,strays")
    assert answer.status_code == 404
    assert answer.json() == {
        "error": "alias [strays] missing",
        "status": 404,
        "cats": {"aliases": {"pets": {}}},
    }
    assert http.get("/dogs/_alias/p*").json() == {}
    assert http.head("/_alias/strays").status_code == 404
    assert http.delete("/dogs/_alias/pets").status_code == 404
    assert http.delete("/*/_alias/p*").json() == {"acknowledged": True, "errors": False}


def update(http: httpx.Client, *actions: Any) -> httpx.Response:
    return http.post("/_aliases", json={"actions": actions})


GONE = {"remove": {"index": "c*", "alias": "gone"}}


def test_what_was_not_there_to_remove_is_told(http: httpx.Client) -> None:
    body = update(http, {"add": {"index": "cats", "alias": "pets"}}, GONE).json()
    assert (body["acknowledged"], body["errors"]) == (True, True)
    added, removed = body["action_results"]
    assert added == {"status": 200, "action": {"type": "add", "indices": ["cats"], "aliases": ["pets"]}}
    assert removed["status"] == 404
    assert removed["action"] == {"type": "remove", "indices": ["c*"], "aliases": ["gone"]}
    assert removed["error"]["type"] == "aliases_not_found_exception"
    assert shown(http) == {"cats": ["pets"], "dogs": []}
    done = update(http, {"remove": {"index": "cats", "alias": "pets"}}).json()
    assert done == {"acknowledged": True, "errors": False}


def test_what_must_be_there_to_remove(http: httpx.Client) -> None:
    add = {"add": {"index": "cats", "alias": "pets"}}
    must = {"remove": {"index": "cats", "alias": "gone", "must_exist": True}}
    assert reason_of(update(http, add, must))[:2] == (404, "aliases_not_found_exception")
    assert reason_of(update(http, GONE))[:2] == (404, "aliases_not_found_exception")
    assert shown(http) == {"cats": [], "dogs": []}


@pytest.mark.parametrize("kind", ["add", "remove_index"])
def test_only_what_is_removed_may_have_to_exist(http: httpx.Client, kind: str) -> None:
    answer = update(http, {kind: {"index": "cats", "alias": "a", "must_exist": True}})
    assert reason_of(answer)[:2] == (400, "x_content_parse_exception")
    assert shown(http) == {"cats": [], "dogs": []}


def test_missing_names_are_told_in_order(http: httpx.Client) -> None:
    answer = http.get("/_alias/z,a,z")
    assert (answer.status_code, answer.json()["error"]) == (404, "aliases [a,z] missing")


def test_a_filter_may_say_now_of_dates_in_nanoseconds(http: httpx.Client) -> None:
    http.put("/i", json={"mappings": {"properties": {"at": {"type": "date_nanos"}}}}).raise_for_status()
    body = {"filter": {"range": {"at": {"gt": "now-7d/d"}}}}
    http.put("/i/_alias/recent", json=body).raise_for_status()
    assert http.get("/recent/_count").json()["count"] == 0


def test_hidden_aliases_in_a_listing(http: httpx.Client) -> None:
    aliases = {"shown": {}, "hidden": {"is_hidden": True}}
    http.put("/i", json={"aliases": aliases}).raise_for_status()
    for parameters, names in (
        ("", ["hidden", "shown"]),
        ("?expand_wildcards=open", ["shown"]),
        ("?expand_wildcards=all", ["hidden", "shown"]),
        ("/hidden?expand_wildcards=open", ["hidden"]),
    ):
        path, _, query = parameters.partition("?")
        rows = http.get(f"/_cat/aliases{path}?format=json&{query}").json()
        assert [row["alias"] for row in rows] == names


@pytest.mark.parametrize("several", [False, True])
def test_inner_hits_show_no_documents_that_an_alias_hides(http: httpx.Client, several: bool) -> None:
    films = {"mappings": {"properties": {"j": {"type": "join", "relations": {"film": "review"}}}}}
    assert http.put("/films", json=films).status_code == 200
    documents = {
        "f": {"j": "film", "by": "ada"},
        "g": {"j": "film", "by": "eve"},
        "r": {"j": {"name": "review", "parent": "f"}, "by": "ada"},
        "s": {"j": {"name": "review", "parent": "f"}, "by": "eve"},
        "t": {"j": {"name": "review", "parent": "g"}, "by": "ada"},
    }
    for doc_id, document in documents.items():
        assert http.put(f"/films/_doc/{doc_id}?routing=f&refresh=true", json=document).status_code == 201
    assert http.put("/films/_alias/hers", json={"filter": {"match": {"by": "ada"}}}).status_code == 200
    names = "dogs,hers" if several else "hers"

    def inner(name: str, clause: dict[str, Any]) -> dict[str, list[str]]:
        query = {
            name: {"query": {"match_all": {}}, "ignore_unmapped": True, "inner_hits": {"name": "x"}, **clause}
        }
        answer = http.post(f"/{names}/_search", json={"query": query}).json()
        return {
            hit["_id"]: [below["_id"] for below in hit["inner_hits"]["x"]["hits"]["hits"]]
            for hit in answer["hits"]["hits"]
        }

    assert inner("has_child", {"type": "review"}) == {"f": ["r"]}
    assert inner("has_parent", {"parent_type": "film"}) == {"r": ["f"], "t": []}
