"""Texts and the exact trees that they are read as. Spans do not count in comparisons but in the last test."""

import pytest

from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.patterns import (
    Aggregate,
    AlternativePath,
    And,
    Arithmetic,
    Bind,
    BuiltInCall,
    Comparison,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    GroupCondition,
    GroupGraphPattern,
    In,
    InlineData,
    InversePath,
    MinusPattern,
    NegatedPropertySet,
    Not,
    OptionalPattern,
    Or,
    OrderCondition,
    Path,
    PatternElement,
    Projection,
    RepeatedPath,
    SelectClause,
    SequencePath,
    ServicePattern,
    Signed,
    SolutionModifiers,
    SubSelect,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
)
from graphdb.sparql.syntax import (
    AddGraph,
    ClearGraph,
    CopyGraph,
    CreateGraph,
    DatasetClause,
    DeleteData,
    DeleteWhere,
    DropGraph,
    GraphTarget,
    InsertData,
    Load,
    Modify,
    MoveGraph,
    Operation,
    Prologue,
    QuadPattern,
)
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, Span, TripleTerm, Variable

HERE = Span(0, 0)
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PROLOGUE = "PREFIX : <http://e/> "


def iri(name: str) -> Iri:
    return Iri(name if "//" in name else "http://e/" + name, HERE)


def var(name: str) -> Variable:
    return Variable(name, HERE)


def blank(label: str) -> BlankNodeLabel:
    return BlankNodeLabel(label, HERE)


def literal(value: str, datatype: str = XSD + "string") -> RdfLiteral:
    return RdfLiteral(value, datatype, None, None, HERE)


def integer(value: int) -> RdfLiteral:
    return literal(str(value), XSD + "integer")


def triple(subject: PatternTerm, predicate: PatternTerm | Path, object_: PatternTerm) -> TriplePattern:
    return TriplePattern(subject, predicate, object_, HERE)


def term(subject: PatternTerm, predicate: PatternTerm, object_: PatternTerm) -> TripleTerm:
    return TripleTerm(subject, predicate, object_, HERE)


def block(*triples: TriplePattern) -> TriplesBlock:
    return TriplesBlock(triples, HERE)


def group(*elements: PatternElement) -> GroupGraphPattern:
    return GroupGraphPattern(elements, frozenset(), HERE)


S, P, OBJ, A, B, C = var("s"), var("p"), var("o"), var("a"), var("b"), var("c")
SPO = block(triple(S, P, OBJ))
TYPE, FIRST, REST, NIL, REIFIES = (
    Iri(RDF + name, HERE) for name in ("type", "first", "rest", "nil", "reifies")
)


def where(pattern: str) -> GroupGraphPattern:
    found = parse_query(f"{PROLOGUE} ASK {{ {pattern} }}").where
    assert found is not None
    return found


