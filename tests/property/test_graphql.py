"""GraphQL's answers against a twin that walks triples: random data, selections, filters, orders and pages."""

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from graphdb.graphql.failures import Limits
from tests.support.graphql_graph import GraphQLGraph

ONTOLOGY = """
:Person a owl:Class . :Employee a owl:Class ; rdfs:subClassOf :Person . :Company a owl:Class .
:name a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:string .
:age a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:integer .
:size a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:double .
:born a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:dateTime .
:nick rdfs:domain :Person ; rdfs:range xsd:string .
:knows rdfs:domain :Person ; rdfs:range :Person .
:salary a owl:FunctionalProperty ; rdfs:domain :Employee ; rdfs:range xsd:integer .
:worksFor a owl:FunctionalProperty ; rdfs:domain :Employee ; rdfs:range :Company .
:label rdfs:domain :Company ; rdfs:range rdf:langString .
[] a sh:NodeShape ; sh:targetClass :Company ;
    sh:property [ sh:path [ sh:inversePath :worksFor ] ; sh:class :Employee ; sh:name "staff" ] .
"""
GRAPH = GraphQLGraph(ONTOLOGY, limits=Limits(max_page_size=5, default_page_size=3))
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SCALARS = {
    "name": "String",
    "age": "Int",
    "size": "Float",
    "born": "DateTime",
    "nick": "String",
    "salary": "Int",
}
LISTS = {"nick", "label"}
REFERENCES = {"knows": "Person", "worksFor": "Company", "staff": "Employee"}
FIELDS = {"Person": ["name", "age", "size", "born", "nick", "knows"], "Company": ["label", "staff"]}
FIELDS["Employee"] = [*FIELDS["Person"], "salary", "worksFor"]
CLASSES = {"Person": {"Person", "Employee"}, "Employee": {"Employee"}, "Company": {"Company"}}
COLLECTIONS = {"Person": "persons", "Employee": "employees", "Company": "companies"}


def iri(name: str) -> NamedNode:
    return NamedNode(f"http://e/{name}")


TEXTS = ["", "a", "ab", "B", "é", 'q"\\\n\t', "😀"]
TIMES = ["2001-02-03T04:05:06", "2001-02-03T04:05:06Z", "2001-02-03T06:05:06+02:00", "1999-12-31T23:59:59.5Z"]
nodes = st.sampled_from([*(iri(f"n{number}") for number in range(7)), BlankNode("b1"), BlankNode("b2")])
literals = {
    "name": st.sampled_from(TEXTS).map(Literal),
    "nick": st.sampled_from(TEXTS).map(Literal),
    "age": st.integers(-2, 5).map(Literal),
    "salary": st.integers(-2, 5).map(Literal),
    "size": st.one_of(st.sampled_from([-1.5, 0.0, 2.0, 1e30]).map(Literal), st.integers(0, 2).map(Literal)),
    "born": st.sampled_from(TIMES).map(lambda text: Literal(text, datatype=NamedNode(f"{XSD}dateTime"))),
    "label": st.builds(
        lambda text, tag: Literal(text, language=tag) if tag else Literal(text),
        st.sampled_from(TEXTS),
        st.sampled_from(["", "en", "de", "en-gb"]),
    ),
}


@st.composite
def quads(draw: Callable[..., Any]) -> Quad:
    subject = draw(nodes)
    kind = draw(st.sampled_from(["type", "type", "knows", "knows", "worksFor", *literals]))
    if kind == "type":
        return Quad(subject, TYPE, iri(draw(st.sampled_from(["Person", "Employee", "Company"]))))
    if kind in REFERENCES:
        return Quad(subject, iri(kind), draw(st.one_of(nodes, nodes, nodes, st.just(Literal("no node")))))
    odd = (
        st.sampled_from([Literal("odd"), Literal(10**10)])
        if kind not in ("label", "name")
        else literals["name"]
    )
    return Quad(subject, iri(kind), draw(st.one_of(*[literals[kind]] * 8, odd)))


def value_of(scalar: str) -> st.SearchStrategy[Any]:
    return {
        "String": st.sampled_from(TEXTS),
        "Int": st.integers(-2, 5),
        "Float": st.sampled_from([-1.5, 0.0, 1.0, 2.0]),
        "DateTime": st.sampled_from(TIMES),
        "ID": st.sampled_from([f"http://e/n{number}" for number in range(7)]),
    }[scalar]


