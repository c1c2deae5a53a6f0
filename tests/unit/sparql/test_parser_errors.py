"""What is wrong with a text, and where: exact reasons, lines and columns."""

import pytest

from graphdb.errors import QuerySyntaxError
from graphdb.sparql.parser import parse_query, parse_update

QUERIES = [
    # name, text, line, column, reason
    (
        "empty",
        "",
        1,
        1,
        "expected one of 'ASK', 'BASE', 'CONSTRUCT', 'DESCRIBE', 'PREFIX', 'SELECT' or 'VERSION',"
        " found the end of the text",
    ),
    ("no such word", "SELCT * {}", 1, 1, "'SELCT' is no word of SPARQL; a prefixed name has a colon"),
    ("misfit on the second line", "SELECT *\n WHERE }", 2, 8, "expected '{', found '}'"),
    (
        "end too early",
        "ASK { ?s ?p ?o",
        1,
        15,
        "expected one of ',', '.', ';', 'BIND', 'FILTER', 'GRAPH', 'MINUS', 'OPTIONAL', 'SERVICE',"
        " 'VALUES', '{', '{|'"
        " or 2 others, found the end of the text",
    ),
    (
        "expression missing",
        "ASK { FILTER(1 + ) }",
        1,
        18,
        "expected one of a function, a literal, a prefix, a prefixed name, a variable, an IRI, '!',"
        " '(', '+', '-' or"
        " '<<(', found ')'",
    ),
    ("prefix not declared", "ASK { ex:a ?p ?o }", 1, 7, "the prefix 'ex:' is not declared"),
    (
        "prefix declared later",
        "PREFIX a: <http://a/> ASK { ex:a ?p ?o }",
        1,
        29,
        "the prefix 'ex:' is not declared",
    ),
    ("relative IRI", "ASK {\n  <a> ?p ?o }", 2, 3, "the relative IRI <a> needs a BASE"),
    ("relative prefix", "PREFIX a: <a/> ASK {}", 1, 11, "the relative IRI <a/> needs a BASE"),
    (
        "space in an IRI",
        "ASK { <http://a b> ?p ?o }",
        1,
        7,
        "'<' begins an IRI that is not closed, or has a character that IRIs cannot hold",
    ),
    (
        "escaped space in an IRI",
        r"ASK { <http://a\u0020b> ?p ?o }",
        1,
        7,
        "an escape stands for a character that IRIs cannot hold",
    ),
    (
        "bad host",
        "ASK { <http://[> ?p ?o }",
        1,
        7,
        "<http://[> is not a valid IRI: Invalid character '[' in host",
    ),
    (
        "string over a line",
        'ASK { ?s ?p "a\nb" }',
        1,
        13,
        'the string that begins with " is not closed on its line',
    ),
    ("long string open", "ASK { ?s ?p '''a\nb }", 1, 13, "the string that begins with ''' is not closed"),
    ("no such escape", 'ASK { ?s ?p "a\\q" }', 1, 15, r"'\q' is not an escape"),
    ("no such escape in VERSION", 'VERSION "1.2\\q" ASK {}', 1, 13, r"'\q' is not an escape"),
    ("surrogate escape", 'ASK { ?s ?p "a\\uD800" }', 1, 15, r"'\uD800' is not a character of Unicode"),
    (
        "escape past Unicode",
        'ASK { ?s ?p "\\U00110000" }',
        1,
        14,
        r"'\U00110000' is not a character of Unicode",
    ),
    ("lone surrogate", "ASK {} # \ud800", 1, 10, "half of a surrogate pair is not a character"),
    ("NUL", "ASK {\0}", 1, 6, r"unexpected character '\x00'"),
    (
        "language tag too long",
        'ASK { ?s ?p "a"@abcdefghi }',
        1,
        16,
        "'abcdefghi' is not a well-formed language tag",
    ),
    ("base direction", 'ASK { ?s ?p "a"@en--up }', 1, 16, "the base direction is 'ltr' or 'rtl', not 'up'"),
    ("at sign alone", 'ASK { ?s ?p "a"@ }', 1, 16, "'@' is not followed by a language tag"),
    ("limit too large", "ASK {} LIMIT " + "9" * 5000, 1, 14, "the number is too large"),
    (
        "BIND to a bound variable",
        "ASK { ?a ?b ?c BIND(1 AS ?a) }",
        1,
        26,
        "BIND to ?a, which has a value before it",
    ),
    (
        "BIND to a variable of OPTIONAL",
        "ASK { OPTIONAL { ?a ?b ?c } BIND(1 AS ?a) }",
        1,
        39,
        "BIND to ?a, which has a value before it",
    ),
    ("row width", "ASK { VALUES (?a ?b) { (1 2) (1) } }", 1, 30, "a row of 1 values for 2 variables"),
    ("variable twice in VALUES", "ASK { VALUES (?a ?a) { } }", 1, 18, "VALUES names ?a twice"),
    (
        "AS a bound variable",
        "SELECT (1 AS ?a) { ?a ?b ?c }",
        1,
        14,
        "?a has a value already and cannot be set by AS",
    ),
    ("AS twice", "SELECT (1 AS ?a) (2 AS ?a) { }", 1, 24, "?a has a value already and cannot be set by AS"),
    ("AS a column", "SELECT ?a (2 AS ?a) { }", 1, 17, "?a has a value already and cannot be set by AS"),
    (
        "AS a variable of VALUES",
        "SELECT (1 AS ?a) { } VALUES ?a { 1 }",
        1,
        14,
        "?a has a value already and cannot be set by AS",
    ),
    (
        "column not grouped",
        "SELECT ?a (COUNT(?b) AS ?n) { ?a ?b ?c }",
        1,
        8,
        "?a is neither in GROUP BY nor within an aggregate",
    ),
    (
        "expression not grouped",
        "SELECT (?a + COUNT(?b) AS ?n) { ?a ?b ?c } GROUP BY ?b",
        1,
        9,
        "?a is neither in GROUP BY nor within an aggregate",
    ),
    (
        "star grouped",
        "SELECT * { ?a ?b ?c } GROUP BY ?a",
        1,
        1,
        "SELECT * cannot be grouped: name the columns",
    ),
    (
        "nested aggregate",
        "SELECT (SUM(COUNT(*)) AS ?n) {}",
        1,
        13,
        "an aggregate cannot stand in another aggregate",
    ),
    ("aggregate in FILTER", "ASK { FILTER(COUNT(*) > 1) }", 1, 14, "an aggregate cannot stand in FILTER"),
    ("aggregate in BIND", "ASK { BIND(COUNT(*) AS ?n) }", 1, 12, "an aggregate cannot stand in BIND"),
    ("aggregate in GROUP BY", "ASK { } GROUP BY (COUNT(*))", 1, 19, "an aggregate cannot stand in GROUP BY"),
    (
        "label in two patterns",
        "ASK { _:a ?p ?o OPTIONAL { _:a ?q ?r } }",
        1,
        28,
        "_:a stands in two basic graph patterns",
    ),
    (
        "label around a pattern",
        "ASK { _:a ?p ?o {} _:a ?q ?r }",
        1,
        20,
        "_:a stands in two basic graph patterns",
    ),
    (
        "annotated path",
        "PREFIX : <http://e/> ASK { ?s :p/:q ?o {| :r 1 |} }",
        1,
        31,
        "a triple with a property path cannot be annotated",
    ),
    ("braces too deep", "ASK " + "{" * 10_000, 1, 205, "nested deeper than 200 levels"),
    ("signs too deep", "ASK { FILTER(" + "!" * 10_000, 1, 212, "nested deeper than 200 levels"),
    (
        "signs and calls too deep",
        "ASK { FILTER(" + "!!!STR(" * 10_000,
        1,
        359,
        "nested deeper than 200 levels",
    ),
    (
        "an update",
        "CLEAR ALL",
        1,
        1,
        "expected one of 'ASK', 'BASE', 'CONSTRUCT', 'DESCRIBE', 'PREFIX', 'SELECT' or 'VERSION',"
        " found 'CLEAR'",
    ),
]