PATTERNS: list[tuple[str, tuple[PatternElement, ...]]] = [
    ("", ()),
    ("?s ?p ?o", (SPO,)),
    ("?s ?p ?o . ?a ?b ?c .", (block(triple(S, P, OBJ), triple(A, B, C)),)),
    (
        "?s :p ?a, ?b ; a :T ;;",
        (block(triple(S, iri("p"), A), triple(S, iri("p"), B), triple(S, TYPE, iri("T"))),),
    ),
    ("?s ?p ?o OPTIONAL { ?s ?p ?o }", (SPO, OptionalPattern(group(SPO), HERE))),
    ("{ ?s ?p ?o }", (group(SPO),)),
    ("{} UNION { ?s ?p ?o } UNION {}", (UnionPattern((group(), group(SPO), group()), HERE),)),
    ("?s ?p ?o MINUS { ?s ?p ?o }", (SPO, MinusPattern(group(SPO), HERE))),
    ("GRAPH ?a { ?s ?p ?o }", (GraphPattern(A, group(SPO), HERE),)),
    ("SERVICE SILENT :h { ?s ?p ?o }", (ServicePattern(iri("h"), True, group(SPO), HERE),)),
    ("?s ?p ?o FILTER(?s) ?a ?b ?c", (SPO, Filter(S, HERE), block(triple(A, B, C)))),
    ("BIND(1 AS ?a)", (Bind(integer(1), A, HERE),)),
    ("VALUES ?a { 1 UNDEF :x }", (InlineData((A,), ((integer(1),), (None,), (iri("x"),)), HERE),)),
    ("VALUES (?a ?b) { (1 UNDEF) }", (InlineData((A, B), ((integer(1), None),), HERE),)),
    ("VALUES () { () () }", (InlineData((), ((), ()), HERE),)),
    ("?s :p 'a'@en", (block(triple(S, iri("p"), RdfLiteral("a", RDF + "langString", "en", None, HERE))),)),
    (
        "?s :p 'a'@ar--rtl",
        (block(triple(S, iri("p"), RdfLiteral("a", RDF + "dirLangString", "ar", "rtl", HERE))),),
    ),
    ("?s :p 'a'^^:t", (block(triple(S, iri("p"), literal("a", "http://e/t"))),)),
    ("?s :p 1.0", (block(triple(S, iri("p"), literal("1.0", XSD + "decimal"))),)),
    ("?s :p -1E3", (block(triple(S, iri("p"), literal("-1E3", XSD + "double"))),)),
    ("?s :p TRUE", (block(triple(S, iri("p"), literal("true", XSD + "boolean"))),)),
    (r"?s :p 'a\t\u00e9\\u0041'", (block(triple(S, iri("p"), literal("a\té\\u0041"))),)),
    ("?s :p '''a'b''\n'''", (block(triple(S, iri("p"), literal("a'b''\n"))),)),
    (r"?s :p\-q%2F ?o", (block(triple(S, iri("p-q%2F"), OBJ)),)),
    (r"?s <http://e/\u00E9> ?o", (block(triple(S, iri("é"), OBJ)),)),
    ("_:x :p []", (block(triple(blank("x"), iri("p"), blank("anon1"))),)),
    ("[ :p ?o ] :q ?a", (block(triple(blank("anon1"), iri("p"), OBJ), triple(blank("anon1"), iri("q"), A)),)),
    ("?s :p [ :q ?o ]", (block(triple(S, iri("p"), blank("anon1")), triple(blank("anon1"), iri("q"), OBJ)),)),
    ("?s :p ()", (block(triple(S, iri("p"), NIL)),)),
    (
        "(?a ?b) :p ?o",
        (
            block(
                triple(blank("anon1"), FIRST, A),
                triple(blank("anon1"), REST, blank("anon2")),
                triple(blank("anon2"), FIRST, B),
                triple(blank("anon2"), REST, NIL),
                triple(blank("anon1"), iri("p"), OBJ),
            ),
        ),
    ),
    ("?s ?p <<( ?a :q ?b )>>", (block(triple(S, P, term(A, iri("q"), B))),)),
    (
        "<< ?s ?p ?o >> :q 1",
        (
            block(
                triple(blank("anon1"), REIFIES, term(S, P, OBJ)), triple(blank("anon1"), iri("q"), integer(1))
            ),
        ),
    ),
    ("<< ?s ?p ?o ~ ?a >>", (block(triple(A, REIFIES, term(S, P, OBJ))),)),
    ("?s ?p ?o ~ :r", (block(triple(S, P, OBJ), triple(iri("r"), REIFIES, term(S, P, OBJ))),)),
    (
        "?s ?p ?o ~ :r {| :q 1 |} {| :q 2 |}",
        (
            block(
                triple(S, P, OBJ),
                triple(iri("r"), REIFIES, term(S, P, OBJ)),
                triple(blank("anon1"), REIFIES, term(S, P, OBJ)),
                triple(iri("r"), iri("q"), integer(1)),
                triple(blank("anon1"), iri("q"), integer(2)),
            ),
        ),
    ),
    (
        "{ SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(?s) LIMIT 1 VALUES ?s { 1 } }",
        (
            group(
                SubSelect(
                    SelectClause(
                        (
                            Projection(S, None, HERE),
                            Projection(var("n"), Aggregate("COUNT", None, False, None, HERE), HERE),
                        ),
                        False,
                        False,
                        HERE,
                    ),
                    group(SPO),
                    SolutionModifiers((GroupCondition(S, None, HERE),), (S,), (), 1, None),
                    InlineData((S,), ((integer(1),),), HERE),
                    frozenset(),
                    HERE,
                )
            ),
        ),
    ),
]


