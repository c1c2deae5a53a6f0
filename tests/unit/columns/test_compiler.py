"""What SQL could get wrong: the answer is the engine's, or the query is a reader's, for a reason."""

import pytest
from pyoxigraph import Store

from graphdb.columns.catalog import Catalog
from graphdb.sparql.parser import parse_query
from tests.support.column_answers import Refused, engine_rows, view_rows
from tests.support.column_tables import column_tables

PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
GRAPHS = ":a :p 1 . :b :q 2 . GRAPH :g { :a :p :b } GRAPH :h { :a :q :b . :b :p :a }"
PATHS = ":a :p :b, :c ; :q :b . :b :p :c ; :q :c . :c :r 1 ."


def store_of(data: str) -> Store:
    store = Store()
    store.update(f"{PREFIXES} INSERT DATA {{ {data} }}")
    return store


def agrees(store: Store, catalog: Catalog, text: str) -> str | None:
    """Why the view does not answer; None where it does, and as the engine."""
    query = parse_query(PREFIXES + text)
    ours = view_rows(catalog, query)
    if isinstance(ours, Refused):
        return ours.reason
    assert ours == engine_rows(store, query), text
    return None


def check(data: str, text: str) -> str | None:
    store = store_of(data)
    return agrees(store, column_tables(store), text)


@pytest.mark.parametrize(
    "condition",
    [
        "EXISTS { ?s :p ?z }",
        "NOT EXISTS { ?s :p ?z }",
        "EXISTS { GRAPH ?h { ?s :p ?z } }",
        "EXISTS { ?z :p ?s FILTER EXISTS { ?z :q ?s } }",
    ],
)
def test_exists_within_graph_of_a_variable_is_asked_of_that_graph(condition: str) -> None:
    assert check(GRAPHS, f"SELECT * {{ GRAPH ?g {{ ?s ?x ?o FILTER {condition} }} }}") is None


def test_exists_within_graph_before_any_quad_is_a_readers() -> None:
    text = "SELECT * { GRAPH ?g { BIND(EXISTS { ?a :p ?b } AS ?y) ?s ?x ?o } }"
    assert check(GRAPHS, text) == "EXISTS before the graph of GRAPH is known"


@pytest.mark.parametrize(
    "pattern", ["{}", "{ BIND(1 AS ?x) }", "{ VALUES ?x { 1 } }", "{ ?s ?p ?o }", "{ {} UNION { ?s ?p ?o } }"]
)
def test_graph_of_a_name_that_is_no_graph_is_a_readers(pattern: str) -> None:
    refused = "GRAPH of a name that is no graph's"
    assert check(GRAPHS, f"SELECT * {{ VALUES ?k {{ 1 }} GRAPH :g {pattern} }}") is None
    assert check(GRAPHS, f"SELECT * {{ VALUES ?k {{ 1 }} GRAPH :none {pattern} }}") == refused
    text = f"SELECT * FROM NAMED :h {{ VALUES ?k {{ 1 }} GRAPH :g {pattern} }}"
    assert check(GRAPHS, text) == refused


VALUES = (
    ":a",
    "true",
    "false",
    "1",
    "1.0",
    "1e0",
    '"NaN"^^xsd:double',
    '"-0"^^xsd:double',
    '"1"',
    '"1"@en',
    '"1"^^:own',
    '"P1D"^^xsd:duration',
    "99999999999999999999",
    '"2020-01-01"^^xsd:date',
    "<<( :a :p :a )>>",
)


@pytest.mark.parametrize("value", VALUES)
def test_comparisons_are_the_engines(value: str) -> None:
    """A term is <= itself, also one without an order; a value of a known kind equals none of another."""
    for other in VALUES:
        store = store_of(f":s :p {value} ; :q {other} .")
        catalog = column_tables(store)
        for operators in (("=", "!="), ("<", "<=", ">", ">=")):
            binds = " ".join(f"BIND(?x {op} ?y AS ?r{place})" for place, op in enumerate(operators))
            agrees(store, catalog, f"SELECT * {{ ?s :p ?x ; :q ?y {binds} }}")


