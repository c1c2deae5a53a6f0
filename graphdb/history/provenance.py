"""Entries of the history as RDF, with the terms of PROV-O (https://www.w3.org/TR/prov-o/).

An entry is an activity, and who wrote it an agent. A statement that was added or removed is the triple term
of a reifier, which is the entity that the activity generated or invalidated.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.history.pages import Entry
from graphdb.model import UNKNOWN_AUTHOR
from graphdb.timestamps import iso_timestamp

__all__ = ["PREFIXES", "provenance"]

_PROV, _RDF = "http://www.w3.org/ns/prov#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_XSD, _OWN = "http://www.w3.org/2001/XMLSchema#", "urn:graphdb:history#"
PREFIXES = {"prov": _PROV, "rdf": _RDF, "xsd": _XSD, "history": _OWN}
_TYPE, _REIFIES = NamedNode(_RDF + "type"), NamedNode(_RDF + "reifies")
_ACTIVITY, _AGENT, _ENTITY = (NamedNode(_PROV + name) for name in ("Activity", "Agent", "Entity"))
_ENDED, _ASSOCIATED = NamedNode(_PROV + "endedAtTime"), NamedNode(_PROV + "wasAssociatedWith")
_GENERATED, _INVALIDATED = NamedNode(_PROV + "wasGeneratedBy"), NamedNode(_PROV + "wasInvalidatedBy")
_INDEX, _INTERFACE = NamedNode(_OWN + "logIndex"), NamedNode(_OWN + "interface")
_GRAPH, _NAME = NamedNode(_OWN + "graph"), NamedNode(_OWN + "name")


def provenance(entries: Iterable[Entry]) -> Iterator[Quad]:
    """The description of entries, in their order, as triples of the default graph."""
    for entry in entries:
        yield from map(_quad, _of_entry(entry))


def _quad(triple: Triple) -> Quad:
    return Quad(triple.subject, triple.predicate, triple.object, DefaultGraph())


def _of_entry(entry: Entry) -> Iterator[Triple]:
    activity = NamedNode(f"urn:graphdb:entry:{entry.log_index}")
    ended = Literal(iso_timestamp(entry.timestamp_ms), datatype=NamedNode(_XSD + "dateTime"))
    yield Triple(activity, _TYPE, _ACTIVITY)
    yield Triple(activity, _ENDED, ended)
    yield Triple(activity, _INDEX, Literal(entry.log_index))
    name, interface = entry.author
    if interface != UNKNOWN_AUTHOR.interface:
        yield Triple(activity, _INTERFACE, Literal(interface.word))
    if name:
        agent = NamedNode(f"urn:graphdb:principal:{quote(name, safe=':')}")
        yield Triple(activity, _ASSOCIATED, agent)
        yield Triple(agent, _TYPE, _AGENT)
        yield Triple(agent, _NAME, Literal(name))
    number = 0
    for change in entry.changes:
        for role, quads in ((_INVALIDATED, change.removed), (_GENERATED, change.added)):
            for quad in quads:
                number += 1
                statement = BlankNode(f"e{entry.log_index}s{number}")
                yield Triple(statement, _REIFIES, quad.triple)
                yield Triple(statement, _TYPE, _ENTITY)
                yield Triple(statement, role, activity)
                if not isinstance(quad.graph_name, DefaultGraph):
                    yield Triple(statement, _GRAPH, quad.graph_name)
