"""The tools that agents get: each a name, a description, the model of its arguments, and what it does.

They ask the service as any client does, so limits, permissions and visibility are those of its paths. Results
are text of bounded length, because models pay for each word.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field
from pyoxigraph import Literal, NamedNode

from graphdb.rdf.prefixes import WELL_KNOWN, well_known_name
from serve.mcp.graph_calls import GraphCalls, Reply, ToolFailure
from serve.mcp.known_terms import local_name, nearest

__all__ = ["SEARCH", "TOOLS", "UPDATE", "Tool"]

ROWS_MAX = 1_000
TEXT_BYTES_MAX = 100_000
_KNOWN_MAX = 2_000  # predicates and classes that are looked through for near ones
_TSV = "text/tab-separated-values"
_SPARQL, _UPDATE = "/sparql", "/update"
_PURGED = "x-history-purged"  # see `serve.graph.purges.PurgeMark`


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. run raises ToolFailure."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Callable[[GraphCalls, Any], Awaitable[str]]
    is_read_only: bool = True


Graph = Annotated[
    str | None, Field(description="IRI of a named graph to look into; without it, the default graph")
]
Words = Annotated[str, Field(min_length=1, max_length=500, description="words; all must occur, in any order")]
Iri = Annotated[str, Field(min_length=1, max_length=4_000, description="an absolute IRI, without < >")]


class SchemaArguments(Arguments):
    class_iri: Annotated[
        str | None, Field(description="a class: its properties in detail, in place of the overview")
    ] = None
    graph: Graph = None


class FindArguments(Arguments):
    words: Words
    graph: Graph = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class QueryArguments(Arguments):
    query: Annotated[str, Field(description="a SPARQL 1.2 query, with all its PREFIX declarations")]
    limit: Annotated[int, Field(ge=1, le=ROWS_MAX, description="rows to return at most")] = 100
    explain: Annotated[
        bool, Field(description="return how the query is evaluated and how many triples each pattern matches")
    ] = False
    timeout_seconds: Annotated[float, Field(gt=0, le=300)] = 20
    as_of: Annotated[
        str | int | None,
        Field(description="the graph as it was at a time such as 2026-11-27T08:00:00Z, or at a log index"),
    ] = None

    @property
    def moment(self) -> dict[str, str]:
        return {} if self.as_of is None else {"as_of": str(self.as_of)}


class DescribeArguments(Arguments):
    iri: Iri
    limit: Annotated[int, Field(ge=1, le=ROWS_MAX)] = 100


class ExamplesArguments(Arguments):
    words: Annotated[str, Field(max_length=500, description="words of the question; empty: any example")] = ""
    limit: Annotated[int, Field(ge=1, le=50)] = 5


class SearchArguments(Arguments):
    index: Annotated[str, Field(pattern=r"^[^/?#\s]{1,255}$", description="name or pattern, such as books*")]
    words: Words
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class UpdateArguments(Arguments):
    update: Annotated[str, Field(description="a SPARQL 1.1 update; it is applied as a whole or not at all")]


async def _schema(calls: GraphCalls, arguments: SchemaArguments) -> str:
    within = _within(arguments.graph)
    if arguments.class_iri is not None:
        return await _class_schema(calls, _iri(arguments.class_iri), within)
    classes = await _rows(
        calls, f"SELECT ?c (COUNT(*) AS ?n) {{ {within('?s a ?c')} }} GROUP BY ?c ORDER BY DESC(?n) LIMIT 60"
    )
    predicates = await _rows(
        calls,
        f"SELECT ?p (COUNT(*) AS ?n) {{ {within('?s ?p ?o')} }} GROUP BY ?p ORDER BY DESC(?n) LIMIT 120",
    )
    graphs = await _rows(
        calls, "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ORDER BY DESC(?n) LIMIT 30"
    )
    labels = await _labels(calls, [row["c"] for row in classes])
    written = _Written()
    lines = ["Classes (instances):"]
    lines += [f"  {written(row['c'])} {row['n']}{labels.get(row['c'], '')}" for row in classes]
    lines += ["Predicates (triples):", *(f"  {written(row['p'])} {row['n']}" for row in predicates)]
    lines += ["Named graphs (triples), read by GRAPH <IRI> { ... }:"]
    lines += [f"  <{row['g']}> {row['n']}" for row in graphs] or ["  none"]
    if not predicates and graphs:
        lines.insert(0, "The default graph is empty: the data are in the named graphs below.")
    return "\n".join([*written.prefixes(), *lines])


async def _class_schema(calls: GraphCalls, iri: str, within: Callable[[str], str]) -> str:
    pattern = within(f"?s a {iri} ; ?p ?o")
    kinds = "IF(isIRI(?o), 'IRI', IF(isBlank(?o), 'blank node', STR(DATATYPE(?o))))"
    rows = await _rows(
        calls,
        f"SELECT ?p ?kind (COUNT(*) AS ?n) (SAMPLE(?o) AS ?example) {{ {pattern} BIND ({kinds} AS ?kind) }} "
        "GROUP BY ?p ?kind ORDER BY DESC(?n) LIMIT 200",
    )
    if not rows:
        raise ToolFailure(f"{iri} has no instances. {await _nearest_text(calls, iri[1:-1])}".strip())
    written = _Written()
    lines = [f"Properties of instances of {iri} (triples; kind of value; an example):"]
    for row in rows:
        kind, example = row.get("kind", "literal"), row.get("example", "")[:80]
        lines.append(f"  {written(row['p'])} {row['n']}; {written(kind) if ':' in kind else kind}; {example}")
    return "\n".join([*written.prefixes(), *lines])


async def _find(calls: GraphCalls, arguments: FindArguments) -> str:
    within = _within(arguments.graph)
    words = arguments.words.split()
    text = _contains("?label", words)
    rows = await _rows(
        calls,
        f"SELECT DISTINCT ?s ?p ?label {{ {within('?s ?p ?label')} FILTER (isLiteral(?label)) {text} }} "
        f"LIMIT {arguments.limit}",
    )
    near = [iri for iri in await _known_terms(calls) if all(word.lower() in iri.lower() for word in words)]
    lines = [f"<{row['s']}> {local_name(row['p'])}: {row['label'][:200]}" for row in rows]
    lines += [f"<{iri}> is a predicate or class of the data" for iri in near[: arguments.limit]]
    return "\n".join(lines) or "nothing was found; try fewer or other words"


async def _query(calls: GraphCalls, arguments: QueryArguments) -> str:
    form = {"query": arguments.query, "timeout": str(arguments.timeout_seconds)} | arguments.moment
    if arguments.explain:
        found = (await calls.graph(_SPARQL, form | {"explain": "true"})).json()
        kept = {
            name: found[name]
            for name in ("classification", "scans", "hints", "columns", "evaluation")
            if name in found
        }
        return orjson.dumps(kept, option=orjson.OPT_INDENT_2).decode()[:TEXT_BYTES_MAX]
    accept = f"{_TSV}, text/turtle;q=0.9, application/json;q=0.8"
    reply = (await calls.graph(_SPARQL, form, accept=accept, bytes_max=TEXT_BYTES_MAX)).checked()
    notes = _purged_note(reply)
    text = reply.body.decode(errors="replace")
    if not reply.headers.get("content-type", "").startswith(_TSV):
        cut = [] if reply.is_complete else ["(cut: the answer is longer)"]
        return "\n".join([text, *cut, *notes])
    lines = text.splitlines()
    head, rows = lines[:1], lines[1:] if reply.is_complete else lines[1:-1]
    if not rows:
        return "\n".join([f"no rows. {await _unmatched(calls, arguments)}".strip(), *notes])
    cut = [] if reply.is_complete and len(rows) <= arguments.limit else ["(cut: there are more rows)"]
    return "\n".join([*head, *rows[: arguments.limit], *cut, *notes])


def _purged_note(reply: Reply) -> list[str]:
    """Of a state of the past that lacks what was purged since."""
    index = reply.headers.get(_PURGED)
    if index is None:
        return []
    return [f"(something was purged at log index {index}: this state of the past lacks it)"]


async def _unmatched(calls: GraphCalls, arguments: QueryArguments) -> str:
    """Why a query may have no rows: patterns that match nothing, and known terms that are near theirs."""
    form = {"query": arguments.query, "explain": "true", "timeout": "5"} | arguments.moment
    reply = await calls.graph(_SPARQL, form)
    if reply.status != 200 or not reply.is_complete:
        return ""
    return " ".join(f"{hint[0].upper()}{hint[1:]}." for hint in orjson.loads(reply.body)["hints"])


async def _describe(calls: GraphCalls, arguments: DescribeArguments) -> str:
    iri, limit = _iri(arguments.iri), arguments.limit
    anywhere = "{{ {0} }} UNION {{ GRAPH ?g {{ {0} }} }}".format
    out = await _tsv(calls, f"SELECT ?p ?o ?g {{ {anywhere(f'{iri} ?p ?o')} }} LIMIT {limit}")
    into = await _tsv(calls, f"SELECT ?s ?p ?g {{ {anywhere(f'?s ?p {iri}')} }} LIMIT {limit // 4 + 1}")
    if not out and not into:
        raise ToolFailure(f"nothing is known of {iri}. {await _nearest_text(calls, arguments.iri)}".strip())
    lines = [f"Triples of {iri} (predicate, value, named graph):", *out]
    return "\n".join([*lines, f"Triples that lead to {iri} (subject, predicate, named graph):", *into])


async def _examples(calls: GraphCalls, arguments: ExamplesArguments) -> str:
    sh = WELL_KNOWN["sh"]
    pattern = (
        f"?q <{sh}select>|<{sh}ask>|<{sh}construct>|<{sh}describe> ?text "
        f"OPTIONAL {{ ?q <{WELL_KNOWN['rdfs']}comment> ?comment }}"
    )
    anywhere = f"{{ {pattern} }} UNION {{ GRAPH ?g {{ {pattern} }} }}"
    rows = await _rows(calls, f"SELECT ?comment ?text {{ {anywhere} }} LIMIT {_KNOWN_MAX}")
    words = {word.lower() for word in arguments.words.split()}

    def rank(row: dict[str, str]) -> int:
        text = f"{row.get('comment', '')} {row['text']}".lower()
        return -sum(word in text for word in words)

    found = [row for row in sorted(rows, key=rank) if not words or rank(row)][: arguments.limit]
    texts = [f"# {row.get('comment', 'an example')}\n{row['text'].strip()}" for row in found]
    return "\n\n".join(texts) or "the data have no example queries (sh:SPARQLExecutable) with these words"


async def _search(calls: GraphCalls, arguments: SearchArguments) -> str:
    body = {"query": {"multi_match": {"query": arguments.words, "fields": ["*"], "lenient": True}}}
    reply = await calls.search(f"/{arguments.index}/_search", {**body, "size": arguments.limit})
    hits = reply.json()["hits"]["hits"]
    lines = [
        f"{hit['_index']} {hit['_id']} (score {hit['_score']:.3f}): "
        + orjson.dumps(hit.get("_source", {})).decode()[:1_000]
        for hit in hits
    ]
    return "\n".join(lines) or "nothing was found"


async def _update(calls: GraphCalls, arguments: UpdateArguments) -> str:
    found = (await calls.graph(_UPDATE, {"update": arguments.update})).json()
    return (
        f"{found['message']}: {found['affected_triples']} triples changed, at index {found['snapshot_index']}"
    )


TOOLS = (
    Tool(
        "schema",
        "The schema at a glance: classes with their number of instances, predicates with their number of "
        "triples, named graphs. With class_iri: the properties of its instances. Call this first.",
        SchemaArguments,
        _schema,
    ),
    Tool(
        "find",
        "Find the IRIs of resources, classes and predicates by words in their labels and other texts.",
        FindArguments,
        _find,
    ),
    Tool(
        "query",
        "Evaluate a SPARQL query (SELECT, ASK, CONSTRUCT, DESCRIBE). SELECT answers with tab-separated "
        "terms. An error says where the query is wrong. If there are no rows, the answer names known terms "
        "near those of the query.",
        QueryArguments,
        _query,
    ),
    Tool(
        "describe", "All triples of one resource, and triples that lead to it.", DescribeArguments, _describe
    ),
    Tool("examples", "Example queries that the data's makers have stored.", ExamplesArguments, _examples),
)
SEARCH = Tool(
    "search",
    "Full-text search in a search index; best matches first. The ids of hits are often IRIs of the graph.",
    SearchArguments,
    _search,
)
UPDATE = Tool("update", "Change the data by a SPARQL update.", UpdateArguments, _update, is_read_only=False)


class _Written:
    """IRIs with prefixes where these are well known; those that were used."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}

    def __call__(self, iri: str) -> str:
        found = well_known_name(iri)
        if found is None:
            return f"<{iri}>"
        self._used[found[0]] = WELL_KNOWN[found[0]]
        return f"{found[0]}:{found[1]}"

    def prefixes(self) -> list[str]:
        """PREFIX lines."""
        return [f"PREFIX {prefix}: <{namespace}>" for prefix, namespace in self._used.items()]


