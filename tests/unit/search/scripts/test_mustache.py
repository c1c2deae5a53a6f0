"""Search templates: what they make, and that none makes too much."""

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.scripts.mustache import OUTPUT_BYTES_MAX, Template

PARAMS: dict[str, Any] = {
    "text": 'a "quoted"\nline',
    "n": 7,
    "ok": True,
    "no": False,
    "nothing": None,
    "empty": [],
    "list": ["a", "b", 3],
    "users": [{"name": "x", "tags": [1, 2]}, {"name": "y", "tags": []}],
    "deep": {"er": {"list": [10, 20]}},
}


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("plain {text}", "plain {text}"),
        ("{{n}} {{ n }} {{ok}} {{missing}}|{{nothing}}", "7 7 true |"),
        ("{{text}}", r"a \"quoted\"\nline"),
        ("{{{text}}} {{&text}}", f"{PARAMS['text']} {PARAMS['text']}"),
        ("{{#ok}}yes{{/ok}}{{^ok}}no{{/ok}}", "yes"),
        (
            "{{#no}}yes{{/no}}{{^no}}no{{/no}}{{^missing}}none{{/missing}}{{^empty}}none{{/empty}}",
            "nononenone",
        ),
        ("{{n}}{{^n}}10{{/n}} {{m}}{{^m}}10{{/m}}", "7 10"),
        ("{{#list}}[{{.}}]{{/list}}", "[a][b][3]"),
        (
            "{{#users}}{{name}}{{#tags}}<{{.}} of {{name}} {{n}}>{{/tags}};{{/users}}",
            "x<1 of x 7><2 of x 7>;y;",
        ),
        ("{{deep.er.list.1}} {{list.size}} {{deep.er.list.5}}", "20 3 "),
        ("{{#deep}}{{#er}}{{list.0}}{{/er}}{{/deep}}", "10"),
        ("{{#toJson}}users{{/toJson}}", '[{"name":"x","tags":[1,2]},{"name":"y","tags":[]}]'),
        ("{{#toJson}}n{{/toJson}}{{#toJson}}missing{{/toJson}}", "7"),
        ("{{#join}}list{{/join}}", "a,b,3"),
        ("{{#join delimiter='||'}}list{{/join delimiter='||'}}", "a||b||3"),
        ("{{#url}}{{text}} {{n}}{{/url}}", "a+%5C%22quoted%5C%22%5Cnline+7"),
        ("{{! nothing }}a{{=<% %>=}}<%n%>{{n}}<%={{ }}=%>{{n}}", "a7{{n}}7"),
        ("{{#list}}{{/list}}{{#users.0}}{{name}}{{/users.0}}", "x"),
    ],
)
def test_what_a_template_makes(source: str, made: str) -> None:
    assert Template(source).render(PARAMS) == made


@pytest.mark.parametrize(
    "source",
    [
        "{{",
        "{{n",
        "{{{n}}",
        "{{#a}}",
        "{{#a}}{{/b}}",
        "{{/a}}",
        "{{> partial}}",
        "{{=a=}}",
        "{{#toJson}}{{n}}{{/toJson}}",
        "{{#join}}{{/join}}",
        "{{#join delimiter=','}}list{{/join}}",
        "{{#a}}" * 60 + "{{/a}}" * 60,
        "{{" + "a." * 60 + "}}",
        "x" * 70_000,
    ],
)
def test_templates_that_cannot_be(source: str) -> None:
    with pytest.raises(SearchError) as raised:
        Template(source).render({})
    assert raised.value.kind == "script_exception"


def test_what_a_template_makes_is_bounded() -> None:
    many: dict[str, Any] = {"l": list(range(1000)), "s": "x" * 10_000, "e": [""] * 100_000}
    nested = "{{#l}}" * 4 + "{{s}}" + "{{/l}}" * 4
    for source in (nested, nested.replace("{{s}}", "{{#m}}{{/m}}"), "{{#l}}{{#join}}e{{/join}}{{/l}}"):
        with pytest.raises(SearchError, match=r"it (makes|takes) more than"):
            Template(source).render(many)
    with pytest.raises(SearchError, match="makes more"):
        Template("{{s}}").render({"s": "\x00" * OUTPUT_BYTES_MAX})


@given(st.text(), st.text(st.sampled_from("{}#^/&!=>. abjoin\"'"), max_size=40))
def test_a_value_never_leaves_its_string(value: str, source: str) -> None:
    assert orjson.loads(Template('{"a": "{{v}}"}').render({"v": value})) == {"a": value}
    with suppress(SearchError):  # and nothing else is raised
        Template(source).render({"a": [value], "b": {"a": 1}})
