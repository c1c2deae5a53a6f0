"""The plan that a text gets by its shape is the one that it gets in full: for random queries and those of the
W3C suites, with other constants in their places.
"""

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.config.limits import GateLimits
from graphdb.errors import GraphDBError
from graphdb.planning import gate
from graphdb.planning.text_shapes import cut_text, numbered_text
from graphdb.sparql.algebra import Algebra, Project
from graphdb.sparql.packing import packed, unpacked, with_literals
from graphdb.sparql.parser import parse_query
from graphdb.sparql.terms import Variable
from graphdb.sparql.translation import abstract_query, columns_of
from graphdb.sparql.tree_walk import renamed, rewritten
from graphdb.store.query_plans import PlansByShape, QueryPlan, plan_of
from graphdb.store.small_joins import SmallJoin
from tests.conformance.manifests import suite_root
from tests.property.test_algebra import texts
from tests.property.test_small_joins import queries as joins
from tests.support.sparql_texts import queries

LIMITS = GateLimits()
BASE = "http://host/sparql"
# What may stand in a place: usual constants, and those that a decision or an error may depend on.
OTHERS = {
    "<": [
        *(
            "<x:1>",
            "<x:2>",
            "<http://e/a>",
            "<relative>",
            "<#f>",
            "<>",
            "<//h/p>",
            "<x:%zz>",
            "<x:[>",
            "<1:2>",
        ),
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
        "<http://www.opengis.net/ont/geosparql#sfWithin>",
        "<http://www.opengis.net/def/function/geosparql/distance>",
        "<urn:graphdb:entailed:http://www.opengis.net/ont/geosparql#Feature>",
        "<http://www.w3.org/2001/XMLSchema#integer>",
        "<x:IRI>",
    ],
    '"': ['"a"', '""', '"it\'s"', '"<x:1>"', '"#"', '"ä\U0001f600"', '"IRI("', '"\t"', '"1"'],
    "'": ["'a'", "''", "'\"'", "'<x:1>'"],
    ":": ["x:a", "rdf:type", "ex:1", "unknown:a", "xsd:integer", "foaf:name-", "A:_"],
    "0": ["0", "1", "007", "42", "1000", "100000000000000000000"],
    "#": ["# other", "#"],
}


def kind(constant: str) -> str:
    return constant[0] if constant[0] in "<\"'#" else "0" if constant[0].isdigit() else ":"


def in_full(text: str, base_iri: str | None) -> QueryPlan:
    query = gate.read_query(text, base_iri, LIMITS)
    gate.check(query, LIMITS)
    return plan_of(query, LIMITS)


def shown(plan: QueryPlan) -> dict[str, Any]:
    """All that is decided. A base that no call reads is of no meaning, whether or not it is written."""
    join = plan.join
    return {
        "text": plan.text,
        "form": plan.like.form,
        "is_cheap": plan.is_cheap,
        "is_repeatable": plan.is_repeatable,
        "engine_text": re.sub("^BASE <.*>\n", "", plan.engine_text or ""),
        "join": None if join is None else shown_join(join),
    }


def shown_join(join: SmallJoin) -> object:
    return (
        join._parts,
        join.columns,
        join._length,
        join._optional,
        join._optional_apart,
        join._computed,
        join.patterns,
        join._lookups,
    )


def filled(plans: PlansByShape, text: str, rand: random.Random) -> int:
    """Ask for texts with other constants; how many got a plan by their shape, each the right one."""
    cut = cut_text(text)
    if cut is None:
        return 0
    pieces = cut.form.split("\0")[1:]
    count = 0
    for _ in range(12):
        constants = [
            one if rand.random() < 0.5 else rand.choice([*OTHERS[kind(one)], *cut.constants])
            for one in cut.constants
        ]
        other = "".join(piece + constant for piece, constant in zip(pieces, [*constants, ""], strict=True))
        found = plans.get(other, BASE)
        if found is not None:
            count += 1
            assert shown(found) == shown(in_full(other, BASE))
            assert found.query == parse_query(other, BASE)
    return count


