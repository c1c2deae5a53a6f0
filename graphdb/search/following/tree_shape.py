"""`TreeShape`: the targets of a SHACL node shape are documents, its properties their members."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from graphdb.search.extension.template import iri_of
from graphdb.search.following.document_values import (
    RDF_TYPE,
    Value,
    document_id,
    merged,
    resource_id,
    value_of,
)
from graphdb.search.following.shacl_tree import Member, NodeTree, Step
from graphdb.search.following.shape import Documents, Plan, Row, Selection, Term, batches
from graphdb.sparql.printing import written_term

__all__ = ["TreeShape"]

_SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
_NAMED_AT_ONCE = 500
_NAME_CHARACTERS_MAX = 1_000

_Found: TypeAlias = Mapping[tuple[Member, ...], Mapping[str, Sequence[Term]]]
"""By the members from the top of the tree, then by the node that has them: values."""


class TreeShape:
    """What is above a resource that changed is found by going the paths of the tree back."""

    def __init__(self, tree: NodeTree, graphs: Sequence[str] = ()) -> None:
        """graphs: their merge is read; the default graph where none is given."""
        self._tree = tree
        self._from = "".join(f"FROM <{graph}> " for graph in graphs)
        self._is_target = " UNION ".join(f"{{ {pattern} }}" for pattern in _target_patterns(tree))

    def tree(self) -> Plan[NodeTree]:
        """As it was given."""
        yield from ()
        return self._tree

    def everything(self) -> Plan[Selection]:
        rows = yield self._select("DISTINCT ?s", self._is_target)
        return Selection(_ids(rows, "s"))

    def owners(self, quads: Iterable[Quad]) -> Plan[set[str] | None]:
        quads = list(quads)
        if self._tree.classes and any(quad.predicate.value == _SUBCLASS for quad in quads):
            return None
        found = self._new_targets(quads)
        for path in _prefixes(self._tree.members):
            *before, last = path
            nodes = {quad.object if last.inverse else quad.subject for quad in quads if _is_along(quad, last)}
            if before:
                if any(_name_of(node) is None and not isinstance(node, BlankNode) for node in nodes):
                    return None
                found |= yield from self._roots(before, nodes)
            else:
                found |= {resource_id(node) for node in nodes if isinstance(node, NamedNode | BlankNode)}
        return found

    def documents(self, ids: Sequence[str]) -> Plan[Documents]:
        roots: list[str] = []
        found: dict[tuple[Member, ...], dict[str, list[Term]]] = {}
        for head in self._heads(ids):
            rows = yield self._select("DISTINCT ?s", head)
            roots += _ids(rows, "s")
            for line in _lines(self._tree.members) if rows else ():
                yield from self._read(head, line, found)
        wanted = set(ids)
        return {
            root: {"id": root, **_members(root, (), self._tree.members, found)}
            for root in roots
            if root in wanted
        }

    def _read(
        self, head: str, line: tuple[Member, ...], found: dict[tuple[Member, ...], dict[str, list[Term]]]
    ) -> Plan[None]:
        above = [step for member in line[:-1] for step in member.path]
        path = _path(line[-1].path)
        if above:
            rows = yield self._select("DISTINCT ?n ?v", f"{head} ?s {_path(above)} ?n . ?n {path} ?v")
        else:
            rows = yield self._select("DISTINCT (?s AS ?n) ?v", f"{head} ?s {path} ?v")
        by_node = found.setdefault(line, {})
        for row in rows:
            node = document_id(row["n"])
            if node is not None:
                by_node.setdefault(node, []).append(row["v"])

    def _new_targets(self, quads: Iterable[Quad]) -> set[str]:
        """Resources that these quads may have made targets, or no targets any more."""
        tree, found = self._tree, set[str]()
        for quad in quads:
            predicate = quad.predicate.value
            is_typed = predicate == RDF_TYPE and bool(tree.classes)
            if is_typed or predicate in tree.subjects_of or resource_id(quad.subject) in tree.nodes:
                found.add(resource_id(quad.subject))
            if predicate in tree.objects_of and isinstance(quad.object, NamedNode | BlankNode):
                found.add(resource_id(quad.object))
        return found

    def _roots(self, before: Sequence[Step], nodes: Iterable[Any]) -> Plan[set[str]]:
        """Where the path begins that ends in one of these. It may go through literals."""
        found: set[str] = set()
        names = [name for node in nodes if (name := _name_of(node)) is not None]
        for batch in batches(sorted(names), _NAMED_AT_ONCE):
            named = f"VALUES ?x {{ {' '.join(batch)} }} ?s {_path(before)} ?x"
            found.update(_ids((yield self._select("DISTINCT ?s", named)), "s"))
        blank = {resource_id(node) for node in nodes if isinstance(node, BlankNode)}
        if blank:
            rows = yield self._select("DISTINCT ?s ?x", f"?s {_path(before)} ?x FILTER(isBlank(?x))")
            found.update(_ids([row for row in rows if document_id(row["x"]) in blank], "s"))
        return found

    def _heads(self, ids: Sequence[str]) -> Iterator[str]:
        """Patterns that bind ?s to those of the ids that are targets, or to more."""
        iris = [iri for one in ids if not one.startswith("_:") and (iri := iri_of(one)) is not None]
        if iris:
            values = f"VALUES ?s {{ {' '.join(map(written_term, iris))} }}"
            yield " UNION ".join(f"{{ {values} {pattern} }}" for pattern in _target_patterns(self._tree))
        if any(one.startswith("_:") for one in ids):
            yield f"{{ SELECT DISTINCT ?s WHERE {{ {self._is_target} }} }} FILTER(isBlank(?s))"

    def _select(self, columns: str, pattern: str) -> str:
        return f"SELECT {columns} {self._from}WHERE {{ {pattern} }}"


def _target_patterns(tree: NodeTree) -> Iterator[str]:
    for iri in tree.classes:
        yield f"?s <{RDF_TYPE}>/<{_SUBCLASS}>* <{iri}>"
    for iri in tree.subjects_of:
        yield f"?s <{iri}> ?any"
    for iri in tree.objects_of:
        yield f"?any <{iri}> ?s FILTER(!isLiteral(?s))"
    if tree.nodes:
        # a target of which the graph says nothing has nothing to show
        yield f"?s ?any ?else FILTER(?s IN ({', '.join(f'<{iri}>' for iri in tree.nodes)}))"


def _lines(members: Iterable[Member], above: tuple[Member, ...] = ()) -> Iterator[tuple[Member, ...]]:
    """Each member of the tree, with those above it."""
    for member in members:
        yield (*above, member)
        yield from _lines(member.below or (), (*above, member))


def _prefixes(members: Iterable[Member]) -> Iterator[tuple[Step, ...]]:
    """Each beginning of a path from a document into the tree, once."""
    found: dict[tuple[Step, ...], None] = {}
    for line in _lines(members):
        steps = tuple(step for member in line for step in member.path)
        for end in range(1, len(steps) + 1):
            found[steps[:end]] = None
    yield from found


def _name_of(node: Any) -> str | None:
    """As a query names it; None for a blank node, a long text, a triple term."""
    if isinstance(node, NamedNode):
        iri = iri_of(node.value)
        return None if iri is None else written_term(iri)
    is_short = isinstance(node, Literal) and len(node.value) <= _NAME_CHARACTERS_MAX
    return str(node) if is_short else None


def _is_along(quad: Quad, step: Step) -> bool:
    return quad.predicate.value == step.predicate


def _members(
    node: str, above: tuple[Member, ...], members: Iterable[Member], found: _Found
) -> dict[str, Value]:
    gathered: dict[str, list[Value]] = {}
    for member in members:
        line = (*above, member)
        for term in found.get(line, {}).get(node, ()):
            gathered.setdefault(member.name, []).append(_value(term, line, found))
            if "xml:lang" in term:
                gathered.setdefault(f"{member.name}@{term['xml:lang'].lower()}", []).append(value_of(term))
    return {name: merged(gathered[name]) for name in sorted(gathered)}


def _value(term: Term, line: tuple[Member, ...], found: _Found) -> Value:
    below = line[-1].below
    if below is None or term["type"] not in ("uri", "bnode"):
        return value_of(term)
    node = document_id(term)
    assert node is not None
    named = {"id": node} if term["type"] == "uri" else {}
    return {**named, **_members(node, line, below, found)}


def _path(steps: Iterable[Step]) -> str:
    return "/".join(map(str, steps))


def _ids(rows: Iterable[Row], variable: str) -> list[str]:
    """Of resources; literals are no documents."""
    terms = [row[variable] for row in rows if row[variable]["type"] in ("uri", "bnode")]
    return list(dict.fromkeys(one for term in terms if (one := document_id(term)) is not None))