@st.composite
def operators(draw: Callable[..., Any], scalar: str) -> dict[str, Any]:
    names = ["eq", "ne", "in"]
    names += ["gt", "gte", "lt", "lte"] if scalar in ("Int", "Float", "DateTime") else []
    names += ["contains", "startsWith"] if scalar == "String" else []
    chosen = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    one = value_of(scalar)
    nullable = st.one_of(one, one, one, st.none()) if scalar != "ID" else one
    return {
        name: draw(st.lists(one, max_size=3) if name == "in" else nullable if name in ("eq", "ne") else one)
        for name in chosen
    }


@st.composite
def filters(draw: Callable[..., Any], kind: str, depth: int = 2) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in draw(
        st.lists(st.sampled_from(["id", *FIELDS[kind], "and", "or", "not"]), max_size=2, unique=True)
    ):
        if name in ("and", "or"):
            made[name] = draw(st.lists(filters(kind, depth - 1), max_size=2)) if depth else []
        elif name == "not":
            made[name] = draw(filters(kind, depth - 1)) if depth else {}
        elif name in REFERENCES:
            made[name] = draw(filters(REFERENCES[name], depth - 1)) if depth else {}
        else:
            made[name] = draw(operators("ID" if name == "id" else SCALARS.get(name, "String")))
    return made


@st.composite
def orders(draw: Callable[..., Any], kind: str) -> list[dict[str, str]]:
    names = ["id", *(one for one in FIELDS[kind] if one not in REFERENCES)]
    chosen = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    return [{"field": one, "direction": draw(st.sampled_from(["ASC", "DESC"]))} for one in chosen]


@st.composite
def selections(draw: Callable[..., Any], kind: str, depth: int = 2) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(["id", *FIELDS[kind]]), min_size=1, max_size=3))
    made = []
    for number, name in enumerate(names):
        one: dict[str, Any] = {"key": f"{name}{number}", "name": name, "arguments": {}}
        if name in REFERENCES:
            one["below"] = (
                draw(selections(REFERENCES[name], depth - 1))
                if depth
                else [{"key": "id", "name": "id", "arguments": {}}]
            )
            one["arguments"]["filter"] = draw(st.one_of(st.none(), filters(REFERENCES[name], 1)))
            if name != "worksFor":
                one["arguments"]["orderBy"] = draw(orders(REFERENCES[name]))
        if name in LISTS or name in ("knows", "staff"):
            one["arguments"]["first"] = draw(st.one_of(st.none(), st.integers(0, 3)))
        if name == "label":
            one["arguments"]["lang"] = draw(st.sampled_from([None, "en", "de,en", "*"]))
        made.append(one)
    return made