def check(text: str, rand: random.Random) -> int:
    plans = PlansByShape(in_full)
    try:
        plan = in_full(text, BASE)
    except GraphDBError:
        return 0
    for _ in range(2):
        plans.note(plan)
    return filled(plans, text, rand)


def check_names(text: str, rand: random.Random) -> bool:
    """Whether a text can be cut at its variables and literals; then another one, with other names and with
    other literals where they are constants, has the same algebra but for these.
    """
    numbered = numbered_text(text)
    try:
        first = parse_query(text, BASE)
    except GraphDBError:
        return False
    if numbered is None:
        return False
    places = numbered.places(first)
    names = list(numbered.names)
    others = [f"{name}_" for name in names] if rand.random() < 0.5 else rand.sample(names, len(names))
    words = iter(numbered.literals)
    values = list[str]()

    def written(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f"?{others[int(found[1])]}"
        place, (span, value) = len(values), next(words)
        is_string = text[span.start] in "\"'"
        if place in places:
            value = rand.choice(["", "a", "it's", "#?a", "7", "ä"] if is_string else ["0", "007", "12"])
        values.append(value)
        quote = "'" if '"' in value else '"'
        return f"{quote}{value}{quote}" if is_string else value

    other = re.sub("\0(?:([0-9]+)\0|[si])", written, numbered.form)
    again = numbered_text(other)
    assert again is not None
    assert (again.form, list(again.names)) == (numbered.form, others)
    assert again.with_fixed(places) == numbered.with_fixed(places)
    own = dict(zip(names, others, strict=True))
    second = parse_query(other, BASE)
    assert columns_of(second) == [own.get(name, name) for name in columns_of(first)]
    terms = {Variable(name): Variable(own_name) for name, own_name in own.items()}
    constants = {numbered.literals[place][0]: again.literals[place][1] for place in places}
    one, another = with_literals(abstract_query(first), constants), abstract_query(second)
    assert in_order(renamed(one.pattern, terms)) == in_order(another.pattern)
    assert (one.dataset, one.base, one.form) == (another.dataset, another.base, another.form)
    assert tuple(renamed(each, terms) for each in one.template) == another.template
    assert unpacked(packed(first)) == abstract_query(first)
    return True


def in_order(pattern: Algebra) -> Algebra:
    """With the columns of each SELECT in one order, which has no meaning in a sub-select."""

    def change(node: Any) -> Any:
        if not isinstance(node, Project):
            return node
        return replace(node, variables=tuple(sorted(node.variables, key=lambda each: each.name)))

    found: Algebra = rewritten(pattern, change)
    return found


def suite_texts() -> list[Path]:
    root = suite_root()
    return [] if root is None else sorted(root.rglob("*.rq"))


@pytest.mark.skipif(suite_root() is None, reason="the W3C suites are not at ../shared/suites")
def test_the_queries_of_the_suites() -> None:
    found = suite_texts()
    assert len(found) > 500
    rand, by_shape, by_names = random.Random(1), 0, 0
    for path in found:
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        by_shape += check(text, rand) > 0
        by_names += check_names(text, rand)
    assert by_shape > 20
    assert by_names > 400


@given(texts | queries | joins, st.randoms(use_true_random=False))
def test_random_queries(text: str, rand: random.Random) -> None:
    check(text, rand)
    check_names(text, rand)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("ASK { ?a ?b $a }", "ASK { 0 1 0 }"),
        ("ASK { ?a <?b> '?c' FILTER(?b = ?c) } # ?a", "ASK { 0 <?b> s FILTER(1 = 2) } # ?a"),
        ("ASK { ?a ?b 12, 1.5, -1, '12'^^<x:1> } LIMIT 3", "ASK { 0 1 i, 1.5, -1, s^^<x:1> } LIMIT 3"),
        ("ASK FILTER(?a<?b&&?c>?d)", "ASK FILTER(0<?b&&?c>1)"),  # to the lexer too the middle is an IRI
        ("ASK { ?\u00e4 ?a ?a\u00e9 }", "ASK { ?\u00e4 0 ?a\u00e9 }"),
        ('ASK { ?a ?b """?c""" }', None),
        ("ASK { ?a ?b '\\'' }", None),
    ],
)
def test_numbers_in_place_of_names(text: str, form: str | None) -> None:
    found = numbered_text(text)
    assert (None if found is None else found.form.replace("\0", "")) == form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT * { <x:1> ?p ?o }", "SELECT * { <x:2> ?p ?o }"),
        ("SELECT * { <x:1> <x:p> ?a . ?a <x:q> 'b' }", "SELECT * { <x:2> <x:p> ?a . ?a <x:q> 'c\"' }"),
        ("PREFIX x: <x:> SELECT * { x:a ?p ?o }", "PREFIX x: <x:> SELECT * { x:b ?p ?o }"),
        ("ASK { ?a <x:id> 1 } # first", "ASK { ?a <x:id> 2 } # first"),
        ("ASK { ?a <x:p> (1 <x:1>) }", "ASK { ?a <x:p> (2 <x:2>) }"),
    ],
)
def test_other_constants_have_the_same_shape(one: str, other: str) -> None:
    plans = PlansByShape(in_full)
    assert plans.get(one, None) is None
    plans.note(in_full(one, None))
    assert plans.get(other, None) is None  # not at the first
    plans.note(in_full(one, None))
    found = plans.get(other, None)
    assert found is not None
    assert shown(found) == shown(in_full(other, None))
    assert plans.get(other, "http://another/base") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT * { ?s <x:1> <x:2> }", "SELECT * { ?s <x:3> <x:2> }"),
        ("SELECT * { ?s ?p <x:2> FILTER(?s = <x:1>) }", "SELECT * { ?s ?p <x:2> FILTER(?s = <x:3>) }"),
        ("SELECT * { <x:1> ?p ?o } LIMIT 10", "SELECT * { <x:1> ?p ?o } LIMIT 20"),
        ("SELECT * { GRAPH <x:1> { <x:1> ?p ?o } }", "SELECT * { GRAPH <x:2> { <x:1> ?p ?o } }"),
        ("SELECT * { <x:1> <x:p>/<x:q> ?o }", "SELECT * { <x:2> <x:p>/<x:q> ?o }"),
        ("SELECT * { <x:1> ?p ?o }", "SELECT * { <1> ?p ?o }"),
        ("SELECT * { ?s a <x:1> }", "SELECT * { ?s a <urn:graphdb:entailed:x:1> }"),
        ("PREFIX x: <x:> ASK { x:a ?p ?o }", "PREFIX x: <y:> ASK { x:a ?p ?o }"),
        ("PREFIX x: <x:> ASK { x:a ?p ?o }", "PREFIX x: <x:> ASK { y:a ?p ?o }"),
        ("ASK { ?s ?p 'a' }", "ASK { ?s ?p <a> }"),
        ("ASK { ?s ?p '1'^^<x:1> }", "ASK { ?s ?p '1'^^<x:2> }"),
        ("ASK { <x:a> ?p ?o }", "ASK { <x:\\u0061> ?p ?o }"),
    ],
)
def test_other_places_decide(one: str, other: str) -> None:
    plans = PlansByShape(in_full)
    for _ in range(2):
        plans.note(in_full(one, BASE))
    assert plans.get(other, BASE) is None


def test_each_shape_has_prefixes_of_its_own() -> None:
    """Texts of one form share the places of the slots, but not what their prefixes stand for."""
    plans = PlansByShape(in_full)
    text = "PREFIX a: <x:a:> PREFIX b: <{b}> ASK {{ {s} ?p ?o }}"
    for b in ("x:one:", "x:two:"):
        for _ in range(2):
            plans.note(in_full(text.format(b=b, s="a:1"), BASE))
    other = text.format(b="x:two:", s="b:1")
    found = plans.get(other, BASE)
    assert found is not None
    assert shown(found) == shown(in_full(other, BASE))
