"""LIVE SELECT as it is written, and what it asks for."""

import pytest

from graphdb.errors import QuerySyntaxError
from graphdb.live.records import RDF_TYPE
from graphdb.live.statement import SparqlText, read_statement
from graphdb.live.table_queries import (
    Compare,
    Contains,
    Every,
    Field,
    IsNull,
    OneOf,
    Some,
    Table,
    TableQuery,
    Without,
)

PERSON = Table("Person")
AGE, NAME = Field("age"), Field("name")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("LIVE SELECT * FROM Person", TableQuery(PERSON)),
        ("\ufeffLIVE SELECT * FROM Person", TableQuery(PERSON)),
        ("\ufeffLIVE SELECT * WHERE {}", SparqlText("     SELECT * WHERE {}")),
        ("live select name, age from Person;", TableQuery(PERSON, (NAME, AGE))),
        ("LIVE SELECT * FROM <http://x/Person>", TableQuery(Table("http://x/Person", True))),
        ("LIVE SELECT * FROM foaf:Person", TableQuery(Table("http://xmlns.com/foaf/0.1/Person", True))),
        (
            "PREFIX x: <http://x/>\nPREFIX : <http://y#>\nLIVE SELECT :a, x:b, `order` FROM x:Person",
            TableQuery(
                Table("http://x/Person", True),
                (Field("http://y#a", True), Field("http://x/b", True), Field("order")),
            ),
        ),
        (f"LIVE SELECT <{RDF_TYPE}> FROM Person", TableQuery(PERSON, (Field("type"),))),
        ("LIVE SELECT * FROM Person WHERE age >= 18.5", TableQuery(PERSON, None, Compare(AGE, ">=", 18.5))),
        (
            "LIVE SELECT * FROM Person WHERE name = 'O\\'Neil\\n' "
            "OR NOT age < -3 AND (age IN [1, 2] OR age IN ())",
            TableQuery(
                PERSON,
                None,
                Some(
                    (
                        Compare(NAME, "=", "O'Neil\n"),
                        Every((Without(Compare(AGE, "<", -3)), Some((OneOf(AGE, (1, 2)), OneOf(AGE, ()))))),
                    )
                ),
            ),
        ),
        (
            'LIVE SELECT * FROM Person WHERE name CONTAINS "{" AND age IS NOT NULL AND name NOT IN (true, <http://x>)',
            TableQuery(
                PERSON,
                None,
                Every(
                    (
                        Contains(NAME, "{"),
                        Without(IsNull(AGE)),
                        Without(OneOf(NAME, (True, "http://x"))),
                    )
                ),
            ),
        ),
    ],
)
def test_read(text: str, query: TableQuery) -> None:
    assert read_statement(text) == query


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected LIVE, found the end"),
        ("SELECT * FROM Person", "expected LIVE"),
        ("LIVE SELECT FROM Person", "expected FROM, found 'Person'"),
        ("LIVE SELECT * FROM Person WHERE", "a field"),
        ("LIVE SELECT * FROM Person name = 1", "WHERE or the end"),
        ("LIVE SELECT * FROM Person WHERE age", "a comparison"),
        ("LIVE SELECT * FROM Person WHERE age = NULL", "IS NULL"),
        ("LIVE SELECT * FROM Person WHERE age = 1e999", "too large"),
        ("LIVE SELECT * FROM Person WHERE age = 'open", "not understood"),
        ("LIVE SELECT * FROM Person WHERE (age = 1", "')'"),
        ("LIVE SELECT * FROM Person WHERE age IN [1, 2)", "']'"),
        ("LIVE SELECT * FROM none:Person", "'none' is not declared"),
        ("LIVE SELECT * FROM <Person>", "absolute"),
        ("PREFIX x: <x> LIVE SELECT * FROM x:Person", "line 1, column 11: <x> is not an absolute IRI"),
        ("LIVE SELECT * FROM Person\nWHERE age ! 1", "line 2, column 11"),
        ("LIVE SELECT * FROM Person WHERE " + "(" * 60 + "a = 1" + ")" * 60, "at most 50"),
        ("LIVE SELECT * FROM Person WHERE " + "NOT " * 100_000, "characters"),
        ("LIVE SELECT * FROM Person WHERE " + "NOT " * 5_000, "at most 50"),
        ("LIVE SELECT * FROM Person WHERE a = 1" + " OR a = 1" * 2_000, "at most 1000"),
        ("SELECT * WHERE { ?s ?p ?o }", "begins with LIVE SELECT"),
        ("LIVESELECT * WHERE { ?s ?p ?o }", "begins with LIVE SELECT"),
    ],
)
def test_refused_with_place_and_reason(text: str, said: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        read_statement(text)
    assert said in str(caught.value)


def test_braces_make_it_sparql() -> None:
    text = "PREFIX x: <http://x/> # with a prologue\nLive SELECT ?s FROM <http://g> WHERE { ?s x:p '}' }"
    found = read_statement(text)
    assert found == SparqlText(text.replace("Live", "    "))
    # a brace in a text or a name is none
    assert isinstance(read_statement("LIVE SELECT * FROM T WHERE a = '{' AND b = \"}\""), TableQuery)
