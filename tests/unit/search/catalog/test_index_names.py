"""Names of indexes, and the expressions that clients write for them."""

from typing import Any

import pytest

from graphdb.search.catalog.index_names import ResolveOptions, check_alias_name, check_index_name, with_dates
from graphdb.search.errors import SearchError
from tests.unit.search.catalog.catalogs import Commands

CHARACTERS = "must not contain the following characters [' ','\"','*',',','/','<','>','?','\\','|']"
NOON = 1_714_564_800_000  # 2024-05-01T12:00:00Z


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "must not be empty"),
        ("a b", CHARACTERS),
        ("a\\b", CHARACTERS),
        ("a#b", "must not contain '#'"),
        ("a:b", "must not contain ':'"),
        ("_a", "must not start with '_', '-', or '+'"),
        ("-a", "must not start with '_', '-', or '+'"),
        ("..", "must not be '.' or '..'"),
        ("Logs", "must be lowercase"),
        ("é" * 128, "index name is too long, (256 > 255)"),
    ],
)
def test_names_that_no_index_may_have(name: str, problem: str) -> None:
    with pytest.raises(SearchError) as raised:
        check_index_name(name)
    assert raised.value.kind == "invalid_index_name_exception"
    assert raised.value.reason == f"Invalid index name [{name}], {problem}"
    assert raised.value.metadata == {"index_uuid": "_na_", "index": name}


def test_names_that_are_allowed() -> None:
    for name in ("a", ".hidden", "logs-2024.05.01", "é" * 127, "a_b", "1"):
        check_index_name(name)
    check_alias_name("Logs")


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("logs", "logs"),
        ("<logs-{now/d}>", "logs-2024.05.01"),
        ("<logs-{now/M}-x>", "logs-2024.05.01-x"),
        ("<logs-{now/M{yyyy.MM}}>", "logs-2024.05"),
        ("<logs-{now-1d/d{uuuu-MM-dd|+13:00}}>", "logs-2024-05-01"),
        ("<a-{now/d}-{now+1d/d}>", "a-2024.05.01-2024.05.02"),
        ("<a\\{b\\}>", "a{b}"),
    ],
)
def test_dates_within_names(expression: str, name: str) -> None:
    assert with_dates(expression, NOON) == name


@pytest.mark.parametrize("expression", ["<a-{now>", "<a}>", "<>", "<{now{}}>", "<{now{{{a}}}}>", "<{later}>"])
def test_dates_that_cannot_be_read(expression: str) -> None:
    with pytest.raises(SearchError):
        with_dates(expression, NOON)


@pytest.fixture(scope="module")
def names() -> Commands:
    commands = Commands("apple", "apricot", "banana", ".dot")
    commands.create("secret", {"settings": {"hidden": True}})
    commands.create(".kept", {"settings": {"hidden": True}})
    commands.alias("apple", "fruit")
    commands.alias("banana", "fruit")
    commands.alias("banana", "yellow", filter={"term": {"c": "y"}}, routing="r1,r2")
    commands.alias("banana", "ripe", filter={"term": {"c": "r"}})
    commands.alias("secret", "quiet", is_hidden=True)
    return commands


OPEN = ResolveOptions()
EXCLUDING = (
    "if you intended to exclude this index, ensure that you use wildcards that include it before explicitly "
    "excluding it"
)


@pytest.mark.parametrize(
    ("expression", "options", "found"),
    [
        ("", OPEN, [".dot", "apple", "apricot", "banana"]),
        ("_all", OPEN, [".dot", "apple", "apricot", "banana"]),
        ("*", OPEN, [".dot", "apple", "apricot", "banana"]),
        ("*", ResolveOptions.of("all"), [".dot", ".kept", "apple", "apricot", "banana", "secret"]),
        ("_all", ResolveOptions.of("none"), []),
        ("ap*", ResolveOptions.of("none", ignore_unavailable=True), []),
        ("ap*", OPEN, ["apple", "apricot"]),
        ("*an*,ap*,apple", OPEN, ["apple", "apricot", "banana"]),
        ("ap*,-apple", OPEN, ["apricot"]),
        ("*,-ap*,-fruit", OPEN, [".dot"]),
        ("banana,apple", OPEN, ["apple", "banana"]),
        ("fruit", OPEN, ["apple", "banana"]),
        ("fr*", OPEN, ["apple", "banana"]),
        ("fr*", ResolveOptions(aliases=False), []),
        ("sec*", OPEN, []),
        ("secret", OPEN, ["secret"]),
        ("qui*", OPEN, []),
        ("quiet", OPEN, ["secret"]),
        (".k*", OPEN, [".kept"]),
        ("nothing*", OPEN, []),
        ("nothing,apple", ResolveOptions(ignore_unavailable=True), ["apple"]),
        (["apple", "b*"], OPEN, ["apple", "banana"]),
    ],
)
def test_expressions(names: Commands, expression: Any, options: ResolveOptions, found: list[str]) -> None:
    assert names.resolved(expression, options) == found


@pytest.mark.parametrize(
    ("expression", "options", "kind", "reason"),
    [
        ("nothing", OPEN, "index_not_found_exception", "no such index [nothing]"),
        ("-apple", OPEN, "index_not_found_exception", f"no such index [-apple] and {EXCLUDING}"),
        ("apple,-banana", OPEN, "index_not_found_exception", f"no such index [-banana] and {EXCLUDING}"),
        ("ap*", ResolveOptions.of("none"), "index_not_found_exception", "no such index [ap*]"),
        ("no*", ResolveOptions(allow_no_indices=False), "index_not_found_exception", "no such index [no*]"),
        ("_x", OPEN, "invalid_index_name_exception", "Invalid index name [_x], must not start with '_'."),
        (
            "fruit",
            ResolveOptions(aliases=False),
            "illegal_argument_exception",
            "The provided expression [fruit] matches an alias, specify the corresponding concrete indices "
            "instead.",
        ),
        (",".join("a" * 2000), OPEN, "illegal_argument_exception", "more than [1000] names of indices"),
    ],
)
def test_expressions_that_fail(
    names: Commands, expression: str, options: ResolveOptions, kind: str, reason: str
) -> None:
    with pytest.raises(SearchError) as raised:
        names.catalog.resolve(expression, options)
    assert (raised.value.kind, raised.value.reason) == (kind, reason)


def test_unknown_states_of_wildcards() -> None:
    with pytest.raises(SearchError, match=r"No valid expand wildcard value \[opened\]"):
        ResolveOptions.of("open,opened")


def test_the_filters_of_the_aliases_that_were_named(names: Commands) -> None:
    yellow, ripe = {"term": {"c": "y"}}, {"term": {"c": "r"}}

    def filters(expression: str) -> tuple[Any, ...]:
        found = {one.index.name: (one.filters, one.routing) for one in names.catalog.resolve(expression)}
        return found["banana"]

    assert filters("yellow") == ((yellow,), ("r1,r2",))
    assert filters("yellow,ripe") == ((ripe, yellow), ())
    assert filters("yellow,fruit") == ((), ())
    assert filters("yellow,banana") == ((), ())
    assert filters("yellow,b*") == ((), ())


def test_write_indexes(names: Commands) -> None:
    assert names.catalog.write_index("apple").name == "apple"
    assert names.catalog.write_index("yellow").name == "banana"
    with pytest.raises(SearchError, match=r"no write index is defined for alias \[fruit\]"):
        names.catalog.write_index("fruit")
    with pytest.raises(SearchError, match=r"no such index \[nothing\]"):
        names.catalog.write_index("nothing")