@pytest.mark.parametrize(("pattern", "elements"), PATTERNS)
def test_pattern(pattern: str, elements: tuple[PatternElement, ...]) -> None:
    assert where(pattern).elements == elements


PATHS: list[tuple[str, Path]] = [
    (":p", iri("p")),
    ("a", TYPE),
    ("^:p", InversePath(iri("p"), HERE)),
    (":p/:q/^:r", SequencePath((iri("p"), iri("q"), InversePath(iri("r"), HERE)), HERE)),
    (":p|:q/:r", AlternativePath((iri("p"), SequencePath((iri("q"), iri("r")), HERE)), HERE)),
    (":p*", RepeatedPath(iri("p"), "*", HERE)),
    ("^:p+", InversePath(RepeatedPath(iri("p"), "+", HERE), HERE)),
    ("(:p|:q)?", RepeatedPath(AlternativePath((iri("p"), iri("q")), HERE), "?", HERE)),
    ("(:p/:q)/:r", SequencePath((SequencePath((iri("p"), iri("q")), HERE), iri("r")), HERE)),
    ("!:p", NegatedPropertySet((iri("p"),), HERE)),
    ("!(:p|^a)", NegatedPropertySet((iri("p"), InversePath(TYPE, HERE)), HERE)),
    ("!()", NegatedPropertySet((), HERE)),
]


@pytest.mark.parametrize(("path", "tree"), PATHS)
def test_path(path: str, tree: Path) -> None:
    assert where(f"?s {path} ?o").elements == (block(triple(S, tree, OBJ)),)


def call(name: str, *arguments: Expression) -> BuiltInCall:
    return BuiltInCall(name, arguments, HERE)