UPDATES = [
    ("variable in data", "INSERT DATA { ?s <a:p> 1 }", 1, 15, "data cannot hold a variable, here ?s"),
    (
        "variable in a triple term",
        "INSERT DATA { <a:s> <a:p> <<( <a:s> <a:p> ?o )>> }",
        1,
        43,
        "data cannot hold a variable, here ?o",
    ),
    (
        "variable as a graph",
        "INSERT DATA { GRAPH ?g { } <a:s> <a:p> 1 }",
        1,
        21,
        "data cannot hold a variable, here ?g",
    ),
    (
        "triple term as a subject",
        "INSERT DATA { <<( <a:a> <a:b> 1 )>> <a:p> 1 }",
        1,
        15,
        "data cannot have a triple term as a subject",
    ),
    (
        "triple term as a subject of a reified triple",
        "INSERT DATA { << <<( <a:a> <a:b> 1 )>> <a:b> 1 >> <a:p> 1 }",
        1,
        18,
        "data cannot have a triple term as a subject",
    ),
    ("literal as a subject", "INSERT DATA { 1 <a:p> 1 }", 1, 15, "data cannot have a literal as a subject"),
    (
        "langString without tag",
        "INSERT DATA { <a:s> <a:p> 'a'^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> }",
        1,
        27,
        "a literal of this datatype has a language tag",
    ),
    (
        "blank node in DELETE DATA",
        "DELETE DATA { _:a <a:p> 1 }",
        1,
        15,
        "DELETE DATA cannot hold a blank node",
    ),
    ("list in DELETE DATA", "DELETE DATA { <a:s> <a:p> (1) }", 1, 27, "DELETE DATA cannot hold a blank node"),
    (
        "blank node in DELETE",
        "DELETE { ?s <a:p> [] } WHERE { ?s ?p ?o }",
        1,
        19,
        "DELETE cannot hold a blank node",
    ),
    (
        "blank node in DELETE WHERE",
        "DELETE WHERE { ?s <a:p> [] }",
        1,
        25,
        "DELETE WHERE cannot hold a blank node",
    ),
    (
        "label in two INSERT DATA",
        "INSERT DATA { _:a <a:p> 1 } ;\nINSERT DATA { _:a <a:p> 1 }",
        2,
        15,
        "_:a stands in two operations",
    ),
    (
        "no separator",
        "CLEAR ALL CLEAR ALL",
        1,
        11,
        "expected one of the end of the text or ';', found 'CLEAR'",
    ),
]


