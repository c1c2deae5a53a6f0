"""Requests that would hurt a service which let them, over the data of `hostile_data`."""

import gzip
from dataclasses import dataclass
from pathlib import Path

from benchmarks.service import flight_triples

__all__ = ["ATTACKS", "POINT_QUERY", "Attack", "hostile_data"]

POINT_QUERY = "SELECT ?o WHERE { <urn:h:point> <urn:h:value> ?o }"
DENSE_NODES, HUB_EDGES, FLIGHT_TRIPLES = 300, 50_000, 200_000

N = "<urn:h:next>"
ALL = "?a ?b ?c . ?d ?e ?f . ?g ?h ?i"  # every triple with every other, and again
STEPS = f"?a {N} ?b . ?b {N} ?c . ?c {N} ?d"


@dataclass(frozen=True, slots=True)
class Attack:
    """A request, how it is sent, and the statuses that answer it; manners are those of `hostile.MANNERS`."""

    name: str
    body: bytes
    statuses: frozenset[int]
    path: str = "/sparql"
    media_type: str = "application/sparql-query"
    coding: str = ""
    manner: str = "read"


def hostile_data(directory: Path, scale: float) -> Path:
    """An N-Triples file: flights, a graph with every edge, a hub, and the triple that POINT_QUERY finds."""
    path = flight_triples(directory, max(1000, int(FLIGHT_TRIPLES * scale)))
    nodes, edges = max(10, int(DENSE_NODES * scale**0.5)), int(HUB_EDGES * scale)
    with path.open("a") as lines:
        lines.write('<urn:h:point> <urn:h:value> "here" .\n')
        lines.writelines(f"<urn:h:hub> <urn:h:spoke> <urn:h:s{i}> .\n" for i in range(edges))
        lines.writelines(
            f"<urn:h:n{i}> <urn:h:next> <urn:h:n{j}> .\n" for i in range(nodes) for j in range(nodes)
        )
    return path


def _query(name: str, text: str, *statuses: int, manner: str = "read") -> Attack:
    return Attack(name, text.encode(), frozenset(statuses or (503,)), manner=manner)


def _hard(name: str, text: str, manner: str = "read") -> Attack:
    """Too much for a reader; the column view may be able to answer, or to begin to, in time."""
    return _query(name, text, 200, 503, manner=manner)


def _update(name: str, text: str, *statuses: int) -> Attack:
    return Attack(name, text.encode(), frozenset(statuses or (503,)), "/update", "application/sparql-update")


def _doubling(function: str) -> str:
    """A string that is twice as long after each of 60 steps."""
    steps = " ".join(f"BIND({function.format(f'?s{i}')} AS ?s{i + 1})" for i in range(60))
    return f'SELECT (STRLEN(?s60) AS ?n) {{ BIND("0123456789" AS ?s0) {steps} }}'


def _values(name: str, rows: int) -> str:
    return f"VALUES ?{name} {{ {' '.join(map(str, range(rows)))} }}"


def _in(pattern: str, value: str, members: int) -> str:
    return f"SELECT * {{ {pattern} FILTER({value} IN ({','.join(map(str, range(members)))})) }}"