@pytest.mark.parametrize("value", VALUES)
def test_computed_values_compare_as_stored_ones(value: str) -> None:
    for expression in (
        "?x * 1 <= ?x",
        "?x * 1 < ?x * 1",
        "(?x = ?x) <= ?x",
        "?x >= (1 = 1)",
        "STR(?x) <= ?x",
    ):
        check(f":s :p {value}", f"SELECT * {{ :s :p ?x BIND({expression} AS ?r) }}")


def test_equality_with_datatypes_that_only_the_engine_knows_is_a_readers() -> None:
    refused = "= with literals of other datatypes of XML Schema"
    text = "SELECT * { ?s :p ?x BIND(?x = 1 AS ?r) }"
    assert check(':s :p 1, "P1D"^^xsd:duration', text) is None  # the engine is asked of each
    assert (
        check(':s :p 1, "P1D"^^xsd:duration', "SELECT * { ?s :p ?x, ?y BIND(?x = ?y * 1 AS ?r) }") == refused
    )
    assert check(':s :p 1, "x"^^:own', text) is None
    assert check(":s :p 1", 'SELECT * { ?s :p ?x BIND(?x = "P1D"^^xsd:duration AS ?r) }') == refused
    assert check(":s :p 1", 'SELECT * { ?s :p ?x BIND(?x = "x"^^:own AS ?r) }') is None


@pytest.mark.parametrize(
    "path",
    [
        *(":p|:q", ":p|:p", "(:p|:p)/:q", "(:p|:q)/(:p|:q)", "(:p/:q)|:p", "((:p|:p)|:p)", ":p/(:p|:q)"),
        *(":p?|:q", "^(:p|:q)", "^:p|:p", "!:p", "!(:p|^:q)", "!^:q", "!(:p|^:p)", "!:p/:p", "!:r/!:r"),
    ],
)
def test_paths_have_the_engines_duplicates(path: str) -> None:
    for start, end in (("?s", "?o"), (":a", "?o"), ("?s", ":c"), (":a", ":b")):
        assert check(PATHS, f"SELECT * {{ VALUES ?k {{ 1 }} {start} {path} {end} }}") is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s !:r ?o }",
        "SELECT * { ?s !:r ?o . ?s :p ?x }",
        "SELECT * { ?s !:r ?o . ?s :p ?o }",
        "SELECT * { VALUES (?s ?o) { (:a :b) } ?s !:r ?o }",
        "SELECT * { ?s !:r ?o . { SELECT ?s (:b AS ?o) { ?s :p ?x } } }",
        "SELECT * { VALUES ?k { 1 } :a !:r :b }",
        "SELECT * { ?s (!:r|:r) ?o . ?s :p ?o }",
    ],
)
def test_negated_sets_have_a_solution_for_each_triple(text: str) -> None:
    assert check(PATHS, text) is None


@pytest.mark.parametrize("operator", ["IN", "NOT IN"])
@pytest.mark.parametrize("value", ["?x", "?s", "?u", "(1/0)"])
@pytest.mark.parametrize("options", ["()", "(1/0)", "(1/0, 1)", "(2, ?u)"])
def test_membership_is_the_engines(operator: str, value: str, options: str) -> None:
    text = f"SELECT * {{ ?s :p ?x OPTIONAL {{ ?x :p ?u }} BIND({value} {operator} {options} AS ?r) }}"
    assert check(":a :p 1", text) == ("IN of nothing" if options == "()" else None)


@pytest.mark.parametrize("literal", ["01", "1.0", "1e0", '"1"^^xsd:boolean', '"a"@en--ltr'])
def test_templates_with_literals_that_a_store_rewrites_are_a_readers(literal: str) -> None:
    assert check(":a :p 1", f"CONSTRUCT {{ ?s :q {literal} }} {{ ?s :p ?x }}") is not None
    assert check(":a :p 1", 'CONSTRUCT { ?s :q 1, 1.5, "a"@EN, true, "x"^^:own } { ?s :p ?x }') is None


