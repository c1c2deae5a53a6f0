"""Random data with terms of every kind, and queries with every construct, over a vocabulary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

__all__ = ["PREFIXES", "WIDE", "Vocabulary", "wide_patterns", "wide_quads", "wide_queries"]

Texts = st.SearchStrategy[str]
PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
VARIABLES = ("?v0", "?v1", "?v2", "?v3")
_STRINGS = (
    '""',
    '"a"',
    '"Ab"',
    '"ab c"',
    '"a.b"',
    '"ß"',
    '"ÉCOLE"',
    '"𝒳a𝒴"',
    '"İ"',
    r'"a\nb"',
    r'"\"\\"',
    '"12"',
)
# Predicates of one kind of object each make what has to know the kinds compile.
OBJECTS: dict[str, Sequence[str]] = {
    ":int": ("1", "2", "-3", "0", "007", "9223372036854775807", "1", "2"),
    ":dec": ("1.0", "2.5", "-0.3", "0.000001", "12345678901.5", "7.0"),
    ":dbl": ("1e0", "2.5e0", "0.1e0", '"NaN"^^xsd:double', '"INF"^^xsd:double', '"-0"^^xsd:double', "1e300"),
    ":flt": tuple(f'"{value}"^^xsd:float' for value in ("1", "2.5", "0.1", "NaN", "-INF")),
    ":num": ("1", "1.0", "1e0", "2", "2.5", "2.5e0", '"1"^^xsd:byte'),
    ":str": _STRINGS,
    ":lng": ('"a"@en', '"a"@de', '"Ab"@en-GB', '"ab c"@en', '"ß"@de', '"a"@EN'),
    ":dir": ('"a"@en--ltr', '"a"@en--rtl', '"b"@ar--rtl', '"a"@en'),
    ":boo": ("true", "false", '"1"^^xsd:boolean'),
    ":day": tuple(f'"{day}"^^xsd:date' for day in ("2020-01-01", "2020-02-29", "1999-12-31")),
    ":zon": tuple(f'"{day}"^^xsd:date' for day in ("2020-01-01", "2020-01-01Z", "2020-01-01+02:00")),
    ":dtm": tuple(f'"2020-01-0{day}T10:00:0{day}.25"^^xsd:dateTime' for day in (1, 2)),
    ":utc": tuple(f'"2020-01-0{day}T10:00:00Z"^^xsd:dateTime' for day in (1, 2)),
    ":oth": (
        *('"2020"^^xsd:gYear', '"2020-05"^^xsd:gYearMonth', '"--05"^^xsd:gMonth', '"10:00:00"^^xsd:time'),
        *('"P1Y"^^xsd:duration', '"P12M"^^xsd:yearMonthDuration', '"PT24H"^^xsd:dayTimeDuration'),
        *('"P1D"^^xsd:dayTimeDuration', '"2020-01-01T10:00:00+02:00"^^xsd:dateTime', '"x"^^xsd:integer'),
    ),
    ":own": ('"x"^^:own', '"y"^^:own', '"x"^^:two'),
    ":trp": ("<<( :a :p :b )>>", "<<( :a :p 1 )>>", '<<( :b :q "a"@en )>>'),
    ":p": (":a", ":b", ":c", ":d", "_:x"),
    ":q": (":a", ":b", ":c", "1", '"a"', '"a"@en'),
    ":r": (":a", "1", "2.5", "true", '"a"', '"x"^^:own', '"2020-01-01"^^xsd:date', "_:x", '"a"@en'),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What queries name. free: a pattern may join with the others by no variable."""

    iris: Sequence[str]
    predicates: Sequence[str]
    literals: Sequence[str]
    graphs: Sequence[str] = ()
    free: bool = True