EXPRESSIONS: list[tuple[str, Expression]] = [
    ("?a", A),
    ("(?a)", A),
    (":f", iri("f")),
    ("?a || ?b || ?c", Or((A, B, C), HERE)),
    ("?a || ?b && ?c", Or((A, And((B, C), HERE)), HERE)),
    ("(?a || ?b) && ?c", And((Or((A, B), HERE), C), HERE)),
    ("?a = ?b && ?a < ?c", And((Comparison("=", A, B, HERE), Comparison("<", A, C, HERE)), HERE)),
    ("?a IN (1, ?b)", In(A, (integer(1), B), False, HERE)),
    ("?a NOT IN ()", In(A, (), True, HERE)),
    ("?a + ?b - ?c", Arithmetic(A, (("+", B), ("-", C)), HERE)),
    ("?a + ?b * ?c", Arithmetic(A, (("+", Arithmetic(B, (("*", C),), HERE)),), HERE)),
    ("?a -1", Arithmetic(A, (("+", integer(-1)),), HERE)),
    ("?a -1 * ?b", Arithmetic(A, (("+", Arithmetic(integer(-1), (("*", B),), HERE)),), HERE)),
    ("-?a", Signed("-", A, HERE)),
    ("!?a", Not(A, HERE)),
    ("!!?a", Not(Not(A, HERE), HERE)),
    (":f()", FunctionCall(iri("f"), (), False, HERE)),
    (":f(DISTINCT ?a, 1)", FunctionCall(iri("f"), (A, integer(1)), True, HERE)),
    ("NOW()", call("NOW")),
    ("str(?a)", call("STR", A)),
    ("bound(?a)", call("BOUND", A)),
    ("BNODE()", call("BNODE")),
    ("BNODE(?a)", call("BNODE", A)),
    ("CONCAT()", call("CONCAT")),
    ("COALESCE(?a, ?b, ?c)", call("COALESCE", A, B, C)),
    ("IF(?a, ?b, ?c)", call("IF", A, B, C)),
    ("regex(?a, 'x')", call("REGEX", A, literal("x"))),
    ("SUBSTR(?a, 1, 2)", call("SUBSTR", A, integer(1), integer(2))),
    ("REPLACE(?a, 'x', 'y', 'i')", call("REPLACE", A, literal("x"), literal("y"), literal("i"))),
    ("isTRIPLE(TRIPLE(?a, ?b, ?c))", call("ISTRIPLE", call("TRIPLE", A, B, C))),
    ("SUBJECT(<<( ?a :p ?c )>>)", call("SUBJECT", term(A, iri("p"), C))),
    ("STRLANGDIR(?a, 'ar', 'rtl')", call("STRLANGDIR", A, literal("ar"), literal("rtl"))),
    ("hasLANGDIR(?a)", call("HASLANGDIR", A)),
    ("EXISTS { ?s ?p ?o }", Exists(group(SPO), False, HERE)),
    ("NOT EXISTS {}", Exists(group(), True, HERE)),
]


@pytest.mark.parametrize(("text", "tree"), EXPRESSIONS)
def test_expression(text: str, tree: Expression) -> None:
    assert where(f"FILTER({text})").elements == (Filter(tree, HERE),)


AGGREGATES = [
    ("COUNT(*)", Aggregate("COUNT", None, False, None, HERE)),
    ("count(DISTINCT *)", Aggregate("COUNT", None, True, None, HERE)),
    ("SUM(DISTINCT ?a)", Aggregate("SUM", A, True, None, HERE)),
    ("GROUP_CONCAT(?a)", Aggregate("GROUP_CONCAT", A, False, None, HERE)),
    ("GROUP_CONCAT(?a ; SEPARATOR = '|')", Aggregate("GROUP_CONCAT", A, False, "|", HERE)),
]


@pytest.mark.parametrize(("text", "tree"), AGGREGATES)
def test_aggregate(text: str, tree: Aggregate) -> None:
    select = parse_query(f"SELECT ({text} AS ?n) {{ ?a ?b ?c }}").select
    assert select is not None
    assert select.projections == (Projection(var("n"), tree, HERE),)


def test_select_with_all_clauses() -> None:
    query = parse_query(
        "BASE <http://b/x> PREFIX : <y#> SELECT DISTINCT ?s (1 AS ?n) FROM <g> FROM NAMED :h"
        " WHERE { ?s ?p ?o } ORDER BY ?s DESC(?o) OFFSET 2 LIMIT 3 VALUES ?q { 1 }"
    )
    assert query.form == "SELECT"
    assert query.prologue == Prologue("http://b/x", (("", "http://b/y#"),))
    assert query.select == SelectClause(
        (Projection(S, None, HERE), Projection(var("n"), integer(1), HERE)), True, False, HERE
    )
    assert query.dataset == (
        DatasetClause(iri("http://b/g"), False),
        DatasetClause(iri("http://b/y#h"), True),
    )
    assert query.where == group(SPO)
    order = (OrderCondition(S, False, HERE), OrderCondition(OBJ, True, HERE))
    assert query.modifiers == SolutionModifiers((), (), order, 3, 2)
    assert query.values == InlineData((var("q"),), ((integer(1),),), HERE)


