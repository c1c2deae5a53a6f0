"""The spellings of a search, and what is said of one that cannot be read."""

import json
from typing import Any

import pytest

from graphdb.errors import InvalidParameter
from graphdb.planning.engine_text import engine_text, entities_text
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.parser import parse_query
from graphdb.sparql.search_requests import Highlight, IndexSearch, LiteralSearch, Part
from graphdb.sparql.terms import Iri, RdfLiteral, Variable
from graphdb.sparql.translation import abstract_query, searches_of
from graphdb.sparql.tree_walk import nodes_of

PREFIXES = """PREFIX text: <http://jena.apache.org/text#> PREFIX : <urn:>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX search: <urn:graphdb:search#>
PREFIX con: <http://www.ontotext.com/connectors/elasticsearch#>
PREFIX inst: <http://www.ontotext.com/connectors/elasticsearch/instance#>
"""
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


def search_in(pattern: str) -> TextSearch:
    (found,) = searches_of(parse_query(f"{PREFIXES} SELECT * {{ {pattern} }}"))
    return found


@pytest.mark.parametrize(
    ("arguments", "request_"),
    [
        ('"word"', LiteralSearch((), "word")),
        ('("word")', LiteralSearch((), "word")),
        ('("word" 10)', LiteralSearch((), "word", 10)),
        ('("word" -1)', LiteralSearch((), "word")),
        ('(rdfs:label "word")', LiteralSearch((LABEL,), "word")),
        ('(rdfs:label :p rdfs:label "a AND b~" 3)', LiteralSearch((LABEL, "urn:p"), "a AND b~", 3)),
        ('(rdfs:label "word" "lang:en")', LiteralSearch((LABEL,), "word", language="en")),
        ('(rdfs:label "word" 5 "lang:en-GB")', LiteralSearch((LABEL,), "word", 5, "en-gb")),
        ('"mot"@fr', LiteralSearch((), "mot", language="fr")),
        ('("word" "lang:none")', LiteralSearch((), "word", language="none")),
        ('("word" "lang:*")', LiteralSearch((), "word")),
        ('("word" "highlight:")', LiteralSearch((), "word", highlight=Highlight())),
        (
            '("word" 2 "highlight:s:<b> | e:</b> | m:1 | z:50 | f:… | jh:n")',
            LiteralSearch((), "word", 2, None, Highlight("<b>", "</b>", 1, 50, "…", False)),
        ),
    ],
)
def test_arguments_of_text_query(arguments: str, request_: LiteralSearch) -> None:
    found = search_in(f"?s text:query {arguments}")
    assert found.request == request_
    assert found.columns == ((Part.SUBJECT, Variable("s")),)


def test_subjects_of_text_query() -> None:
    found = search_in('(?s ?score ?literal ?g ?p) text:query "word"')
    assert [(part, variable.name) for part, variable in found.columns] == [
        (Part.SUBJECT, "s"),
        (Part.SCORE, "score"),
        (Part.LITERAL, "literal"),
        (Part.GRAPH, "g"),
        (Part.PROPERTY, "p"),
    ]


def test_a_subject_that_is_given() -> None:
    found = search_in('(:a ?score "Word"@en) text:query "word"')
    assert found.fixed[0] == (Part.SUBJECT, Iri("urn:a"))
    assert isinstance(found.fixed[1][1], RdfLiteral)
    assert [variable.name for _, variable in found.columns] == ["score"]


def test_a_blank_node_is_a_variable_that_is_not_shown() -> None:
    query = parse_query(PREFIXES + 'SELECT * { [ text:query "word" ; :p ?o ] }')
    asked = abstract_query(query)
    (found,) = searches_of(query)
    ((_, variable),) = found.columns
    assert [each.name for each in asked.select.variables or ()] == ["o"]
    triples = [triple for node in nodes_of(asked) for triple in getattr(node, "triples", ())]
    assert [triple.subject for triple in triples] == [variable]


