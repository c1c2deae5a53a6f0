"""The saved queries of `graphdb serve --demo`, as `POST /saved-queries` takes them."""

from typing import Any

__all__ = ["DEMO_QUERIES"]

_MUSEUM = "PREFIX m: <https://museum.example/ontology#>\n"


def _query(name: str, description: str, view: str, text: str) -> dict[str, Any]:
    return {"name": name, "description": description, "view": view, "query": text, "shared": True}


DEMO_QUERIES = (
    _query(
        "1 Who made what",
        "Aggregates, as bars: choose Chart",
        "chart",
        _MUSEUM
        + """
SELECT ?artist (COUNT(?work) AS ?works)
WHERE {
  ?work m:creator ?person .
  ?person m:name ?artist .
}
GROUP BY ?artist
ORDER BY DESC(?works) ?artist
""",
    ),
    _query(
        "2 Where the works were made",
        "GeoSPARQL literals on a map",
        "map",
        _MUSEUM
        + """PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX geo: <http://www.opengis.net/ont/geosparql#>

SELECT ?place ?name (COUNT(?work) AS ?works) ?where
WHERE {
  ?place a m:Place ; rdfs:label ?name ; geo:asWKT ?where .
  OPTIONAL { ?work m:depicts ?place }
  FILTER (LANG(?name) = "en")
}
GROUP BY ?place ?name ?where
""",
    ),
    _query(
        "3 Teachers and pupils",
        "A CONSTRUCT, drawn as a graph",
        "graph",
        _MUSEUM
        + """
CONSTRUCT {
  ?pupil m:taughtBy ?teacher .
  ?work m:creator ?pupil .
}
WHERE {
  ?pupil m:taughtBy ?teacher .
  OPTIONAL { ?work m:creator ?pupil }
}
""",
    ),
    _query(
        "4 A painter's whole school",
        "A path of any length: who learned from Ada Holm, directly or through others",
        "table",
        _MUSEUM
        + """PREFIX : <https://museum.example/id/>

SELECT ?pupil ?born (COUNT(DISTINCT ?work) AS ?works)
WHERE {
  ?pupil m:taughtBy+ :ada-holm ; m:born ?born .
  OPTIONAL { ?work m:creator ?pupil }
}
GROUP BY ?pupil ?born
ORDER BY ?born
""",
    ),
    _query(
        "5 Height of the works over the years",
        "Named graphs and numbers; each choice of the chart can be changed",
        "chart",
        _MUSEUM
        + """
SELECT ?year ?height ?kind
WHERE {
  ?work m:year ?year ; m:heightCm ?height ; a ?kind .
}
ORDER BY ?year
""",
    ),
)
