"""Families of queries, each grown by one number until the engine overflows its stack or plans for seconds."""

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["FAMILIES"]

Family: TypeAlias = Callable[[int], str]

A = "<urn:a>"
T = f"{A} {A} ?x"


def select(body: str, head: str = "*") -> str:
    return f"SELECT {head} WHERE {{ {body} }}"


def nested(opening: str, inner: str, closing: str = " }") -> Family:
    return lambda n: select(opening * n + inner + closing * n)


def numbered(piece: str, before: str = "", separator: str = " ") -> Family:
    """piece n times; # is the number of each, % the one after it."""
    return lambda n: select(
        before + separator.join(piece.replace("#", str(i)).replace("%", str(i + 1)) for i in range(n))
    )


def bound(opening: str, inner: str, closing: str = "", separator: str | None = None) -> Family:
    """BIND of an expression: inner n times with a separator, or within opening and closing n times."""
    if separator is not None:
        return lambda n: select(f"{T} BIND({opening}{separator.join([inner] * n)}{closing} AS ?r)")
    return lambda n: select(f"{T} BIND({opening * n}{inner}{closing * n} AS ?r)")


def path(opening: str, inner: str = A, closing: str = "", separator: str | None = None) -> Family:
    """A property path, made as in `bound`."""
    if separator is not None:
        return lambda n: select(f"{A} {opening}{separator.join([inner] * n)}{closing} ?x")
    return lambda n: select(f"{A} {opening * n}{inner}{closing * n} ?x")


def tail(clause: str, piece: str, head: str = "*") -> Family:
    return lambda n: select(T, head) + clause + " ".join(piece.replace("#", str(i)) for i in range(n))


GROUPS: dict[str, Family] = {
    "nested groups": nested("{ ", T),
    "nested groups with a triple each": nested(f"?s {A} ?o {{ ", T),
    "nested sub-selects": nested("{ SELECT * WHERE { ", T, " } }"),
    "nested DISTINCT sub-selects": nested("{ SELECT DISTINCT ?x WHERE { ", T, " } LIMIT 9 }"),
    "nested OPTIONAL": nested(f"{A} {A} ?y OPTIONAL {{ ", T),
    "nested UNION": nested("{ ", f"{{ {T} }}", f" UNION {{ {T} }} }}"),
    "nested MINUS": nested(f"{T} MINUS {{ ", T),
    "nested GRAPH": nested("GRAPH ?g { ", T),
    "nested EXISTS": nested(f"{T} FILTER EXISTS {{ ", T),
    "nested NOT EXISTS": nested(f"{T} FILTER NOT EXISTS {{ ", T),
    "nested groups with FILTER": nested("{ ", T, " FILTER(?x = ?x) }"),
    "nested SERVICE": nested("SERVICE SILENT <http://127.0.0.1:1/> { ", T),
    "OPTIONALs of one subject": numbered(f"OPTIONAL {{ ?x {A} ?y# }}", T + " "),
    "OPTIONALs in a chain": numbered(f"OPTIONAL {{ ?x# {A} ?x% }}", f"{A} {A} ?x0 "),
    "OPTIONALs with two triples and FILTER": numbered(
        f"OPTIONAL {{ ?x {A} ?x# . ?x# {A} ?z# FILTER(?z# = ?x) }}", T + " "
    ),
    "empty OPTIONALs": numbered("OPTIONAL {}"),
    "UNION": numbered(f"{{ {T} }}", separator=" UNION "),
    "UNION of empty groups": numbered("{}", separator=" UNION "),
    "UNION joined with triples": lambda n: select(
        f"{T} . " + " UNION ".join(f"{{ ?x {A} ?y{i} }}" for i in range(n)) + " ?x ?p ?q"
    ),
    "UNIONs joined": numbered(f"{{ ?x {A} ?y# }} UNION {{ ?y# {A} ?x }}", T + " . "),
    "UNION of OPTIONALs": numbered(f"{{ {T} OPTIONAL {{ ?x {A} ?y# }} }}", separator=" UNION "),
    "UNION under as many FILTERs": lambda n: select(
        " UNION ".join(f"{{ ?x {A} ?y{i} }}" for i in range(n)) + " FILTER(?x = 1)" * n
    ),
    "BIND": numbered("BIND(?x AS ?b#)", T + " "),
    "BIND in a chain": numbered("BIND(STR(?b#) AS ?b%)", "BIND(1 AS ?b0) "),
    "FILTER": numbered("FILTER(?x = ?x)", T + " "),
    "FILTER EXISTS": numbered(f"FILTER EXISTS {{ ?x {A} ?y }}", T + " "),
    "MINUS": numbered(f"MINUS {{ ?x {A} 1 }}", T + " "),
    "joined sub-selects": numbered(f"{{ SELECT ?x# WHERE {{ ?x# {A} ?z }} }}"),
    "joined groups with OPTIONAL": numbered(f"{{ {T} OPTIONAL {{ ?x {A} ?y# }} }}"),
    "joined VALUES": numbered("VALUES ?x# { 1 }"),
    "GRAPH blocks beside a sub-select of them": lambda n: select(
        "".join(f"GRAPH ?g {{ ?x {A} ?y{i} }} " for i in range(n))
        + "{ SELECT * WHERE { "
        + "".join(f"GRAPH ?g {{ ?x {A} ?z{i} }} " for i in range(n))
        + "} }"
    ),
    "triples, OPTIONALs and sub-selects by turns": lambda n: select(
        " ".join(
            f"?x{i} {A} ?x{i + 1} OPTIONAL {{ ?x {A} ?y{i} }} {{ SELECT * WHERE {{ ?x {A} ?z{i} }} }}"
            for i in range(n)
        )
    ),
    "GRAPH blocks": numbered(f"GRAPH {A} {{ ?x {A} ?y# }}"),
    "GRAPH blocks of one name": numbered(f"GRAPH ?g {{ ?x {A} ?y# }}"),
    "GRAPH blocks of many names": numbered(f"GRAPH ?g# {{ ?x {A} ?y# }}"),
}

