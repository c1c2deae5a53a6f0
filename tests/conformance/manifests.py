"""The manifests of the conformance suites as cases with file paths; nothing here runs a case.

The suites lie in the `suites` folder of `$GRAPHDB_SHARED`, or of `../shared` beside the project. A file
of a suite also has a public IRI, the base that its relative IRIs are resolved against: the suite's published
address followed by the file's place in it, which is what each `mf:assumedTestBase` says where there is one.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Store, Triple, parse

__all__ = ["Case", "Files", "iri_of", "manifest_graph", "path_of", "read_manifest", "suite_root"]

Node: TypeAlias = NamedNode | BlankNode
Term: TypeAlias = NamedNode | BlankNode | Literal | Triple

PUBLISHED = {
    "w3c-rdf-tests": "https://w3c.github.io/rdf-tests/",
    "w3c-rdf-canon": "https://w3c.github.io/rdf-canon/",
    "w3c-shacl": "https://w3c.github.io/data-shapes/",
}

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"


@dataclass(frozen=True, slots=True)
class Files:
    """An action or a result, as the files it names; what the manifest does not name is None or empty.

    graphs and services pair the graph's name or the endpoint's IRI with its data file. A name may stand
    several times: the files are merged.
    """

    file: Path | None = None  # the action or result is a file itself: syntax tests, query results
    query: Path | None = None  # qt:query
    request: Path | None = None  # ut:request
    data: tuple[Path, ...] = ()  # qt:data, ut:data: the default graph
    graphs: tuple[tuple[str, Path], ...] = ()  # qt:graphData, ut:graphData
    services: tuple[tuple[str, Path], ...] = ()  # qt:serviceData

    @property
    def text_file(self) -> Path | None:
        """The query or update text, wherever this kind of case keeps it."""
        return self.query or self.request or self.file


@dataclass(frozen=True, slots=True)
class Case:
    """One entry of a manifest; IRIs are whole. features joins mf:requires and mf:feature."""

    iri: str
    name: str
    types: frozenset[str]
    action: Files
    result: Files | None
    features: frozenset[str]
    comment: str
    manifest: Path
    node: Node = field(compare=False)
    properties: dict[str, tuple[Term, ...]] = field(compare=False, repr=False)

    @property
    def kinds(self) -> frozenset[str]:
        """The types by their local names, such as "PositiveSyntaxTest11"."""
        return frozenset(iri.rpartition("#")[2] for iri in self.types)


def suite_root() -> Path | None:
    """The folder that holds the suites, or None where it is absent."""
    project = Path(__file__).resolve().parents[2]
    shared = Path(os.environ.get("GRAPHDB_SHARED") or project.parent / "shared")
    suites = (shared / "suites").resolve()
    return suites if suites.is_dir() else None


def iri_of(path: Path) -> str:
    """The public IRI of a file of a suite."""
    suite, _, place = _suites().joinpath(path).resolve().relative_to(_suites()).as_posix().partition("/")
    return PUBLISHED[suite] + place


def path_of(iri: str) -> Path:
    """The file that has this public IRI; a fragment is dropped."""
    iri = iri.partition("#")[0]
    for suite, published in PUBLISHED.items():
        if iri.startswith(published):
            return _suites() / suite / iri.removeprefix(published)
    raise ValueError(f"{iri} is in no suite")


@lru_cache(maxsize=256)
def manifest_graph(path: Path) -> Store:
    """The triples of one manifest file, read against its public IRI. Shared: not to be written."""
    store = Store()
    store.extend(parse(path=str(path), format=RdfFormat.TURTLE, base_iri=iri_of(path)))
    return store


def read_manifest(path: Path) -> list[Case]:
    """Every case of the manifest and of those it includes, in order; what is included twice is read once."""
    return list(_read(path.resolve(), set()))


def _suites() -> Path:
    root = suite_root()
    if root is None:
        raise FileNotFoundError("the conformance suites are absent; set GRAPHDB_SHARED")
    return root


def _read(path: Path, seen: set[Path]) -> Iterator[Case]:
    if path in seen:
        return
    seen.add(path)
    store = manifest_graph(path)
    for manifest in _subjects(store, RDF + "type", NamedNode(MF + "Manifest")):
        for include in _objects(store, manifest, MF + "include"):
            for part in _list(store, include):
                yield from _read(path_of(_text(part)), seen)
        for entries in _objects(store, manifest, MF + "entries"):
            for entry in _list(store, entries):
                yield _case(store, entry, path)


def _case(store: Store, entry: Term, manifest: Path) -> Case:
    assert isinstance(entry, NamedNode | BlankNode)
    properties: dict[str, tuple[Term, ...]] = {}
    for quad in store.quads_for_pattern(entry, None, None):
        properties[quad.predicate.value] = (*properties.get(quad.predicate.value, ()), quad.object)
    action, result = properties.get(MF + "action", ()), properties.get(MF + "result", ())
    features = properties.get(MF + "requires", ()) + properties.get(MF + "feature", ())
    return Case(
        iri=_text(entry),
        name=" ".join(_text(name) for name in properties.get(MF + "name", ())),
        types=frozenset(_text(kind) for kind in properties.get(RDF + "type", ())),
        action=_files(store, action[0]) if action else Files(),
        result=_files(store, result[0]) if result else None,
        features=frozenset(_text(feature) for feature in features),
        comment=" ".join(_text(comment) for comment in properties.get(RDFS + "comment", ())),
        manifest=manifest,
        node=entry,
        properties=properties,
    )


def _files(store: Store, node: Term) -> Files:
    """The files that an action or result names: itself, or those hanging from a blank node."""
    if isinstance(node, NamedNode):
        return Files(file=path_of(node.value) if _in_a_suite(node.value) else None)
    if not isinstance(node, BlankNode):
        return Files()
    return Files(
        query=next(_paths(store, node, QT + "query"), None),
        request=next(_paths(store, node, UT + "request"), None),
        data=(*_paths(store, node, QT + "data"), *_paths(store, node, UT + "data")),
        graphs=(*_graphs(store, node, QT), *_graphs(store, node, UT)),
        services=tuple(_services(store, node)),
    )


def _graphs(store: Store, node: Node, vocabulary: str) -> Iterator[tuple[str, Path]]:
    """Named graphs: the file's own IRI is the name, unless a blank node gives a label beside the file."""
    for graph in _objects(store, node, vocabulary + "graphData"):
        if isinstance(graph, NamedNode):
            yield graph.value, path_of(graph.value)
        elif isinstance(graph, BlankNode):
            label = next(_objects(store, graph, RDFS + "label"))
            yield from ((_text(label), path) for path in _paths(store, graph, vocabulary + "graph"))


