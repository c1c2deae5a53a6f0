"""Random queries and random data for them, from the grammar, small enough that patterns meet the data."""

from hypothesis import strategies as st

__all__ = ["quads", "queries"]

PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
IRIS = (":a", ":b", ":c", ":d")
PREDICATES = (":p", ":q", ":r")
LITERALS = (
    *(
        "1",
        "2",
        "3",
        "1.0",
        "2.5",
        "1e0",
        "0.1e0",
        "2e0",
        "0",
        '""',
        '"a"',
        '"b"',
        '"ab"',
        '"a"@en',
        '"b"@en',
    ),
    *(
        '"c"@fr',
        "true",
        "false",
        '"2020-01-01"^^xsd:date',
        '"2021-05-03"^^xsd:date',
        '"x"^^:own',
        '"y"^^:own',
    ),
    *('"2020-01-01T10:00:00Z"^^xsd:dateTime', "123456789.123456789"),
)
# Predicates of one kind of object make what needs to know the kinds compile.
TYPED = {
    ":int": ("1", "2", "3", "-4", "0"),
    ":dec": ("1.0", "2.5", "-0.3", "7.0"),
    ":dbl": ("1e0", "2.5e0", "0.1e0"),
    ":str": ('"a"', '"b"', '"ab"', '"c d"'),
    ":iri": IRIS,
    ":bool": ("true", "false"),
    ":lang": ('"a"@en', '""@en', '"b"@fr'),
    ":time": (
        *('"2020-01-01"^^xsd:date', '"2020-01-01T10:00:00Z"^^xsd:dateTime', '"PT1H"^^xsd:dayTimeDuration'),
        *('"2021-05-03T01:00:00+02:00"^^xsd:dateTime', '"P1M"^^xsd:yearMonthDuration'),
    ),
}
VARIABLES = ("?v0", "?v1", "?v2", "?v3")
_BINARY = ("CONTAINS", "STRSTARTS", "STRENDS", "sameTerm")
sampled = st.sampled_from
iris, literals, variables = sampled(IRIS), sampled(LITERALS), sampled(VARIABLES)
graphs = sampled((":g1", ":g2"))


@st.composite
def _triples(draw: st.DrawFn) -> str:
    subject = draw(st.one_of(iris, iris, sampled(("_:x", "_:y"))))
    if draw(st.booleans()):
        predicate = draw(sampled(sorted(TYPED)))
        return f"{subject} {predicate} {draw(sampled(TYPED[predicate]))} ."
    return f"{subject} {draw(sampled(PREDICATES))} {draw(st.one_of(iris, literals, sampled(('_:x',))))} ."


quads = st.builds(
    lambda default, one, two: (
        f"{PREFIXES} INSERT DATA {{ {' '.join(default)} "
        f"GRAPH :g1 {{ {' '.join(one)} }} GRAPH :g2 {{ {' '.join(two)} }} }}"
    ),
    st.lists(_triples(), min_size=3, max_size=25),
    st.lists(_triples(), max_size=6),
    st.lists(_triples(), max_size=6),
)