WIDE = Vocabulary(
    (":a", ":b", ":c", ":d", ":nowhere"),
    (*OBJECTS, ":p", ":q", ":r", ":p", ":never"),
    tuple(dict.fromkeys(each for of in OBJECTS.values() for each in of if each[0] not in ":_<")),
    (":g", ":h", ":nograph"),
)
sampled = st.sampled_from
_UNARY = (
    *("isIRI", "isBlank", "isLiteral", "isNumeric", "STR", "LANG", "STRLEN", "UCASE", "LCASE", "ABS"),
    *("CEIL", "FLOOR", "ROUND", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"),
    *("TZ", "TIMEZONE", "DATATYPE", "ENCODE_FOR_URI", "xsd:string", "xsd:integer", "xsd:double"),
    *("xsd:decimal", "xsd:float", "xsd:boolean", "xsd:date", "xsd:dateTime", "isTRIPLE", "LANGDIR"),
    *("hasLANG", "hasLANGDIR", "MD5", "IRI", "SUBJECT", "OBJECT", "!", "-", "+"),
)  # fmt: skip
_BINARY = (
    "CONTAINS",
    "STRSTARTS",
    "STRENDS",
    "sameTerm",
    "STRBEFORE",
    "STRAFTER",
    "CONCAT",
    "STRDT",
    "STRLANG",
)
_REGEXES = (
    '"a"',
    '"^a"',
    '"b$"',
    '"A.*", "i"',
    '"."',
    '"a b", "x"',
    '"^b", "m"',
    '"[ab]+"',
    '""',
    r'"\\d"',
)
_REPLACED = ('"a", "z"', '"(a)(b)", "$2$1"', '"A", "z", "i"', '"x*", "-"')
_AGGREGATES = (
    *("COUNT(", "SUM(", "AVG(", "MIN(", "MAX(", "COUNT(DISTINCT ", "SUM(DISTINCT "),
    *("AVG(DISTINCT ", "MIN(DISTINCT "),
)  # fmt: skip
variables = sampled(VARIABLES)


@st.composite
def _triple(draw: st.DrawFn) -> str:
    predicate = draw(sampled(sorted(OBJECTS)))
    return f"{draw(sampled((':a', ':a', ':b', '_:x')))} {predicate} {draw(sampled(OBJECTS[predicate]))} ."


wide_quads: Texts = st.builds(
    lambda default, one, two: (
        f"{PREFIXES} INSERT DATA {{ {' '.join(default)} "
        f"GRAPH :g {{ {' '.join(one)} }} GRAPH :h {{ {' '.join(two)} }} }}"
    ),
    st.lists(_triple(), min_size=12, max_size=30),
    st.lists(_triple(), max_size=6),
    st.lists(_triple(), max_size=6),
)


def _paths(words: Vocabulary) -> Texts:
    predicates = sampled(words.predicates)
    return st.recursive(
        predicates,
        lambda inner: st.one_of(
            st.builds("({}/{})".format, inner, inner),
            st.builds("({}|{})".format, inner, inner),
            st.builds("(^{})".format, inner),
            st.builds("({}{})".format, inner, sampled("?*+")),
            st.builds("!({}|^{})".format, predicates, predicates),
            st.builds("!({}|{})".format, predicates, predicates),
        ),
        max_leaves=3,
    )


def wide_patterns(words: Vocabulary) -> Texts:
    """Triple patterns; where they are not free, of few shapes that all have ?v0."""
    predicates = sampled(words.predicates)
    if not words.free:
        return st.one_of(
            st.builds("?v0 {} {} .".format, predicates, sampled(("?v1", "?v2", "?v3"))),
            st.builds("?v0 {} ?v1 . ?v1 {} ?v2 .".format, predicates, predicates),
            st.builds("?v0 {}/{} ?v3 .".format, predicates, predicates),
            st.builds("?v0 ({}|{}) ?v2 .".format, predicates, predicates),
            st.builds("?v0 {}{} ?v1 .".format, predicates, sampled("+?")),
            st.builds("?v0 {} {} .".format, predicates, sampled((*words.iris, *words.literals))),
        )
    return st.builds(
        "{} {} {} .".format,
        sampled(("?v0", "?v0", "?v0", "?v0", "?v1", "?v2", "_:n", *words.iris[:2])),
        st.one_of(predicates, predicates, predicates, variables, _paths(words)),
        st.one_of(variables, variables, variables, sampled((*words.literals, *words.iris, "[]"))),
    )


def _expressions(words: Vocabulary) -> Texts:
    terms = (*words.literals, *words.iris)
    small = st.one_of(variables, variables, sampled(terms))
    return st.recursive(
        small,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, sampled(("=", "!=", "<", ">", "<=", ">=")), inner),
            st.builds("({} {} {})".format, inner, sampled(("+", "-", "*", "/")), inner),
            st.builds("({} {} {})".format, inner, sampled(("&&", "||")), inner),
            st.builds("bound({})".format, variables),
            st.builds("({}({}))".format, sampled(_UNARY), inner),
            st.builds("({}({}))".format, sampled(_UNARY[:27]), inner),
            st.builds("{}({}, {})".format, sampled(_BINARY), inner, inner),
            st.builds("LANGMATCHES(LANG({}), {})".format, inner, sampled(('"*"', '"en"', '"DE"', '""'))),
            st.builds(
                "SUBSTR({}, {})".format, inner, sampled(("1", "2", "0", "2, 1", "-1, 3", "1.5", "?v1"))
            ),
            st.builds("REGEX({}, {})".format, inner, sampled(_REGEXES)),
            st.builds("REPLACE({}, {})".format, inner, sampled(_REPLACED)),
            st.builds("IF({}, {}, {})".format, inner, inner, inner),
            st.builds("COALESCE({}, {})".format, inner, inner),
            st.builds("({} {} ({}, {}))".format, inner, sampled(("IN", "NOT IN")), inner, inner),
            st.builds("({} {} ())".format, inner, sampled(("IN", "NOT IN"))),
        ),
        max_leaves=4,
    )


