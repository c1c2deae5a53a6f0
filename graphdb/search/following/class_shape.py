"""Documents made of the instances of a class, and the queries that describe them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyoxigraph import BlankNode, NamedNode, Quad

from graphdb.search.extension.template import iri_of
from graphdb.search.following.document_values import Value, document_id, member_names, merged, value_of
from graphdb.search.following.shape import Documents, Plan, Row, Selection, Term
from graphdb.sparql.printing import written_term

__all__ = ["NESTED_DEPTH_MAX", "ClassShape", "Description"]

# What the graph says of some resources, with the blank nodes below them, and the objects made of it.


@dataclass(slots=True)
class Description:
    """Triples by their subject's `_id`: the IRI, or `_:label`."""

    triples: dict[str, dict[str, list[Term]]] = field(default_factory=dict)

    def add(self, rows: Iterable[Row], variable: str = "s") -> bool:
        """Rows of subject, ?p and ?o; whether a blank node is among the objects."""
        found_blank = False
        for row in rows:
            subject = document_id(row[variable])
            assert subject is not None
            self.triples.setdefault(subject, {}).setdefault(row["p"]["value"], []).append(row["o"])
            found_blank = found_blank or row["o"]["type"] == "bnode"
        return found_blank

    def document(self, subject: str, depth: int) -> dict[str, Any]:
        """One resource, with blank nodes up to that depth below it."""
        return {"id": subject, **self._members(subject, (subject,), depth, ("id",))}

    def _members(
        self, subject: str, path: Sequence[str], depth: int, taken: Sequence[str] = ()
    ) -> dict[str, Value]:
        properties = self.triples.get(subject, {})
        names = member_names(properties, taken)
        gathered: dict[str, list[Value]] = {}
        for iri, terms in properties.items():
            for term in terms:
                for name, value in self._values(names[iri], term, path, depth):
                    gathered.setdefault(name, []).append(value)
        return {name: merged(gathered[name]) for name in sorted(gathered)}

    def _values(self, name: str, term: Term, path: Sequence[str], depth: int) -> Iterator[tuple[str, Value]]:
        """A text with a language is also under `name@language`; a blank node above itself is left out."""
        if term["type"] != "bnode":
            yield name, value_of(term)
            if "xml:lang" in term:
                yield f"{name}@{term['xml:lang'].lower()}", value_of(term)
            return
        below = f"_:{term['value']}"
        if depth > 0 and below not in path:
            yield name, self._members(below, (*path, below), depth - 1)


# `ClassShape`: each resource of a class is a document, with the blank nodes below it as objects.

NESTED_DEPTH_MAX = 5  # of blank nodes; what is deeper is left out


class ClassShape:
    """Blank nodes cannot be named in a query. So where one may have changed, its owners are found by looking
    at all blank nodes below the class; resources that are blank nodes are read all together.
    """

    def __init__(self, iri: str, graphs: Sequence[str] = ()) -> None:
        """iri is absolute. graphs: their merge is read; the default graph where none is given."""
        self._is_one = f"?s a <{iri}> ."
        self._from = "".join(f"FROM <{graph}> " for graph in graphs)

    def everything(self) -> Plan[Selection]:
        rows = yield self._select("DISTINCT ?s", self._is_one)
        return Selection(_ids(rows, "s"))

    def owners(self, quads: Iterable[Quad]) -> Plan[set[str] | None]:
        subjects = {quad.subject for quad in quads}
        ids = {subject.value for subject in subjects if isinstance(subject, NamedNode)}
        blank = {f"_:{subject.value}" for subject in subjects if isinstance(subject, BlankNode)}
        for depth in range(1, NESTED_DEPTH_MAX + 1) if blank else ():
            rows = yield self._select(f"DISTINCT ?s (?b{depth} AS ?b)", self._is_one + _below(depth))
            if not rows:
                break
            ids.update(_ids([row for row in rows if document_id(row["b"]) in blank], "s"))
        return ids | blank

    def documents(self, ids: Sequence[str]) -> Plan[Documents]:
        wanted, found = set(ids), Description()
        roots: dict[str, None] = {}
        for head in self._heads(ids):
            rows = yield self._select("?s ?p ?o", f"{head} ?s ?p ?o")
            roots |= dict.fromkeys(_ids(rows, "s"))
            depth, deeper = 0, found.add(rows)
            while deeper and depth < NESTED_DEPTH_MAX:
                depth += 1
                pattern = f"{head}{_below(depth)} ?b{depth} ?p ?o"
                rows = yield self._select(f"DISTINCT (?b{depth} AS ?n) ?p ?o", pattern)
                deeper = found.add(rows, "n")
        return {root: found.document(root, NESTED_DEPTH_MAX) for root in roots if root in wanted}

    def _heads(self, ids: Sequence[str]) -> Iterator[str]:
        """Patterns that bind ?s to those resources, or to more."""
        iris = [iri for one in ids if not one.startswith("_:") and (iri := iri_of(one)) is not None]
        if iris:
            yield f"VALUES ?s {{ {' '.join(map(written_term, iris))} }} {self._is_one}"
        if any(one.startswith("_:") for one in ids):
            yield f"{self._is_one} FILTER(isBlank(?s))"

    def _select(self, columns: str, pattern: str) -> str:
        return f"SELECT {columns} {self._from}WHERE {{ {pattern} }}"


def _below(depth: int) -> str:
    """?b1 is a blank node right below ?s, ?b2 one below that, and so on."""
    nodes = ["?s", *(f"?b{level}" for level in range(1, depth + 1))]
    return "".join(
        f" {parent} ?p{level} {node} . FILTER(isBlank({node}))"
        for level, (parent, node) in enumerate(pairwise(nodes), 1)
    )


def _ids(rows: Iterable[Row], variable: str) -> list[str]:
    ids = (document_id(row[variable]) for row in rows)
    return list(dict.fromkeys(one for one in ids if one is not None))