PATTERNS: dict[str, Family] = {
    "a star of triples": numbered(f"?x {A} ?y#", separator=" . "),
    "a chain of triples": numbered(f"?x# {A} ?x%", separator=" . "),
    "a cross product": numbered(f"?x# {A} ?y#", separator=" . "),
    "the same triple": numbered("?s ?p ?o", separator=" . "),
    "a ground triple": numbered(f"{A} {A} {A}", separator=" . "),
    "a clique": lambda n: select(" . ".join(f"?x{i % 7} ?p{i % 5} ?x{i % 11}" for i in range(n))),
    "groups of one triple": numbered(f"{{ ?x# {A} ?x% }}"),
    "triples, OPTIONALs and FILTERs": lambda n: select(
        " . ".join(f"?x {A} ?y{i}" for i in range(n))
        + "".join(f" OPTIONAL {{ ?x {A} ?z{i} }} FILTER(?y{i} = 1)" for i in range(n))
    ),
    "CONSTRUCT WHERE": lambda n: f"CONSTRUCT WHERE {{ {' . '.join(f'?x {A} ?y{i}' for i in range(n))} }}",
    "a collection": lambda n: select(f"{A} {A} ({' ?x' * n})"),
    "nested collections": lambda n: select(f"{A} {A} {'( ' * n}1{' )' * n}"),
    "nested property lists": lambda n: select(f"{A} {A} {f'[ {A} ' * n}1{' ]' * n}"),
    "nested triple terms": lambda n: select(f"{A} {A} {f'<<( {A} {A} ' * n}?x{' )>>' * n}"),
    "nested reified triples": lambda n: select(f"{f'<< {A} {A} ' * n}1{' >>' * n} {A} ?x"),
    "nested annotations": lambda n: select(f"{T} {f'{{| {A} ?y ' * n}{' |}' * n}"),
    "annotations": lambda n: select(f"{T} " + " ".join(f"{{| {A} ?y{i} |}}" for i in range(n))),
}

EXPRESSIONS: dict[str, Family] = {
    "&&": bound("", "?x", separator=" && "),
    "||": bound("", "1", separator=" || "),
    "&& of ||": bound("", "(?x || ?y)", separator=" && "),
    "|| of EXISTS": bound("", f"EXISTS {{ {T} }}", separator=" || "),
    "+": bound("", "1", separator=" + "),
    "*": bound("", "?x", separator=" * "),
    "signed numbers": bound("1", "-1", separator=" "),
    "!": bound("!", "?x"),
    "-": bound("-(", "1", ")"),
    "brackets": bound("(", "?x", ")"),
    "nested STR": bound("STR(", "1", ")"),
    "nested casts": bound("<http://www.w3.org/2001/XMLSchema#string>(", "1", ")"),
    "nested IF, condition": bound("IF(", "?x", ",1,2)"),
    "nested IF, branch": bound("IF(?x,1,", "2", ")"),
    "nested COALESCE": bound("COALESCE(?y,", "1", ")"),
    "nested CONCAT": bound('CONCAT("a",', '"b"', ")"),
    "nested TRIPLE": bound(f"TRIPLE({A},{A},", "1", ")"),
    "triple terms": bound(f"<<( {A} {A} ", "1", " )>>"),
    "COALESCE": bound("COALESCE(", "?y", ")", separator=","),
    "CONCAT": bound("CONCAT(", '"a"', ")", separator=","),
    "IN": bound("?x IN (", "?y", ")", separator=","),
    "NOT IN": bound("?x NOT IN (", "1", ")", separator=","),
}

