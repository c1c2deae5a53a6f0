"""`ClassShape`: each resource of a class is a document, with the blank nodes below it as objects."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from pyoxigraph import BlankNode, NamedNode, Quad

from graphdb.search.extension.template import value_as_iri
from graphdb.search.following.description import Description
from graphdb.search.following.plans import Plan, Row
from graphdb.search.following.shape import Documents, Selection
from graphdb.search.following.values import document_id

__all__ = ["NESTED_DEPTH_MAX", "ClassShape"]

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
        iris = [iri for one in ids if (iri := value_as_iri(one)) is not None and not one.startswith("_:")]
        if iris:
            yield f"VALUES ?s {{ {' '.join(iris)} }} {self._is_one}"
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