def test_within_graph() -> None:
    assert search_in('GRAPH :g { ?s text:query "word" }').graph == Iri("urn:g")
    found = search_in('GRAPH ?g { ?s text:query "word" }')
    assert found.graph == Variable("g")
    assert (Part.GRAPH, Variable("g")) in found.columns
    (inner,) = searches_of(parse_query(PREFIXES + 'SELECT * { GRAPH :g { ?x :p ?y } ?s text:query "word" }'))
    assert inner.graph is None


SERVICE: list[tuple[str, Any]] = [
    ('search:query "wine"', {"query": {"query_string": {"query": "wine"}}}),
    ('search:query """{"match": {"title": "wine"}}"""', {"query": {"match": {"title": "wine"}}}),
    ('search:query """{"query": {"match_all": {}}, "size": 3}"""', {"query": {"match_all": {}}, "size": 3}),
    (
        'search:knn (1 0.5) ; search:field "v" ; search:k 3',
        {"knn": {"field": "v", "k": 3, "num_candidates": 100, "query_vector": [1.0, 0.5]}},
    ),
    (
        'search:knn "[1, 0]" ; search:field "v" ; search:query "wine"',
        {
            "query": {"query_string": {"query": "wine"}},
            "knn": {"field": "v", "k": 10, "num_candidates": 100, "query_vector": [1.0, 0.0]},
        },
    ),
]


@pytest.mark.parametrize(("about", "body"), SERVICE)
def test_service(about: str, body: Any) -> None:
    query = parse_query(
        f"{PREFIXES} SELECT * {{ SERVICE <search:my%20books> {{ [] {about} ; search:limit 5 ; "
        "search:hit [ search:entity ?s ; search:score ?score ] } }"
    )
    assert query.service_hosts == ()
    (found,) = searches_of(query)
    assert isinstance(found.request, IndexSearch)
    assert (found.request.index, found.request.limit) == ("my books", 5)
    assert json.loads(found.request.body) == body
    assert [(part, variable.name) for part, variable in found.columns] == [
        (Part.SUBJECT, "s"),
        (Part.SCORE, "score"),
    ]


def test_nearest_to_a_resource() -> None:
    found = search_in(
        'SERVICE <search:b> { [] search:knn :this ; search:field "v" ; search:hit [ search:entity ?s ] }'
    )
    assert isinstance(found.request, IndexSearch)
    assert found.request.like == "urn:this"


def test_a_connector() -> None:
    found = search_in(
        '?search a inst:books ; con:query "title:wine" ; con:limit "7" ; con:offset "2" ; '
        'con:orderBy "-year" ; con:totalHits ?n ; con:entities ?s . ?s con:score ?score ; :p ?o'
    )
    assert isinstance(found.request, IndexSearch)
    assert (found.request.index, found.request.limit, found.request.offset) == ("books", 7, 2)
    assert '"sort": [{"year": "desc"}]' in found.request.body
    assert [part for part, _ in found.columns] == [Part.TOTAL, Part.SUBJECT, Part.SCORE]