def test_other_forms() -> None:
    star = parse_query("SELECT REDUCED * {}")
    assert star.select == SelectClause(None, False, True, HERE)
    construct = parse_query("CONSTRUCT { ?s ?p [] } WHERE { ?s ?p ?o }")
    assert (construct.form, construct.template) == ("CONSTRUCT", (triple(S, P, blank("anon1")),))
    short = parse_query("CONSTRUCT WHERE { ?s ?p ?o }")
    assert (short.template, short.where) == ((triple(S, P, OBJ),), group(SPO))
    describe = parse_query("DESCRIBE ?s <http://e/x>")
    assert (describe.form, describe.described, describe.where) == ("DESCRIBE", (S, iri("x")), None)
    everything = parse_query("DESCRIBE * { ?s ?p ?o }")
    assert (everything.described, everything.where) == (None, group(SPO))
    assert parse_query("ASK {}", "http://b/").base_iri == "http://b/"


def test_service_hosts_are_found_everywhere() -> None:
    text = (
        "ASK { SERVICE <a:1> { FILTER EXISTS { SERVICE ?v {} } }"
        " OPTIONAL { { SELECT * { SERVICE <a:2> {} } } } }"
    )
    assert [
        host.name if isinstance(host, Variable) else host.value for host in parse_query(text).service_hosts
    ] == [
        "v",
        "a:1",
        "a:2",
    ]
    update = parse_update("INSERT {} WHERE { SERVICE <a:1> {} } ; DELETE {} WHERE { SERVICE <a:2> {} }")
    assert update.service_hosts == (Iri("a:1", HERE), Iri("a:2", HERE))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("?a :p ?b FILTER(?c) MINUS { ?d :p 1 }", "a b"),
        ("OPTIONAL { ?a :p 1 } GRAPH ?g { ?b :p 1 } SERVICE ?h { }", "a b g h"),
        ("{ ?a :p 1 } UNION { ?b :p <<( ?c :p ?d )>> }", "a b c d"),
        ("BIND(?a AS ?b) VALUES (?c) { (1) }", "b c"),
        ("{ SELECT (?a AS ?b) { ?a :p 1 } }", "b"),
        ("{ SELECT * { ?a :p 1 } VALUES ?v { 1 } }", "a v"),
        ("FILTER EXISTS { ?a :p 1 }", ""),
    ],
)
def test_variables_in_scope(pattern: str, names: str) -> None:
    assert where(pattern).variables == frozenset(names.split())


def test_labels_made_up_differ_from_those_written() -> None:
    assert where("_:anon1 :p []").elements == (block(triple(blank("anon1"), iri("p"), blank("anon01"))),)


G, H = iri("g"), iri("h")
NOWHERE = Prologue(None, (("", "http://e/"),))
OPERATIONS: list[tuple[str, Operation]] = [
    ("LOAD :g", Load(G, None, False, HERE)),
    ("LOAD SILENT :g INTO GRAPH :h", Load(G, H, True, HERE)),
    ("CLEAR DEFAULT", ClearGraph(GraphTarget("default"), False, HERE)),
    ("CLEAR GRAPH :g", ClearGraph(GraphTarget("graph", G), False, HERE)),
    ("DROP SILENT NAMED", DropGraph(GraphTarget("named"), True, HERE)),
    ("CREATE GRAPH :g", CreateGraph(G, False, HERE)),
    ("ADD DEFAULT TO :g", AddGraph(GraphTarget("default"), GraphTarget("graph", G), False, HERE)),
    ("MOVE GRAPH :g TO :h", MoveGraph(GraphTarget("graph", G), GraphTarget("graph", H), False, HERE)),
    ("COPY SILENT :g TO DEFAULT", CopyGraph(GraphTarget("graph", G), GraphTarget("default"), True, HERE)),
    (
        "INSERT DATA { :g :g :g . GRAPH :h { :g :g 1 } . }",
        InsertData(NOWHERE, (QuadPattern(G, G, G, None), QuadPattern(G, G, integer(1), H)), HERE, HERE),
    ),
    ("DELETE DATA { :g :g :g }", DeleteData(NOWHERE, (QuadPattern(G, G, G, None),), HERE, HERE)),
    (
        "DELETE WHERE { GRAPH ?a { ?s ?p ?o } }",
        DeleteWhere(NOWHERE, (QuadPattern(S, P, OBJ, A),), HERE, HERE),
    ),
    (
        "WITH :g DELETE { ?s ?p 1 } INSERT { ?s ?p [] } USING :g USING NAMED :h WHERE { ?s ?p ?o }",
        Modify(
            NOWHERE,
            G,
            (QuadPattern(S, P, integer(1), None),),
            (QuadPattern(S, P, blank("anon1"), None),),
            (DatasetClause(G, False), DatasetClause(H, True)),
            group(SPO),
            HERE,
            HERE,
        ),
    ),
    ("INSERT {} WHERE {}", Modify(NOWHERE, None, None, (), (), group(), HERE, HERE)),
    ("DELETE {} WHERE {}", Modify(NOWHERE, None, (), None, (), group(), HERE, HERE)),
]


