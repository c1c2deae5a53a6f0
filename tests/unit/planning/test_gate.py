"""What the gate counts, what it lets through, and what it says of the rest."""

import ast
from pathlib import Path

import pytest

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded, QuerySyntaxError
from graphdb.planning.complexity import Complexity, measure
from graphdb.planning.gate import check, read_query, read_update
from graphdb.sparql.parser import parse_query, parse_update
from tests.conformance.manifests import suite_root

PREFIX = "PREFIX : <http://example.org/> "
LIMITS = GateLimits()

COUNTED = {
    "{}": {"nesting": 1},
    "{ { {} } }": {"nesting": 3},
    "{ ?s :p ?o ; :q ?r }": {"patterns_per_group": 2, "patterns": 2},
    # what the engine joins as one: plain groups, GRAPH, the steps of a path, lists
    "{ ?s :p ?o { ?o :q ?r { ?r :t ?u } } }": {"nesting": 3, "patterns_per_group": 3, "patterns": 3},
    "{ ?s :p ?o GRAPH :g { ?o :q ?r } }": {"nesting": 2, "patterns_per_group": 2, "patterns": 2},
    "{ ?s :p/^:q/(:r|:t) ?o }": {
        "patterns_per_group": 4,
        "patterns": 4,
        "path_depth": 2,
        "path_length": 4,
    },
    "{ ?s (:p/:q)* ?o }": {"patterns_per_group": 1, "patterns": 1, "path_depth": 2, "path_length": 2},
    "{ ?s (:p+/:q)+ ?o }": {"patterns_per_group": 2, "patterns": 2, "path_depth": 3, "path_length": 6},
    "{ ?s !(:p|^:q) ?o }": {"patterns_per_group": 1, "patterns": 1},
    "{ ?s :p (1 2) }": {"patterns_per_group": 5, "patterns": 5},
    # what it joins as a whole
    "{ ?s :p ?o VALUES ?o { 1 2 3 } }": {"patterns_per_group": 2, "patterns": 1},
    "{ ?s :p ?o { SELECT ?s { ?s :q ?r . ?r :q ?t . ?t :q ?u } } }": {
        "nesting": 3,
        "patterns_per_group": 3,
        "patterns": 4,
    },
    "{ ?s :p ?o { ?s :q ?r } UNION { ?s :q ?r } UNION {} }": {
        "nesting": 2,
        "patterns_per_group": 3,
        "patterns": 3,
        "unions": 3,
    },
    "{ ?s :p ?o OPTIONAL { ?s :q ?r OPTIONAL {} } OPTIONAL {} }": {
        "nesting": 3,
        "patterns_per_group": 1,
        "patterns": 2,
        "optionals": 3,
    },
    "{ ?s :p ?o MINUS { ?s :q 1 } SERVICE :e {} }": {
        "nesting": 2,
        "patterns_per_group": 2,
        "patterns": 2,
        "filters": 1,
    },
    # expressions
    "{ BIND(1 AS ?x) FILTER(?x) }": {"binds": 1, "filters": 1},
    "{ FILTER(?a && ?b && ?c || ?d) }": {"filters": 1, "expression_depth": 3, "expression_size": 3},
    "{ FILTER(?a || ?b || !?c) }": {"filters": 1, "expression_depth": 2, "expression_size": 3},
    "{ FILTER(!?a || ?b || ?c) }": {"filters": 1, "expression_depth": 3, "expression_size": 3},
    "{ FILTER(1 + 2 - 3 * 4 -5 = -?x) }": {"filters": 1, "expression_depth": 4, "expression_size": 6},
    "{ FILTER(STR(IF(?a, 1, :f(?b))) IN (1, 2, STR(3))) }": {
        "filters": 1,
        "expression_depth": 4,
        "expression_size": 5,
    },
    "{ FILTER(?a || EXISTS { ?s :p ?o FILTER(?a = ?o) }) }": {
        "nesting": 2,
        "patterns_per_group": 1,
        "patterns": 1,
        "filters": 3,
        "expression_depth": 3,
        "expression_size": 3,
    },
}