OF_FORMS = "an aggregate or GROUP BY in {}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT ?x ?x { ?s :p ?x }", None),
        ("SELECT * { { SELECT ?x ?x { ?s :p ?x } } }", None),
        ("ASK { ?s :p ?x } GROUP BY ?s", OF_FORMS.format("ASK")),
        ("ASK { ?s :p ?x } HAVING (COUNT(*) > 0)", OF_FORMS.format("ASK")),
        ("ASK { ?s :p ?x } ORDER BY COUNT(?x)", OF_FORMS.format("ASK")),
        ("CONSTRUCT { ?s :q ?x } { ?s :p ?x } GROUP BY ?s ?x", OF_FORMS.format("CONSTRUCT")),
        ("SELECT * { ?s !() ?x }", "a negated property set of nothing"),
    ],
)
def test_what_the_engine_is_asked_in_other_words(text: str, reason: str | None) -> None:
    assert check(":a :p 1", text) == reason


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?k (COUNT(*) AS ?n) { ?s :p ?x } GROUP BY (?s AS ?k)",
        "SELECT ?k (COUNT(*) AS ?n) { ?s :p ?x BIND(?s AS ?k) } GROUP BY ?k",
        "SELECT ?k (COUNT(*) AS ?n) { ?s ?p ?x } GROUP BY (?p AS ?k)",
    ],
)
def test_a_key_may_be_a_variable_under_another_name(text: str) -> None:
    assert check(":a :p 1, 2 . :b :p 1", text) is None


NESTED = (
    ":a :p :b, 1 ; :q :c . :b :p :c ; :q 2 . :c :p :a . "
    "GRAPH :g { :a :p :b . :b :q :c } GRAPH :h { :x :p :y . :x :q :a . :y :p :b }"
)


@pytest.mark.parametrize(
    "pattern",
    [
        "?s :p ?o OPTIONAL { ?o :q ?z FILTER(?s = :a) }",
        "?s :p ?o OPTIONAL { ?o :q ?z OPTIONAL { ?z :p ?w FILTER(bound(?s)) } }",
        "?s :p ?o { BIND(?s AS ?z) }",
        "?s :p ?o { ?o :q ?z FILTER(bound(?s)) }",
        "?s :p ?o MINUS { ?o :q ?z FILTER(?s = :a) }",
        "?s :p ?o FILTER EXISTS { ?o :q ?z FILTER(?s = :a) }",
        "?s :p ?o FILTER EXISTS { ?o :p ?z FILTER EXISTS { ?z :p ?s } }",
        "?s :p ?o { SELECT ?o { ?s :q ?o } }",
        "?s :p ?o { SELECT ?s (COUNT(?o) AS ?n) { ?s :q ?o } GROUP BY ?s }",
        "?s :p ?o { SELECT (COUNT(?s) AS ?n) { ?s :q ?o } }",
    ],
)
def test_variables_from_outside_are_seen_where_the_engine_sees_them(pattern: str) -> None:
    assert check(NESTED, f"SELECT * {{ {pattern} }}") is None


@pytest.mark.parametrize(
    "pattern",
    [
        "VALUES ?x { :nowhere :a } ?x :p* ?y",
        "BIND(:nowhere AS ?x) ?x :p* ?y",
        "VALUES ?x { :nowhere :x } OPTIONAL { ?x :q? ?y }",
        "VALUES ?x { :nowhere :a } FILTER EXISTS { ?x :q* ?y }",
        "GRAPH :h { ?x :p ?o } ?x :q* ?y",
        "?x :p ?o . GRAPH :h { ?o :q* ?y }",
        "OPTIONAL { ?x :never ?y } ?x :p* ?z",
        "?x :p* ?x",
        "1 :p* ?x",
    ],
)
def test_paths_of_length_zero_join_the_nodes_of_their_graph(pattern: str) -> None:
    assert check(NESTED, f"SELECT * {{ {pattern} }}") is None


@pytest.mark.parametrize(
    "selected",
    [
        "(SUM(?o) AS ?x) (COUNT(?o) AS ?y) (MIN(?o) AS ?z) { ?s :never ?o }",
        "(SUM(?o) AS ?x) { ?s :p ?o }",
        "(COUNT(?o + 1) AS ?x) { ?s :p ?o }",
        "?s (AVG(?o) AS ?x) (SAMPLE(?s) AS ?y) { ?s :p ?o } GROUP BY ?s",
        "(GROUP_CONCAT(?o) AS ?x) { ?s :q ?o }",
    ],
)
def test_aggregates_of_errors_and_of_nothing_are_the_engines(selected: str) -> None:
    assert check(NESTED, f"SELECT {selected}") is None