def without_spans(operation: Operation) -> object:
    """Operations keep their spans in comparisons, so they are taken out here."""
    return [
        getattr(operation, name)
        for name in operation.__dataclass_fields__
        if name not in ("span", "block", "where")
    ]


@pytest.mark.parametrize(("text", "tree"), OPERATIONS)
def test_operation(text: str, tree: Operation) -> None:
    (operation,) = parse_update(PROLOGUE + text).operations
    assert type(operation) is type(tree)
    assert without_spans(operation) == without_spans(tree)


def test_each_operation_has_the_prologue_before_it() -> None:
    update = parse_update(
        "PREFIX a: <a:> INSERT DATA {} ; PREFIX b: <b:> PREFIX a: <c:>"
        " INSERT DATA { a:x a:y b:z } ; PREFIX d: <d:>"
    )
    first, second = update.operations
    assert isinstance(first, InsertData)
    assert isinstance(second, InsertData)
    assert first.prologue.prefixes == (("a", "a:"),)
    assert second.prologue.prefixes == (("a", "c:"), ("b", "b:"))
    assert second.quads == (QuadPattern(Iri("c:x", HERE), Iri("c:y", HERE), Iri("b:z", HERE), None),)


def test_an_update_may_be_empty() -> None:
    assert parse_update(" # nothing\n").operations == ()
    assert parse_update("CLEAR ALL ;").operations == (ClearGraph(GraphTarget("all"), False, Span(0, 9)),)


def test_spans_cut_the_parts_out_of_the_text() -> None:
    query = parse_query(
        r"SELECT (1 + ?x AS ?y) { ?x <a:\u0041> 'é' . OPTIONAL { ?x <a:b>/<a:c> [] FILTER(!?x) } }"
    )

    def cut(part: object) -> str:
        start, end = part.span  # type: ignore[attr-defined]
        return query.text[start:end]

    assert query.select is not None
    assert query.select.projections is not None
    assert query.where is not None
    (projection,) = query.select.projections
    triples, optional = query.where.elements
    assert isinstance(triples, TriplesBlock)
    assert isinstance(optional, OptionalPattern)
    inner, condition = optional.pattern.elements
    assert isinstance(inner, TriplesBlock)
    assert isinstance(condition, Filter)
    parts = (
        projection,
        projection.expression,
        triples.triples[0].predicate,
        triples.triples[0].object,
        optional,
    )
    assert [cut(part) for part in (*parts, inner.triples[0].predicate, condition, condition.expression)] == [
        "(1 + ?x AS ?y)",
        "1 + ?x",
        r"<a:\u0041>",
        "'é'",
        "OPTIONAL { ?x <a:b>/<a:c> [] FILTER(!?x) }",
        "<a:b>/<a:c>",
        "FILTER(!?x)",
        "!?x",
    ]