PATHS: dict[str, Family] = {
    "a sequence": path("", separator="/"),
    "a sequence of inverses": path("", "^" + A, separator="/"),
    "a sequence of alternatives": path("", f"({A}|<urn:b>)", separator="/"),
    "a sequence of ?": path("", A + "?", separator="/"),
    "a sequence of *": path("", A + "*", separator="/"),
    "a sequence of +": path("", A + "+", separator="/"),
    "an alternative": path("", separator="|"),
    "an alternative of sequences": path("", f"({A}/{A})", separator="|"),
    "a negated set": path("!(", closing=")", separator="|"),
    "nested *": path("(", closing="*)"),
    "nested ?": path("(", closing="?)"),
    "nested +": path("(", closing="+)"),
    "nested + of sequences": path("(", closing=f"/{A})+"),
    "nested ^": path("^(", closing=")"),
    "nested alternatives in sequences": path("(", closing=f"|{A})/{A}"),
    "* of a sequence": path("(", closing=")*", separator="/"),
    "* of an alternative": path("(", closing=")*", separator="|"),
    "* of a sequence of ?": path("(", A + "?", ")*", separator="/"),
    "paths from one subject": numbered(f"?x {A}* ?y#", separator=" . "),
    "paths in a chain": numbered(f"?x# {A}+ ?x%", separator=" . "),
}

CLAUSES: dict[str, Family] = {
    "VALUES, rows": lambda n: select(f"{T} VALUES ?x {{ {' '.join(map(str, range(n)))} }}"),
    "VALUES, columns": lambda n: select(
        f"VALUES ({' '.join(f'?v{i}' for i in range(n))}) {{ ({' 1' * n}) }}"
    ),
    "VALUES, UNDEF": lambda n: select(f"?x {A} ?y VALUES (?x ?y) {{ {'(UNDEF 1)(1 UNDEF)' * n} }}"),
    "computed columns": lambda n: select(T, " ".join(f"(?x+{i} AS ?p{i})" for i in range(n))),
    "columns": lambda n: select(T, " ".join(f"?p{i}" for i in range(n))),
    "aggregates": lambda n: select(T, " ".join(f"(COUNT(?x+{i}) AS ?p{i})" for i in range(n))),
    "GROUP BY": tail(" GROUP BY ", "(?x+# AS ?p#)", "(1 AS ?one)"),
    "HAVING": tail(" GROUP BY ?x HAVING ", "(COUNT(?x) > #)", "?x"),
    "ORDER BY": tail(" ORDER BY ", "(?x+#)"),
    "CONSTRUCT": lambda n: f"CONSTRUCT {{ {' . '.join(f'?x {A} {i}' for i in range(n))} }} WHERE {{ {T} }}",
    "DESCRIBE of IRIs": lambda n: "DESCRIBE " + " ".join(f"<urn:d{i}>" for i in range(n)),
    "DESCRIBE of variables": lambda n: f"DESCRIBE {' '.join(f'?v{i}' for i in range(n))} WHERE {{ {T} }}",
    "FROM": lambda n: f"SELECT * {' '.join(f'FROM <urn:g{i}>' for i in range(n))} WHERE {{ {T} }}",
    "PREFIX": lambda n: "".join(f"PREFIX p{i}: <urn:{i}#> " for i in range(n)) + select(T),
    "empty groups": numbered("{}"),
    "semicolons": lambda n: select(T + ";" * n),
    "a long literal": lambda n: select(f'BIND("{"a" * n}" AS ?x)'),
    "comments": lambda n: "#\n" * n + select(T),
}

FAMILIES: dict[str, Family] = {**GROUPS, **PATTERNS, **EXPRESSIONS, **PATHS, **CLAUSES}