class Text:
    """A query whose values are all variables."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.types: dict[str, str] = {}

    def arguments(self, given: dict[str, Any], kind: str | None) -> str:
        types = {"first": "Int", "last": "Int", "after": "String", "before": "String", "lang": "String"}
        types |= {"orderBy": "[OrderBy!]", "filter": f"{kind}Filter"}
        made = []
        for name, value in given.items():
            if value is not None:
                variable = f"v{len(self.variables)}"
                self.variables[variable], self.types[variable] = value, types[name]
                made.append(f"{name}: ${variable}")
        return f"({', '.join(made)})" if made else ""

    def selection(self, made: list[dict[str, Any]]) -> str:
        parts = []
        for one in made:
            arguments = self.arguments(one["arguments"], REFERENCES.get(one["name"]))
            below = self.selection(one["below"]) if "below" in one else ""
            parts.append(f"{one['key']}: {one['name']}{arguments} {below}")
        return f"{{ {' '.join(parts)} }}"

    def of(self, kind: str, arguments: dict[str, Any], made: list[dict[str, Any]]) -> str:
        page = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount"
        called = self.arguments(arguments, kind)
        body = f"c: {COLLECTIONS[kind]}{called} {{ edges {{ cursor node {self.selection(made)} }} {page} }}"
        declared = ", ".join(f"${name}: {of}" for name, of in self.types.items())
        return f"query{f'({declared})' if declared else ''} {{ {body} }}"


class Twin:
    """The same questions, answered by walking the triples."""

    def __init__(self, store: Store) -> None:
        self.triples = [(one.subject, one.predicate, one.object) for one in store]

    def objects(self, node: Any, name: str) -> list[Any]:
        if name == "staff":
            return [s for s, p, o in self.triples if p == iri("worksFor") and o == node]
        found = [o for s, p, o in self.triples if s == node and p == iri(name)]
        return [one for one in found if not isinstance(one, Literal)] if name in REFERENCES else found

    def collection(self, kind: str, given: dict[str, Any]) -> list[Any]:
        of = {s for s, p, o in self.triples if p == TYPE and o in {iri(one) for one in CLASSES[kind]}}
        found = [
            one for one in of if isinstance(one, NamedNode) and self.meets(one, given.get("filter") or {})
        ]
        return self.ordered(found, given.get("orderBy") or [])

    def ordered(self, found: list[Any], by: list[dict[str, str]]) -> list[Any]:
        keys = [*by, {"field": "id", "direction": "ASC"}]
        for one in reversed(keys[: [key["field"] for key in keys].index("id") + 1]):
            descending = one["direction"] == "DESC"
            found = sorted(
                found, key=lambda node: self.key(node, one["field"], descending), reverse=descending
            )
        return found

    def key(self, node: Any, name: str, largest: bool) -> Any:
        if name == "id":
            return identity(node)
        found = [key for one in self.objects(node, name) if (key := plain(one, name)) is not None]
        return (1, (max if largest else min)(found)) if found else (0,)

    def meets(self, node: Any, condition: dict[str, Any]) -> bool:
        return all(self.member(node, name, value) for name, value in condition.items())

    def member(self, node: Any, name: str, value: Any) -> bool:
        if name == "and":
            return all(self.meets(node, one) for one in value)
        if name == "or":
            return any(self.meets(node, one) for one in value)
        if name == "not":
            return not self.meets(node, value)
        if name == "id":
            return all(compare(one, identity(node), operand) for one, operand in value.items())
        if name in REFERENCES:
            return any(self.meets(one, value) for one in self.objects(node, name))
        there = self.objects(node, name)
        if "eq" in value and value["eq"] is None and there:
            return False
        if "ne" in value and value["ne"] is None and not there:
            return False
        rest = {one: operand for one, operand in value.items() if operand is not None}
        if not rest and value:
            return True
        return any(all(self.holds(one, name, *pair) for pair in rest.items()) for one in there)

    def holds(self, literal: Literal, name: str, by: str, operand: Any) -> bool:
        value = plain(literal, name) if name != "label" else literal.value
        if SCALARS.get(name) == "DateTime":
            operand = [moment(one) for one in operand] if by == "in" else moment(operand)
        if name in ("name", "nick") and literal.datatype.value != f"{XSD}string":
            return by in ("contains", "startsWith") and compare(by, literal.value, operand)
        return value is not None and compare(by, value, operand)

    def node(self, node: Any, made: list[dict[str, Any]]) -> dict[str, Any]:
        return {one["key"]: self.field(node, one) for one in made}

    def field(self, node: Any, one: dict[str, Any]) -> Any:
        name, given = one["name"], one["arguments"]
        if name == "id":
            return identity(node)
        if name in REFERENCES:
            found = [it for it in self.objects(node, name) if self.meets(it, given.get("filter") or {})]
            shown = [self.node(it, one["below"]) for it in self.ordered(found, given.get("orderBy") or [])]
            return (shown[0] if shown else None) if name == "worksFor" else shown[: given["first"]]
        literals = self.objects(node, name)
        if name == "label":
            literals = in_languages(literals, given["lang"])
        if name in LISTS:
            ordered = sorted(literals, key=lambda it: (it.value, rank(it)))
            return [it.value for it in ordered[: given["first"]]]
        if not literals:
            return None
        return shown_as(min(literals, key=lambda it: single_rank(it, name)), SCALARS[name])


def identity(node: Any) -> str:
    return str(node) if isinstance(node, BlankNode) else str(node.value)


def moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def plain(literal: Literal, name: str) -> Any:
    """What Python compares in place of a literal; None where it is not of the field's type."""
    datatype, scalar = literal.datatype.value.removeprefix(XSD), SCALARS.get(name, "String")
    if scalar == "String":
        return literal.value
    if scalar == "DateTime":
        return moment(literal.value) if datatype == "dateTime" else None
    return float(literal.value) if datatype in ("integer", "double", "decimal") else None


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda value, operand: value in operand,
    "contains": lambda value, operand: operand in value,
    "startsWith": lambda value, operand: value.startswith(operand),
}


def compare(name: str, value: Any, operand: Any) -> bool:
    return bool(COMPARISONS[name](value, operand))


def rank(literal: Literal) -> tuple[bool, bool, str]:
    tag = literal.language or ""
    return (tag != "", tag.split("-")[0] != "en", tag)


def single_rank(literal: Literal, name: str) -> tuple[Any, ...]:
    key = plain(literal, name)
    return (1, literal.value) if key is None else (0, key)


