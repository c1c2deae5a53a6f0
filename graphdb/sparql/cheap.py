"""Which queries are cheap: those whose work is bounded by the size of their answer.

Such a query can be begun anywhere, even on an event loop, because whoever takes its rows can stop it after a
few. The syntax tree alone decides, without statistics; in doubt a query is not cheap.
"""

from collections.abc import Iterator

from graphdb.geo.entailment import is_derived
from graphdb.sparql.patterns import (
    GraphPattern,
    GroupGraphPattern,
    SelectClause,
    SolutionModifiers,
    TriplePattern,
    TriplesBlock,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, Variable

__all__ = ["FEW_ROWS", "is_cheap", "is_index_scan", "why_not_cheap"]

FEW_ROWS = 1_000  # a LIMIT up to this keeps a pattern cheap that nothing else anchors
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def is_cheap(query: Query) -> bool:
    """Whether every step of the evaluation yields a row of the answer.

    That holds for SELECT and ASK over one triple pattern without a path, in the default graph or in one named
    by an IRI: each is a scan of one index, in which every entry is a row. It does not hold where rows are
    dropped (FILTER, DISTINCT, OFFSET, a variable that stands twice) or collected first (ORDER BY, GROUP BY),
    and not for a join, which may look at any number of rows to find none. The answer shall also be short as
    far as one can tell: a subject or object is given, or a small LIMIT.
    """
    return next(_obstacles(query), None) is None


def why_not_cheap(query: Query) -> tuple[str, ...]:
    """What keeps a query from being cheap, each in a few words for a person; empty for a cheap one."""
    return tuple(_obstacles(query))


def _obstacles(query: Query) -> Iterator[str]:
    if query.form not in ("SELECT", "ASK"):
        yield f"{query.form} makes triples"
    if query.dataset:
        yield "FROM merges graphs"
    if query.values is not None:
        yield "VALUES joins its rows"
    yield from _obstacles_in_modifiers(query.modifiers)
    triples = _triples(query.where) if query.where is not None else None
    if triples is None:
        yield "the pattern is more than triples in one graph"
    elif len(triples) > 1:
        yield f"{len(triples)} triple patterns are joined"
    elif triples:
        yield from _obstacles_in_scan(query, triples[0])
    elif query.form != "ASK":
        yield "there is no triple pattern"


def _obstacles_in_modifiers(modifiers: SolutionModifiers) -> Iterator[str]:
    for name, given in (
        ("GROUP BY", modifiers.group_by),
        ("HAVING", modifiers.having),
        ("ORDER BY", modifiers.order_by),
    ):
        if given:
            yield f"{name} collects the rows first"
    if modifiers.offset:
        yield "OFFSET drops rows"


def _obstacles_in_scan(query: Query, triple: TriplePattern) -> Iterator[str]:
    if is_derived(triple):
        yield "a topology property looks at geometries"
    elif not is_index_scan(triple.subject, triple.predicate, triple.object):
        yield "the triple pattern has a path, a triple term, or a variable twice"
    elif not _shows_rows(query.select, triple):
        yield "what is selected drops or computes rows"
    elif query.form == "SELECT" and not _is_short(triple, query.modifiers.limit):
        yield f"neither a subject, nor an object other than a class, nor a LIMIT up to {FEW_ROWS} is given"


def _triples(group: GroupGraphPattern) -> tuple[TriplePattern, ...] | None:
    """The triple patterns of a group that holds nothing else, or only GRAPH <iri> with such a group."""
    match group.elements:
        case ():
            return ()
        case (TriplesBlock(triples=triples),):
            return triples
        case (
            GraphPattern(name=Iri(), pattern=GroupGraphPattern(elements=(TriplesBlock(triples=triples),))),
        ):
            return triples
        case _:
            return None


def is_index_scan(*terms: object) -> bool:
    """Whether looking for a pattern of these terms scans one index, and all that is looked at fits."""
    names = []
    for term in terms:
        match term:
            case Variable(name=name):
                names.append(f"?{name}")
            case BlankNodeLabel(label=label):
                names.append(f"_:{label}")
            case Iri() | RdfLiteral():
                pass
            case _:
                return False
    return len(set(names)) == len(names)


def _shows_rows(select: SelectClause | None, triple: TriplePattern) -> bool:
    """Whether each solution puts something into the answer, so that a long answer is soon seen to be long."""
    if select is None:
        return True
    if select.distinct or select.reduced:
        return False
    if select.projections is None:
        return True
    bound = {
        term.name for term in (triple.subject, triple.predicate, triple.object) if isinstance(term, Variable)
    }
    plain = all(projection.expression is None for projection in select.projections)
    return plain and (
        not bound or any(projection.variable.name in bound for projection in select.projections)
    )


def _is_short(triple: TriplePattern, limit: int | None) -> bool:
    if limit is not None and limit <= FEW_ROWS:
        return True
    if _is_constant(triple.subject):
        return True
    return _is_constant(triple.object) and triple.predicate != _TYPE


def _is_constant(term: PatternTerm) -> bool:
    return isinstance(term, Iri | RdfLiteral)


_TYPE = Iri(RDF_TYPE, None)  # type: ignore[arg-type] # equality does not look at the span