@pytest.mark.parametrize(("where", "expected"), COUNTED.items(), ids=list(COUNTED))
def test_what_is_counted(where: str, expected: dict[str, int]) -> None:
    assert measure(parse_query(f"{PREFIX}ASK {where}")) == Complexity(**{"nesting": 1, **expected})


def test_the_clauses_of_a_query_count() -> None:
    query = (
        "SELECT ?k (COUNT(*) AS ?n) (SUM(?o + 1) AS ?m) { ?s ?p ?o } GROUP BY (STR(?s) AS ?k) "
        "HAVING (?n > 1) (?m > 1) ORDER BY ?k DESC(?n + ?m) VALUES ?s { :a }"
    )
    assert measure(parse_query(PREFIX + query)) == Complexity(
        nesting=1,
        patterns_per_group=2,
        patterns=1,
        binds=2 + 2 + 1 + 2,  # columns, aggregates, key of the group, keys of the order
        filters=2,
        expression_depth=2,
        expression_size=2 + 1 + 1 + 2 + 1,
    )
    assert measure(parse_query(PREFIX + "DESCRIBE :a :b ?c { ?c :p 1 }")).binds == 3
    assert measure(parse_query(PREFIX + "DESCRIBE :a")) == Complexity(binds=1)


def test_an_update_counts_its_largest_operations() -> None:
    update = (
        "INSERT DATA { :a :b 1, 2, 3 } ; DELETE WHERE { ?s :p ?o . ?o :p ?q } ; "
        "INSERT { ?s :p 1, 2, 3 } WHERE { ?s :q ?o OPTIONAL {} } ; DROP ALL ; DELETE DATA { :a :b 1 }"
    )
    assert measure(parse_update(PREFIX + update)) == Complexity(
        nesting=2, patterns_per_group=2, patterns=2, optionals=1, operations=3
    )


@pytest.mark.parametrize("name", sorted(GateLimits.model_fields))
def test_each_limit_holds_at_its_value_and_not_beyond(name: str) -> None:
    """A query that has three of everything passes where three are allowed, and not where two are."""
    text = (
        f"{PREFIX}INSERT {{ ?a :p 1 }} WHERE {{ ?a (:p*/:q)* ?b . ?b :p ?c . ?c :p ?d "
        "OPTIONAL { OPTIONAL {} } OPTIONAL {} {} UNION {} UNION {} "
        "BIND(1 AS ?x) BIND(2 AS ?y) BIND(3 AS ?z) FILTER(?x || ?x || ?x || ?x) FILTER(?x) FILTER(?x) } ;"
        "DROP ALL ; DROP ALL"
    )
    update = parse_update(text)
    figures = measure(update)
    if name == "max_query_bytes":
        value = len(text.encode())
    elif name == "max_query_tokens":
        value = _tokens(text)
    else:
        value = {"max_path_length": 2, "max_patterns_per_group": 5}.get(name, 3)
        assert getattr(figures, name.removeprefix("max_")) == value
    exact = GateLimits.model_validate({name: value})
    fewer = GateLimits.model_validate({name: value - 1})
    check(read_update(text, f"http://exact/{name}", exact), exact)
    with pytest.raises(
        LimitExceeded, match=rf"\(security\.{name}\) is {value}, at most {value - 1} is"
    ) as caught:
        check(read_update(text, f"http://fewer/{name}", fewer), fewer)
    assert (caught.value.value, caught.value.allowed) == (value, value - 1)


def _tokens(text: str) -> int:
    low, high = 1, 1000
    while low < high:
        middle = (low + high) // 2
        try:
            read_update(text, f"http://tokens/{middle}", GateLimits(max_query_tokens=middle))
            high = middle
        except LimitExceeded:
            low = middle + 1
    return low