def _services(store: Store, node: Node) -> Iterator[tuple[str, Path]]:
    for service in _objects(store, node, QT + "serviceData"):
        assert isinstance(service, BlankNode)
        endpoint = next(_objects(store, service, QT + "endpoint"))
        yield from ((_text(endpoint), path) for path in _paths(store, service, QT + "data"))


def _paths(store: Store, node: Node, predicate: str) -> Iterator[Path]:
    return (path_of(_text(value)) for value in _objects(store, node, predicate))


def _in_a_suite(iri: str) -> bool:
    return any(iri.startswith(published) for published in PUBLISHED.values())


def _subjects(store: Store, predicate: str, value: Term) -> Iterator[Node]:
    for quad in store.quads_for_pattern(None, NamedNode(predicate), value):
        assert isinstance(quad.subject, NamedNode | BlankNode)
        yield quad.subject


def _objects(store: Store, node: Node, predicate: str) -> Iterator[Term]:
    return (quad.object for quad in store.quads_for_pattern(node, NamedNode(predicate), None))


def _list(store: Store, head: Term) -> Iterator[Term]:
    """The members of an RDF list; a node that is no list stands for itself, as some manifests have it."""
    if head == NamedNode(RDF + "nil"):
        return
    assert isinstance(head, NamedNode | BlankNode)
    first = next(_objects(store, head, RDF + "first"), None)
    if first is None:
        yield head
        return
    yield first
    for rest in _objects(store, head, RDF + "rest"):
        yield from _list(store, rest)


def _text(term: Term) -> str:
    return "" if isinstance(term, Triple) else term.value
