"""The queries that list what a tenant has declared, and what their solutions mean.

Each is one query, so that a list is of one state. Solutions are those of SPARQL results in JSON.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyoxigraph import NamedNode

from graphdb.holonic.names import (
    CONSTRUCT_QUERY,
    HOLON,
    MEMBER_OF,
    SOURCE_HOLON,
    TARGET_HOLON,
    TRANSFORM_PORTAL,
    Layer,
    Tenant,
)
from graphdb.holonic.registry import HolonRecord, Portal

__all__ = [
    "CountedHolon",
    "Solution",
    "holons_of",
    "holons_query",
    "parents_of",
    "parents_query",
    "portals_of",
    "portals_query",
]

Solution: TypeAlias = Mapping[str, Mapping[str, Any]]

_LINKS = ", ".join(str(layer.link) for layer in Layer)


@dataclass(frozen=True, slots=True)
class CountedHolon:
    """A holon, and how many triples each graph holds that holds any, by the graph's IRI."""

    record: HolonRecord
    triples: Mapping[str, int]


def holons_query(tenant: Tenant) -> str:
    """All that the registry states of holons, with the number of triples where it names a graph."""
    return f"""SELECT ?holon ?predicate ?value ?triples WHERE {{
  GRAPH {tenant.registry} {{ ?holon a {HOLON} ; ?predicate ?value }}
  OPTIONAL {{
    SELECT ?value (COUNT(?s) AS ?triples) WHERE {{
      {{ SELECT DISTINCT ?value WHERE {{
        GRAPH {tenant.registry} {{ ?any ?link ?value FILTER(?link IN ({_LINKS})) }}
      }} }}
      GRAPH ?value {{ ?s ?p ?o }}
    }} GROUP BY ?value
  }}
}}"""


def holons_of(tenant: Tenant, solutions: Iterable[Solution]) -> list[CountedHolon]:
    """The holons that the solutions of `holons_query` tell of, by IRI."""
    statements: dict[str, list[tuple[str, str]]] = defaultdict(list)
    triples: dict[str, int] = {}
    for solution in _of_iris(solutions, "holon"):
        value = solution["value"]["value"]
        statements[solution["holon"]["value"]].append((solution["predicate"]["value"], value))
        if "triples" in solution:
            triples[value] = int(solution["triples"]["value"])
    return [
        CountedHolon(HolonRecord.of(tenant, NamedNode(iri), statements[iri]), triples)
        for iri in sorted(statements)
    ]


def portals_query(tenant: Tenant, source: NamedNode | None) -> str:
    """The portals of the tenant, or those of one holon, as boundary graphs describe them."""
    chosen = f"VALUES ?source {{ {source} }} " if source is not None else ""
    return f"""SELECT ?portal ?source ?boundary ?target ?query WHERE {{
  {chosen}GRAPH {tenant.registry} {{
    ?portal a {TRANSFORM_PORTAL} ; {SOURCE_HOLON} ?source . ?source {Layer.BOUNDARY.link} ?boundary
  }}
  GRAPH ?boundary {{ ?portal {TARGET_HOLON} ?target ; {CONSTRUCT_QUERY} ?query }}
}}"""


def portals_of(tenant: Tenant, solutions: Iterable[Solution]) -> list[Portal]:
    """The portals that the solutions of `portals_query` tell of, by IRI; each once."""
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for solution in _of_iris(solutions, "portal", "source", "target"):
        source = NamedNode(solution["source"]["value"])
        if solution["boundary"]["value"] == tenant.layer_graph(source, Layer.BOUNDARY).value:
            rest = (source.value, solution["target"]["value"], solution["query"]["value"])
            found[solution["portal"]["value"]].append(rest)
    return [
        Portal(NamedNode(iri), NamedNode(source), NamedNode(target), query)
        for iri, (source, target, query) in sorted((iri, min(rests)) for iri, rests in found.items())
    ]


def parents_query(tenant: Tenant) -> str:
    """Every holon, with what it is a member of."""
    return f"""SELECT ?holon ?parent WHERE {{
  GRAPH {tenant.registry} {{ ?holon a {HOLON} OPTIONAL {{ ?holon {MEMBER_OF} ?parent }} }}
}}"""


def parents_of(solutions: Iterable[Solution]) -> dict[str, set[str]]:
    """By holon, in the order of their IRIs, what it is a member of."""
    found: dict[str, set[str]] = defaultdict(set)
    for solution in _of_iris(solutions, "holon"):
        parents = found[solution["holon"]["value"]]
        if "parent" in solution:
            parents.add(solution["parent"]["value"])
    return dict(sorted(found.items()))


def _of_iris(solutions: Iterable[Solution], *variables: str) -> Iterable[Solution]:
    """Those in which these variables stand for IRIs; somebody may have written others to the graphs."""
    return (s for s in solutions if all(s[variable]["type"] == "uri" for variable in variables))
