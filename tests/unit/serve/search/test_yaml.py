"""Answers as YAML: what a parser of YAML makes of them is what the same answer is as JSON."""

from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serve.search.frame.yaml_text import yaml_text
from tests.unit.serve.search.conftest import one_shard

pytestmark = one_shard

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_it_is_read_again(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


def test_how_it_looks() -> None:
    value = {"_id": "1", "a": {"b": [1, {"c": "x", "d": []}], "e": {}}, "true": None}
    assert yaml_text(value) == (
        '---\n_id: "1"\na:\n  b:\n  - 1\n  - c: "x"\n    d: []\n  e: {}\n"true": null\n'
    )


@pytest.mark.parametrize("wanted", [("?format=yaml", {}), ("", {"Accept": "application/yaml"})])
def test_requests_for_it(http: httpx.Client, wanted: tuple[str, dict[str, str]]) -> None:
    http.put("/a/_doc/1", json={"n": [1, 2]})
    path, headers = wanted
    for place in ("/a/_doc/1", "/a/_doc/none", "/none/_doc/1", "/_cluster/settings"):
        answer = http.get(place + path, headers=headers)
        assert answer.headers["content-type"] == "application/yaml"
        assert yaml.safe_load(answer.text) == http.get(place).json()
    assert http.get("/a/_doc/1?format=json", headers=headers).json()["found"] is True
    chosen = http.get(f"/a/_doc/1{path or '?'}&filter_path=_id", headers=headers)
    assert chosen.text == '---\n_id: "1"\n'