DATA = '<http://x/s> <http://x/p> "} DATA { <" . # } DATA {\n'
BLOCK = f"{{ {DATA * 400} }}"
SMALL = GateLimits(max_query_bytes=10_000, max_query_tokens=100)


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT DATA {BLOCK}",
        f"insert#\ndata#{{\n\t{BLOCK}",
        f"DELETE DATA {BLOCK} ; INSERT DATA {BLOCK} ; DROP ALL",
        f"INSERT DATA {{ GRAPH <http://g/> {BLOCK} }}",
        "INSERT DATA { <a:a> <a:b> 1 } ;" * 200,
        "INSERT {} WHERE { VALUES ?x { " + "1 " * 2_000 + "} }",
        "INSERT {} WHERE { VALUES (?x ?y) { " + "(1 UNDEF) " * 500 + "} }",
    ],
)
def test_data_may_be_long(text: str) -> None:
    check(read_update(text, None, SMALL), SMALL)


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT {BLOCK} WHERE {{}}",
        f"INSERT {{ GRAPH ?DATA {BLOCK} }} WHERE {{}}",
        f"INSERT {{ GRAPH <http://x/ DATA {BLOCK}> {BLOCK} }} WHERE {{}}",
        f"INSERT {{ <a:a> <a:b> ' INSERT DATA ' {BLOCK} }} WHERE {{}}",
        f"# INSERT DATA {{\nINSERT {BLOCK} WHERE {{}}",
        f"INSERT DATA {BLOCK} ; INSERT {BLOCK} WHERE {{}}",
        f"INSERT DATA {BLOCK} ; " + "#" * 10_000,
        f"INSERT DATA {{ <a:a> <a:b> 1 }} ; {'#' * 10_000}",
        " " * 10_000 + f"INSERT DATA {BLOCK}",
        "INSERT DATA { <a:a> <a:b> 1 } ;" * 400,
        "INSERT DATA { <a:a> <a:b> '" + "\u00e9" * 4_990 + "' }",
        "INSERT DATA { <a:a> <a:b> '" + "x" * 10_000,
        "INSERT {} WHERE { FILTER(1 " + "+1 " * 120 + ") }",
        "INSERT {} WHERE { VALUES (" + "?x " * 120 + ") {} }",
    ],
)
def test_what_is_no_data_may_not(text: str) -> None:
    with pytest.raises(LimitExceeded, match=r"max_query_(bytes|tokens)"):
        read_update(text, None, SMALL)


def test_a_query_in_bytes() -> None:
    limits = GateLimits(max_query_bytes=40)
    assert read_query("ASK { FILTER('" + "\u00e9" * 10 + "') }", None, limits)
    with pytest.raises(LimitExceeded, match=r"query bytes .* is 41, at most 40"):
        read_query("ASK { FILTER('" + "\u00e9" * 11 + "x') }", None, limits)


def test_every_query_of_the_suites_passes() -> None:
    """Those of the W3C and of GeoSPARQL; as far as they are SPARQL."""
    passed = 0
    suites = suite_root()
    if suites is None:
        pytest.skip("the suites are not beside the project")
    for path in sorted(suites.rglob("*.r[qu]")):
        text = path.read_text("utf-8", errors="replace")
        try:
            request = (read_query if path.suffix == ".rq" else read_update)(text, "http://x/", LIMITS)
        except QuerySyntaxError:
            continue
        check(request, LIMITS)
        passed += 1
    assert passed > 1_300


CORE = Path(__file__).parents[3]


def test_texts_from_outside_come_in_through_the_gate() -> None:
    """Only the gate parses: whoever called the parser itself would parse texts of any length."""
    users = {
        path.relative_to(CORE).as_posix()
        for floor in ("graphdb", "actors", "serve")
        for path in (CORE / floor).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "graphdb.sparql.parser"
        if {name.name for name in node.names} & {"parse_query", "parse_update"}
    }
    assert users == {"graphdb/planning/gate.py"}