_predicates = sampled((*PREDICATES, *TYPED))
_paths = st.recursive(
    _predicates,
    lambda inner: st.one_of(
        st.builds("({}/{})".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(^{})".format, inner),
        st.builds("({}{})".format, inner, sampled("?*+")),
        st.builds("!({}|^{})".format, _predicates, _predicates),
    ),
    max_leaves=3,
)
_pattern = st.builds(
    "{} {} {} .".format,
    st.one_of(variables, variables, iris),
    st.one_of(_predicates, _predicates, variables, _paths),
    st.one_of(variables, variables, variables, literals, iris),
)
_expression = st.recursive(
    st.one_of(variables, variables, literals, iris),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, sampled(("=", "!=", "<", ">", "<=", ">=")), inner),
        st.builds("({} {} {})".format, inner, sampled(("+", "-", "*", "/")), inner),
        st.builds("({} {} {})".format, inner, sampled(("&&", "||")), inner),
        st.builds("(!{})".format, inner),
        st.builds("bound({})".format, variables),
        st.builds("{}({})".format, sampled(_UNARY := (
            "isIRI", "isBlank", "isLiteral", "isNumeric", "STR", "LANG", "STRLEN", "UCASE", "LCASE", "ABS",
            "CEIL", "FLOOR", "YEAR", "MONTH", "DATATYPE", "xsd:string", "xsd:integer", "xsd:double",
        )), inner),
        st.builds("{}({}, {})".format, sampled(_BINARY), inner, inner),
        st.builds("REGEX({}, {})".format, inner, sampled(('"a"', '"^a"', '"b$"', '"A.*", "i"'))),
        st.builds("CONCAT({}, {})".format, inner, inner),
        st.builds("IF({}, {}, {})".format, inner, inner, inner),
        st.builds("COALESCE({}, {})".format, inner, inner),
        st.builds("({} {} ({}, {}))".format, inner, sampled(("IN", "NOT IN")), inner, inner),
    ),
    max_leaves=4,
)  # fmt: skip
_values = st.one_of(
    st.builds(
        "VALUES {} {{ {} {} }}".format, variables, st.one_of(literals, iris), st.one_of(literals, iris)
    ),
    st.builds("VALUES (?v0 ?v1) {{ ({} {}) ({} UNDEF) }}".format, iris, st.one_of(literals, iris), iris),
)
_values_at_the_end = st.one_of(st.just(""), st.just(""), _values)
_order = st.one_of(st.just(""), st.builds(" ORDER BY {}({})".format, sampled(("ASC", "DESC")), variables))
_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "COUNT(DISTINCT", "SUM(DISTINCT")


def _call(name: str, argument: str) -> str:
    return f"{name} {argument})" if "(" in name else f"{name}({argument})"


_aggregate = st.one_of(
    st.builds(_call, sampled(_AGGREGATES), st.one_of(variables, variables, _expression)),
    st.just("COUNT(*)"),
)


def _element(group: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        _pattern,
        _pattern,
        _pattern,
        st.builds("OPTIONAL {}".format, group),
        st.builds("{} UNION {}".format, group, group),
        st.builds("MINUS {}".format, group),
        st.builds("FILTER({})".format, _expression),
        st.builds("FILTER {} {}".format, sampled(("EXISTS", "NOT EXISTS")), group),
        st.builds("GRAPH {} {}".format, st.one_of(graphs, variables), group),
        st.builds("BIND({} AS ?b{})".format, _expression, st.integers(0, 3)),
        _values,
        group,
        st.builds("{{ SELECT DISTINCT ?v0 ?v1 {} }}".format, group),
        st.builds(
            "{{ SELECT ?v0 ({} AS ?n0) {} GROUP BY ?v0 {} }}".format, _aggregate, group, _values_at_the_end
        ),
    )


_group = st.recursive(
    st.builds("{{ {} }}".format, st.lists(_pattern, min_size=1, max_size=3).map(" ".join)),
    lambda inner: st.builds(
        "{{ {} {} }}".format, _pattern, st.lists(_element(inner), min_size=1, max_size=3).map(" ".join)
    ),
    max_leaves=4,
)
_from = sampled(("", "", "", "FROM :g1 ", "FROM :g1 FROM :g2 ", "FROM :g1 FROM NAMED :g2 "))
queries = st.one_of(
    st.builds("{}SELECT * {}WHERE {}{}".format, st.just(PREFIXES), _from, _group, _order),
    st.builds("{}SELECT DISTINCT ?v0 ?v1 {}WHERE {}".format, st.just(PREFIXES), _from, _group),
    st.builds("{}SELECT ?v2 ({} AS ?x) WHERE {}".format, st.just(PREFIXES), _expression, _group),
    st.builds("{}ASK {}".format, st.just(PREFIXES), _group),
    st.builds("{}CONSTRUCT {{ ?v0 :new ?v1 }} WHERE {}".format, st.just(PREFIXES), _group),
    st.builds(
        "{}SELECT ?v0 ({} AS ?x) ({} AS ?y) WHERE {} GROUP BY ?v0 {}".format,
        st.just(PREFIXES),
        _aggregate,
        _aggregate,
        _group,
        _values_at_the_end,
    ),
    st.builds(
        "{}SELECT ({} AS ?x) WHERE {} {}".format, st.just(PREFIXES), _aggregate, _group, _values_at_the_end
    ),
)