@pytest.mark.parametrize("string", ['SUBSTR("ab"@en, 2)', "SUBSTR(?l, 1)", "UCASE(?l)", "SUBSTR(?l, 9)"])
def test_a_computed_string_has_the_language_of_what_it_is_made_of(string: str) -> None:
    data = ':a :l "ab"@en-GB, "ab", "b"@fr, 5, :a'
    for of in (f"LANG({string})", f'LANGMATCHES(LANG({string}), "en")', f'LANGMATCHES(LANG({string}), "*")'):
        assert check(data, f"SELECT ?l ({of} AS ?x) {{ ?s :l ?l }}") is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p VALUES ?p { :p :q :p }",
        "SELECT ?p (COUNT(?o) AS ?n) { ?s ?p ?o FILTER(?o != 7) } GROUP BY ?p VALUES ?o { 1 2 }",
        "SELECT (COUNT(?s) AS ?n) { ?s :p ?o } VALUES ?k { 10 11 }",
        "SELECT ?s (SUM(?o) AS ?n) { ?s :q ?o } GROUP BY ?s VALUES (?s ?o) { (:a UNDEF) (UNDEF 4) (:b 1) }",
        "SELECT ?s { ?s :p ?o } GROUP BY ?s VALUES ?o { 1 }",
        "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > 1) VALUES ?s { :a :a :c }",
        "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s ORDER BY ?n ?s LIMIT 2 VALUES ?s { :b :c }",
        "SELECT ?s ?t { ?s :p ?o OPTIONAL { ?o :q ?t } } GROUP BY ?s ?t "
        "VALUES (?s ?t) { (:a 1) (:a UNDEF) (UNDEF :c) }",
        "SELECT * { { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s VALUES ?s { :a :a } } ?s :p ?x }",
        "SELECT * { { SELECT (COUNT(?s) AS ?n) { ?s :p ?o } VALUES ?p { :p :q } } ?s ?p ?o }",
        "SELECT * { ?s :p ?o { SELECT ?s ?p { ?s ?p ?x } VALUES ?p { :p :q } } }",
        "SELECT * { ?s ?p ?o } ORDER BY ?s ?o LIMIT 3 VALUES ?p { :p }",
        "CONSTRUCT { ?s :r ?o } { ?s ?p ?o } VALUES ?p { :q }",
        "ASK { ?s ?p ?o } VALUES ?p { :never }",
    ],
)
def test_values_at_the_end_are_joined_where_the_specification_joins_them(query: str) -> None:
    """After the groups, where there are any (section 18.2.4.3)."""
    assert check(NESTED, query) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "{ ?o :q ?z FILTER(?s = :a) } ?s :p ?x",
        "{ ?o :q ?z FILTER(?s = :a) }",
        "?s :q ?x { ?y :p ?z FILTER(?s = :a) }",
        "?s :p ?y GRAPH :g { ?o :p ?z FILTER(?s = :a) }",
        "{ BIND(?o AS ?z) } ?z :q ?x . ?s :p ?o",
        "{ ?o :q ?z } UNION { ?z :q ?o FILTER(?s = :b) }",
        "?x :q ?y FILTER EXISTS { { ?x :p ?z FILTER(?s = :a) } ?s :q ?w }",
        "?s :p ?x OPTIONAL { ?x :q ?z FILTER(?s = :a) } FILTER(!bound(?z))",
    ],
)
def test_exists_knows_the_solution_everywhere_in_its_pattern(pattern: str) -> None:
    assert check(NESTED, f"SELECT * {{ ?s :p ?o FILTER EXISTS {{ {pattern} }} }}") is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("?s :p ?x BIND(2 AS ?b)", "BIND within EXISTS of a variable that has a value outside"),
        (
            "?y :p ?z OPTIONAL { ?y :q ?s } ?s :p ?w",
            "EXISTS with a variable that only a part of its pattern names",
        ),
        (
            "{ { ?y :p ?z } UNION { ?s :q ?z } FILTER(!bound(?s)) } ?s :p ?w",
            "EXISTS with a variable that its pattern may leave unbound",
        ),
    ],
)
def test_a_part_of_exists_that_the_solution_would_change_is_a_readers(pattern: str, reason: str) -> None:
    text = f"SELECT * {{ ?s :p ?o BIND(1 AS ?b) FILTER EXISTS {{ {pattern} }} }}"
    assert check(NESTED, text) == reason