def _iri(text: str) -> str:
    """As it stands in a query. Raises ToolFailure."""
    try:
        return str(NamedNode(text))
    except ValueError as error:
        raise ToolFailure(f"{text[:200]!r} is not an absolute IRI: {error}") from None


def _within(graph: str | None) -> Callable[[str], str]:
    if graph is None:
        return lambda pattern: pattern
    name = _iri(graph)
    return lambda pattern: f"GRAPH {name} {{ {pattern} }}"


def _contains(variable: str, words: Iterable[str]) -> str:
    return " ".join(f"FILTER CONTAINS(LCASE(STR({variable})), {Literal(word.lower())})" for word in words)


async def _rows(calls: GraphCalls, query: str) -> list[dict[str, str]]:
    """The rows of a SELECT, each variable with the text of its value."""
    found = (await calls.graph(_SPARQL, {"query": query})).json()
    return [{name: term["value"] for name, term in row.items()} for row in found["results"]["bindings"]]


async def _tsv(calls: GraphCalls, query: str) -> list[str]:
    """The rows of a SELECT as lines, of bounded length in all."""
    reply = (await calls.graph(_SPARQL, {"query": query}, accept=_TSV, bytes_max=TEXT_BYTES_MAX)).checked()
    lines = reply.body.decode(errors="replace").splitlines()[1:]
    return lines if reply.is_complete else [*lines[:-1], "(cut: there is more)"]