def _aggregates(expressions: Texts) -> Texts:
    return st.one_of(
        st.builds("{}{})".format, sampled(_AGGREGATES), st.one_of(variables, variables, expressions)),
        # the length alone, as any order of what it joins is right
        st.builds("STRLEN(GROUP_CONCAT({}{}))".format, sampled(("", "DISTINCT ")), variables),
        st.just("COUNT(*)"),
        st.just("COUNT(DISTINCT *)"),
        st.builds("({} {} {})".format, st.just("COUNT(?v0)"), sampled("+*/"), sampled(("2", "SUM(?v1)"))),
    )


def _values(words: Vocabulary) -> Texts:
    terms = sampled((*words.literals, *words.iris))
    return st.one_of(
        st.builds("VALUES {} {{ {} {} }}".format, variables, terms, terms),
        st.builds("VALUES (?v0 ?v1) {{ ({} {}) ({} UNDEF) }}".format, sampled(words.iris), terms, terms),
    )


def _groups(words: Vocabulary, expressions: Texts) -> Texts:
    pattern, values, aggregates = wide_patterns(words), _values(words), _aggregates(expressions)

    def element(group: Texts) -> Texts:
        choices = [
            *(pattern, pattern, pattern, values),
            st.builds("OPTIONAL {}".format, group),
            st.builds("OPTIONAL {{ {} FILTER({}) }}".format, pattern, expressions),
            st.builds("{} UNION {}".format, group, group),
            st.builds("MINUS {}".format, group),
            st.builds("FILTER({})".format, expressions),
            st.builds("FILTER {} {}".format, sampled(("EXISTS", "NOT EXISTS")), group),
            st.builds("FILTER(EXISTS {} || {})".format, group, expressions),
            st.builds("BIND({} AS ?b{})".format, expressions, st.integers(0, 3)),
            st.builds("BIND(EXISTS {} AS ?b{})".format, group, st.integers(0, 3)),
            group,
            st.builds("{{ SELECT DISTINCT ?v0 ?v1 {} }}".format, group),
            st.builds("{{ SELECT ?v0 ({} AS ?v1) {} GROUP BY ?v0 }}".format, aggregates, group),
            st.builds("{{ SELECT ({} AS ?n0) {} }}".format, aggregates, group),
        ]
        if words.graphs:
            names = st.one_of(sampled(words.graphs), variables)
            choices += [st.builds("GRAPH {} {}".format, names, group)] * 2
        return st.one_of(choices)

    return st.recursive(
        st.builds("{{ {} }}".format, st.lists(pattern, min_size=1, max_size=3).map(" ".join)),
        lambda inner: st.builds(
            "{{ {} {} }}".format, pattern, st.lists(element(inner), min_size=1, max_size=3).map(" ".join)
        ),
        max_leaves=3,
    )


def wide_queries(words: Vocabulary) -> st.SearchStrategy[tuple[str, str, str]]:
    """A query in three parts: its text, ORDER BY of one variable or nothing, LIMIT and OFFSET or nothing."""
    expressions = _expressions(words)
    group, aggregates = _groups(words, expressions), _aggregates(expressions)
    source = sampled(("", "", "")) if not words.graphs else sampled(
        ("", "", "FROM :g ", "FROM :g FROM :h ", "FROM :g FROM NAMED :h ", "FROM NAMED :h FROM NAMED :none ")
    )  # fmt: skip
    order = sampled(("", "", "", "ORDER BY ?v0", "ORDER BY DESC(?v1)", "ORDER BY ?v2"))
    limit = sampled(("", "", "", "LIMIT 3", "LIMIT 2 OFFSET 1", "OFFSET 2", "LIMIT 0"))
    none = st.just("")
    values = st.one_of(none, none, _values(words))
    having = st.one_of(none, none, st.builds("HAVING({} > 1)".format, aggregates))

    def texts(make: Callable[..., str], *parts: Texts) -> Texts:
        return st.builds(make, *parts).map(PREFIXES.__add__)

    plain = st.one_of(
        texts("SELECT * {}WHERE {}".format, source, group),
        texts("SELECT DISTINCT ?v0 ?v1 {}WHERE {}".format, source, group),
        texts("SELECT ?v0 ?v1 ({} AS ?x) WHERE {}".format, expressions, group),
    )
    rest = st.one_of(
        texts("ASK {}".format, group),
        texts("CONSTRUCT {{ ?v0 :new ?v1 . ?v1 :new 1 }} WHERE {}".format, group),
        texts(
            "SELECT ?v0 ({} AS ?x) ({} AS ?y) {}WHERE {} GROUP BY ?v0 {} {}".format,
            *(aggregates, aggregates, source, group, having, values),
        ),
        texts("SELECT ({} AS ?x) WHERE {}".format, aggregates, group),
        texts("SELECT ?k ({} AS ?x) WHERE {} GROUP BY ({} AS ?k)".format, aggregates, group, expressions),
    )
    return st.one_of(st.tuples(plain, order, limit), st.tuples(rest, none, none))
