"""What the graph says of some resources, with the blank nodes below them, and the objects made of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdb.search.following.plans import Row, Term
from graphdb.search.following.values import Value, document_id, member_names, merged, value_of

__all__ = ["Description"]


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