@pytest.mark.parametrize("constant", ["5", "1", '"x"', ":a", "2.5e0"])
def test_an_order_by_a_constant_orders_nothing(constant: str) -> None:
    assert check(NESTED, f"SELECT ?s ({constant} AS ?x) {{ ?s :p ?o }} ORDER BY DESC(?x) ?s LIMIT 2") is None


@pytest.mark.parametrize("form", ["SELECT ?s", "SELECT DISTINCT ?s", "ASK", "CONSTRUCT { ?s :r 1 }"])
def test_having_alone_groups_nothing(form: str) -> None:
    assert check(NESTED, f"{form} {{ ?s :p ?o }} HAVING(?s = :a)") is None


FLOATS = {
    "integer": "1, 2, -3, 0, 16777217, 9007199254740993, 9223372036854775807",
    "decimal": "1.5, 0.1, -0.3, 16777217.0, 123456.789, 0.000001, 1.000001",
    "double": "1e0, 0.1e0, 1e10, 1e-10, 1e-40, 1.000000059604644775e0, 'NaN'^^xsd:double, '-0'^^xsd:double",
    "string": "'1', '6679.49', '+.5', 'x', '1e10', '-7e-3', '16777217', ''",
    "price": "'12.5'^^:USD, '6679.49'^^:USD, '0.1'^^:USD",
}


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    "expression",
    [
        *("{}", "{} / 3", "{} * 1.5", "{} + 1e0", "-{}", "ABS({})", "FLOOR({})", "xsd:double({})", "1 / {}"),
        *("{} < 1.5", "{} = 0.1", "{} >= 1", "{} = 0.1e0", "?v <= {}", "{} <= {}", "!{}", "{} - {} * 0.1"),
        *("DATATYPE({})", "IF({} > 1, {}, xsd:float(0))", "{} IN (1, 2.5)"),
    ],
)
def test_casts_to_float(kind: str, expression: str) -> None:
    cast = "xsd:float(STR(?v))" if kind == "price" else "xsd:float(?v)"
    made = expression.replace("{}", cast)
    assert check(f":a :p {FLOATS[kind]}", f"SELECT ?v ({made} AS ?x) {{ ?s :p ?v }}") is None


@pytest.mark.parametrize(
    "aggregate", ["SUM(", "AVG(", "MIN(", "MAX(", "COUNT(", "SUM(DISTINCT ", "AVG(DISTINCT "]
)
@pytest.mark.parametrize("keys", ["", "GROUP BY ?s"])
def test_aggregates_of_floats(aggregate: str, keys: str) -> None:
    """Those whose sums are the same in any order."""
    text = f"SELECT ({aggregate}xsd:float(?v)) AS ?x) {{ ?s :p ?v }} {keys}"
    assert check(":a :p 1, 3, 7 . :b :p 1, 10, 16777216 .", text) is None


@pytest.mark.parametrize("keys", ["?s ?nothing", "?nothing"])
def test_groups_by_a_variable_that_is_never_bound(keys: str) -> None:
    data = ":a :p 1, 2 . :b :p 3 ."
    assert check(data, f"SELECT {keys} (SUM(?v) AS ?x) {{ ?s :p ?v }} GROUP BY {keys}") is None
    inner = f"{{ SELECT {keys} (SUM(?v) AS ?x) {{ ?s :p ?v }} GROUP BY {keys} }}"
    assert check(data, f"SELECT * {{ ?nothing :p ?w {inner} }} ORDER BY ?nothing") is None
    assert check(data, f"SELECT * {{ {inner} OPTIONAL {{ ?nothing :p ?w }} FILTER(?x > 1) }}") is None
