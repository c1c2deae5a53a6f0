"""Random requests for validations: shapes right, almost right, and given in ways that nobody asked for."""

import json
from random import Random
from urllib.parse import quote_from_bytes

from tests.support.fuzzing.mutations import mutated

__all__ = ["random_shacl"]

_PREFIXES = b"PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX x: <http://e/>\n"
_SHAPES = tuple(
    _PREFIXES + each
    for each in b"""
x:S a sh:NodeShape ; sh:targetClass x:C ; sh:property [ sh:path x:p ; sh:minCount 1 ; sh:maxCount 2 ] .

x:S sh:targetNode x:a , 1 ; sh:nodeKind sh:IRI ; sh:not [ sh:path x:p ; sh:datatype x:d ] .

x:S sh:targetSubjectsOf x:p ; sh:closed true ; sh:ignoredProperties ( x:q ) ; sh:property [ sh:path x:p ] .

x:S sh:targetObjectsOf x:p ; sh:pattern "^a(b|c)*$" ; sh:flags "i" ; sh:in ( 1 "a"@en x:b ) .

x:S sh:targetClass x:C ; sh:or ( [ sh:class x:D ] [ sh:hasValue x:v ] ) ; sh:severity sh:Info .

x:S sh:targetClass x:C ; sh:property [ sh:path ( [ sh:inversePath x:p ] [ sh:zeroOrMorePath x:q ] ) ;
  sh:uniqueLang true ; sh:languageIn ( "en" ) ; sh:lessThan x:r ; sh:message "{$this} {?value}"@en ] .

x:S sh:targetNode x:a ; sh:property [ sh:path [ sh:alternativePath ( x:p x:q ) ] ;
  sh:qualifiedValueShape [ sh:minInclusive 3 ; sh:maxLength 9 ] ; sh:qualifiedMinCount 1 ] .

x:S sh:targetNode x:a ; sh:sparql [
  sh:select 'SELECT $this ?value { $this ?p ?value FILTER(?value > 1) }' ] .

x:S sh:targetNode x:a ; sh:node x:T . x:T sh:xone ( x:U x:V ) . x:U sh:class x:C . x:V sh:equals x:q .

x:S sh:targetNode x:a ; sh:deactivated true ; sh:property x:S .""".split(b"\n\n")
)
_GRAPHS = ("default", "union", "http://e/g", "http://e/none", "all", "", "\u0000", "_:b", "<http://e/g>")


def random_shacl(random: Random) -> tuple[bytes, bytes, bytes, bytes]:
    """Method, target, media type, body."""
    shapes = random.choice(_SHAPES)
    if random.random() < 0.6:
        shapes = mutated(random, shapes, _SHAPES)
    target = b"/shacl/validate" + _query(random)
    if random.random() < 0.5:
        return b"POST", target, b"text/turtle", shapes
    fields: dict[str, object] = {"shapes": shapes.decode("latin-1")}
    for name in ("graph", "shapes_graph", "shapes", "nope"):
        if random.random() < 0.15:
            fields[name] = random.choice((*_GRAPHS, None, 1, [], {}))
    if random.random() < 0.1:
        fields.pop("shapes", None)
    body = json.dumps(fields).encode()
    if random.random() < 0.1:
        body = mutated(random, body, _SHAPES)
    return b"POST", target, b"application/json", body


def _query(random: Random) -> bytes:
    pairs = []
    for name, values in (
        ("graph", _GRAPHS),
        ("shapes_graph", _GRAPHS),
        ("format", ("json", "rdfxml", "nope")),
    ):
        if random.random() < 0.1:
            pairs.append(f"{name}={quote_from_bytes(random.choice(values).encode())}".encode())
    return b"?" + b"&".join(pairs) if pairs else b""