ATTACKS = (
    _query("a cross product, counted", f"SELECT (COUNT(*) AS ?n) {{ {ALL} }}"),
    _hard("a cross product without a result", f"SELECT * {{ {ALL} FILTER(CONCAT(?a, ?d, ?g) = 1) }}"),
    _hard("NOT EXISTS of a cross product", f"ASK {{ ?s ?p ?o FILTER NOT EXISTS {{ {ALL} FILTER(?i=1) }} }}"),
    _hard("ORDER BY of millions of rows", f"SELECT * {{ {STEPS} }} ORDER BY ?d ?c LIMIT 1"),
    _hard("DISTINCT of millions of rows", f"SELECT (COUNT(DISTINCT *) AS ?n) {{ {STEPS} }}"),
    _hard("GROUP BY of millions of groups", f"SELECT (COUNT(*) AS ?n) {{ {STEPS} }} GROUP BY ?a ?b ?c ?d"),
    _query("GROUP_CONCAT of a cross product", f"SELECT (STRLEN(GROUP_CONCAT(?c)) AS ?n) {{ {ALL} }}"),
    _hard("a closure over a dense graph", f"SELECT (COUNT(*) AS ?n) {{ ?a {N}+ ?b . ?b {N}+ ?c }}"),
    _hard("a closure both ways", f"SELECT (COUNT(*) AS ?n) {{ ?a ({N}|^{N})* ?b . ?c (!<urn:h:x>)* ?a }}"),
    _hard("sequences of closures", f"SELECT (COUNT(*) AS ?n) {{ ?a ({N}*/{N}*)* ?b . ?c ({N}/{N})* ?a }}"),
    _hard("REGEX of all pairs", f"SELECT * {{ {ALL} FILTER REGEX(CONCAT(STR(?a), STR(?d)), '(a|b)*0$') }}"),
    _query("a huge REGEX", "ASK { ?s ?p ?o FILTER REGEX(STR(?o), '((x{100}){100}){100}$') }", 200, 400, 503),
    _query("CONCAT that doubles", _doubling("CONCAT({0}, {0})")),
    _query("REPLACE that doubles", _doubling("REPLACE({0}, '(.)', '$1$1')")),
    _query("VALUES joined", f"SELECT (COUNT(*) AS ?n) {{ {' '.join(_values(n, 4000) for n in 'abc')} }}"),
    _query("nested too deep", "SELECT * WHERE " + "{ " * 5000 + "}" * 5000, 400),
    _query("brackets without end", "SELECT * WHERE { FILTER(" + "(" * 100_000, 400),
    _query("a giant list of IN", _in("?s ?p ?o", "?o", 30_000), 400),
    _hard("an allowed list of IN", _in(ALL, "?c", 1000)),
    _query("OFFSET beyond everything", f"SELECT * {{ {ALL} }} OFFSET 1000000000000 LIMIT 1"),
    _query("CONSTRUCT without end", f"CONSTRUCT {{ ?a ?e ?i }} WHERE {{ {ALL} }}", 200, 503),
    _query("CONSTRUCT of millions of triples", f"CONSTRUCT {{ ?a ?c ?d }} WHERE {{ {STEPS} }}", 200),
    _query("DESCRIBE of a hub", "DESCRIBE <urn:h:hub>", 200),
    _query("a stream that is not read", f"SELECT * {{ {STEPS} }}", 200, manner="unread"),
    _query("a client that leaves", f"SELECT (COUNT(*) AS ?n) {{ {ALL} }}", 0, manner="leave"),
    _query("64 at once", f"SELECT (COUNT(*) AS ?n) {{ {ALL} }}", manner="crowd"),
    _hard("64 at once that fill memory", f"SELECT * {{ {STEPS} }} ORDER BY ?d ?c LIMIT 1", manner="crowd"),
    _query("SERVICE to a host not allowed", "SELECT * { SERVICE SILENT <http://10.0.0.1/> {} }", 403),
    _update("an update whose WHERE has no end", f"INSERT {{ ?a ?e 1 }} WHERE {{ {ALL} FILTER(?a = ?i) }}"),
    _update("an update that makes no end of triples", f"INSERT {{ ?a ?e ?i }} WHERE {{ {ALL} }}"),
    _update("LOAD from a host not allowed", "LOAD <http://10.0.0.1/>", 403),
    _query("a text of ten megabytes", f"SELECT * {{ ?s ?p '{'x' * 10_000_000}' }}", 400),
    Attack(
        "a compressed body of a gigabyte",
        gzip.compress(b"\0" * (1 << 20)) * 1024,
        frozenset({400}),
        coding="gzip",
    ),
)  # fmt: skip