@pytest.mark.parametrize(
    ("name", "text", "line", "column", "reason"), QUERIES, ids=[case[0] for case in QUERIES]
)
def test_query(name: str, text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text)
    check(caught.value, line, column, reason)


@pytest.mark.parametrize(
    ("name", "text", "line", "column", "reason"), UPDATES, ids=[case[0] for case in UPDATES]
)
def test_update(name: str, text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_update(text)
    check(caught.value, line, column, reason)


def check(error: QuerySyntaxError, line: int, column: int, reason: str) -> None:
    assert (error.line, error.column, error.reason) == (line, column, reason)


@pytest.mark.parametrize(
    "text",
    [
        "ASK " + "{" * 200 + "}" * 200,
        "ASK { FILTER(" + "(" * 198 + "1" + ")" * 198 + ") }",
        "ASK { FILTER(" + "!" * 198 + "?x) }",
        "ASK {" + " UNION ".join(["{}"] * 5000) + "}",
        "ASK { FILTER(" + " || ".join(["!?x"] * 5000) + ") }",
    ],
    ids=[
        "braces at the bound",
        "brackets at the bound",
        "signs at the bound",
        "many unions",
        "many negations",
    ],
)
def test_wide_is_not_deep(text: str) -> None:
    parse_query(text)


def test_base_passed_must_be_absolute() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query("ASK {}", "data/")
    assert "the base IRI <data/> is not a valid absolute IRI" in caught.value.reason