def test_snippets_of_a_connector() -> None:
    found = search_in(
        '?search a inst:books ; con:query "wine" ; con:entities ?s . '
        "?s con:snippets [ con:snippetField ?field ; con:snippetText ?text ]"
    )
    assert [part for part, _ in found.columns] == [Part.SUBJECT, Part.FIELD, Part.HIGHLIGHT]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("?s text:query ?text", "a variable to look for"),
        ("?s text:query (rdfs:label ?text)", "a variable to look for"),
        ("?s text:query (rdfs:label)", "no text to look for"),
        ('?s text:query ("a" "b")', "behind the text come a limit"),
        ('?s text:query ("a" "highlight:q:1")', "unknown option"),
        ('() text:query "a"', "its subject is"),
        ('(?s ?score) text:query "a" ; :p ?o', "write them apart"),
        ('(?s ?s) text:query "a"', "binds ?s twice"),
        ("SERVICE <search:b> { ?s :p ?o }", "needs one subject"),
        ('SERVICE <search:b> { [] search:query "a" . ?s search:score ?o }', "not about its search"),
        ('SERVICE <search:b> { [] search:query "a" . ?s :p ?o }', "about the variable of search:entity"),
        ('SERVICE <search:b> { [] search:query "a" FILTER(true) }', "about the variable of search:entity"),
        (
            'SERVICE <search:b> { [] search:query "a" ; search:hit [ search:entity :s ] . :s :p ?o }',
            "about the variable of search:entity",
        ),
        (
            'SERVICE <search:b> { [] search:query "a" ; search:hit [ search:entity ?s ; search:id ?i ] . '
            "?s :p ?i }",
            "?i in the pattern",
        ),
        (
            'SERVICE <search:b> { [] search:query "a" ; search:hit [ search:entity ?s ] . ?s :p ?o . '
            'SERVICE <search:c> { [] search:query "b" ; search:hit [ search:entity ?s ] } }',
            "another search",
        ),
        ('SERVICE <search:b> { [] search:query "a" ; search:hits ?s }', "does not know the property hits"),
        ("SERVICE <search:b> { [] search:knn (1 2) }", "needs search:field"),
        ('SERVICE <search:b> { [] search:knn "[a" ; search:field "v" }', "JSON that cannot be read"),
        ('SERVICE <search:b> { [] search:query "a" ; search:limit "many" }', "whole number"),
        ('SERVICE <search:b> { [] search:query "{" }', "JSON that cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidParameter) as raised:
        search_in(pattern)
    assert reason in str(raised.value)


HIT = '[] search:query "a" ; search:hit [ search:entity ?s ]'


@pytest.mark.parametrize(
    ("inside", "engine", "entities"),
    [
        (
            "?s :p ?o FILTER (?o > 1)",
            "{search1} LATERAL { ?s <urn:p> ?o . } LATERAL { ?s <urn:q> ?z . } FILTER(?o > 1)",
            "?s <urn:p> ?o . FILTER(?o > 1)",
        ),
        (
            "?s :p/:q ?o",
            "{search1} LATERAL { ?s <urn:p>/<urn:q> ?o . } LATERAL { ?s <urn:q> ?z . }",
            "?s <urn:p>/<urn:q> ?o .",
        ),
        (
            "{ ?s :p 1 } UNION { ?s :p 2 } OPTIONAL { ?s :r ?r }",
            None,
            None,
        ),
    ],
)
def test_a_pattern_in_the_braces_is_joined_and_restricts(
    inside: str, engine: str | None, entities: str | None
) -> None:
    query = parse_query(f"{PREFIXES} SELECT * {{ SERVICE <search:b> {{ {HIT} . {inside} }} ?s :q ?z }}")
    (search,) = searches_of(query)
    assert search.within is not None
    made = engine_text(query).with_tables({"search1": "{search1}"}).text
    of_pattern = entities_text(abstract_query(query), search, None, 7)
    assert of_pattern.startswith("SELECT DISTINCT ?s WHERE { ")
    assert of_pattern.endswith("LIMIT 7")
    among = entities_text(abstract_query(query), search, "{candidates}", 7)
    assert among.count("{candidates}") == 1
    if engine is not None and entities is not None:
        assert " ".join(engine.split()) in " ".join(made.split())
        assert " ".join(entities.split()) in " ".join(of_pattern.split())
        assert "{candidates} LATERAL" in " ".join(among.split())


def test_a_restricted_search_within_a_graph_is_restricted_by_that_graph() -> None:
    query = parse_query(f"{PREFIXES} SELECT * {{ GRAPH :g {{ SERVICE <search:b> {{ {HIT} . ?s :p ?o }} }} }}")
    (search,) = searches_of(query)
    assert "GRAPH <urn:g> { ?s <urn:p> ?o . }" in entities_text(abstract_query(query), search, None, 7)