async def _labels(calls: GraphCalls, iris: list[str]) -> dict[str, str]:
    if not iris:
        return {}
    values = " ".join(map(_iri, iris))
    label = f"?c <{WELL_KNOWN['rdfs']}label> ?label"
    rows = await _rows(
        calls,
        f"SELECT ?c (MIN(STR(?label)) AS ?text) {{ VALUES ?c {{ {values} }} {{ {label} }} UNION "
        f"{{ GRAPH ?g {{ {label} }} }} }} GROUP BY ?c",
    )
    return {row["c"]: f" ({row['text'][:100]})" for row in rows if row.get("text")}


async def _known_terms(calls: GraphCalls) -> list[str]:
    """Predicates and classes of all graphs."""
    patterns = ("?s ?t ?o", "GRAPH ?g { ?s ?t ?o }", "?s a ?t", "GRAPH ?g { ?s a ?t }")
    found: dict[str, None] = {}
    for pattern in patterns:
        rows = await _rows(calls, f"SELECT DISTINCT ?t {{ {pattern} FILTER isIRI(?t) }} LIMIT {_KNOWN_MAX}")
        found |= dict.fromkeys(row["t"] for row in rows)
    return list(found)


async def _nearest_text(calls: GraphCalls, iri: str) -> str:
    """A sentence about known terms that are like one that is not known; empty where it is known."""
    known = await _known_terms(calls)
    if iri in known:
        return ""
    near = nearest(iri, known)
    return f"Known terms near <{iri}>: {', '.join(f'<{one}>' for one in near)}." if near else ""