def in_languages(found: list[Literal], wanted: str | None) -> list[Literal]:
    for one in wanted.split(",") if wanted else ():
        fitting = [it for it in found if one == "*" or re.fullmatch(rf"{one}(-.*)?", it.language or "")]
        if fitting:
            return fitting
    return [] if wanted else found


def shown_as(literal: Literal, scalar: str) -> Any:
    datatype = literal.datatype.value.removeprefix(XSD)
    if scalar == "String":
        return literal.value
    if scalar == "DateTime":
        return literal.value if datatype == "dateTime" else None
    if datatype not in ("integer", "double"):
        return None
    number = float(literal.value)
    return None if scalar == "Int" and abs(number) > 2**31 else number


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(quads(), min_size=15, max_size=60))
def test_collections_answer_as_the_twin_does(data: st.DataObject, given_quads: list[Quad]) -> None:
    GRAPH.store.clear()
    GRAPH.store.extend(given_quads)
    kind = data.draw(st.sampled_from(["Person", "Employee", "Company"]))
    members = data.draw(
        st.lists(st.integers(0, 6), min_size=3, unique=True)
    )  # else most collections are empty
    GRAPH.store.extend(Quad(iri(f"n{number}"), TYPE, iri(kind)) for number in members)
    arguments: dict[str, Any] = {
        "filter": data.draw(st.one_of(st.just({}), filters(kind))),
        "orderBy": data.draw(orders(kind)),
    }
    size = data.draw(st.integers(1, 3))
    arguments[data.draw(st.sampled_from(["first", "last"]))] = size
    selection = data.draw(selections(kind))
    twin = Twin(GRAPH.store)
    expected = twin.collection(kind, arguments)
    seen: list[Any] = []
    total = len(expected)
    forward = "first" in arguments
    while True:
        text = Text()
        found = GRAPH.ask(text.of(kind, arguments, selection), text.variables)
        assert found["data"] is not None, found
        shown = found["data"]["c"]
        assert shown["totalCount"] == total
        page = expected[:size] if forward else expected[-size:]
        expected = expected[size:] if forward else expected[:-size]
        assert [one["node"] for one in shown["edges"]] == [twin.node(one, selection) for one in page]
        info = shown["pageInfo"]
        ahead, behind = (info["hasNextPage"], info["hasPreviousPage"])[:: 1 if forward else -1]
        assert (ahead, behind) == (bool(expected), bool(seen))
        seen += page
        if not expected:
            break
        arguments["after" if forward else "before"] = info["endCursor" if forward else "startCursor"]
    assert len(seen) == total


@st.composite
def crowds(draw: Callable[..., Any]) -> list[Quad]:
    """Persons of whom each has none, one or several values of what they may stand in order by."""
    made = []
    for number in range(draw(st.integers(2, 7))):
        made.append(Quad(iri(f"n{number}"), TYPE, iri("Person")))
        for name in ORDERED:
            values = draw(st.lists(literals[name], max_size=3))
            made += [Quad(iri(f"n{number}"), iri(name), one) for one in values]
    return made


ORDERED = ["age", "born", "nick"]


@settings(max_examples=80, deadline=None)
@given(
    crowds(),
    st.lists(st.tuples(st.sampled_from(ORDERED), st.sampled_from(["ASC", "DESC"])), min_size=1, max_size=2),
    st.sampled_from(["first", "last"]),
    st.integers(1, 2),
)
def test_pages_stand_in_order_whatever_is_missing_or_there_several_times(
    crowd: list[Quad], by: list[tuple[str, str]], end: str, size: int
) -> None:
    GRAPH.store.clear()
    GRAPH.store.extend(crowd)
    arguments: dict[str, Any] = {
        "orderBy": [{"field": name, "direction": way} for name, way in by],
        end: size,
    }
    expected = [identity(one) for one in Twin(GRAPH.store).collection("Person", arguments)]
    pages: list[list[str]] = []
    while True:
        text = Text()
        query = text.of("Person", arguments, [{"key": "id", "name": "id", "arguments": {}}])
        shown = GRAPH.data(query, text.variables)["c"]
        pages.append([one["node"]["id"] for one in shown["edges"]])
        info = shown["pageInfo"]
        if not info["hasNextPage" if end == "first" else "hasPreviousPage"]:
            break
        arguments["after" if end == "first" else "before"] = info[
            "endCursor" if end == "first" else "startCursor"
        ]
    found = [one for page in (pages if end == "first" else reversed(pages)) for one in page]
    assert found == expected
