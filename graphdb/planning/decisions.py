"""Which queries are cheap, and which give the same answer again.

A query is cheap if its work is bounded by the size of its answer. It can be begun anywhere, even on an event
loop, because whoever takes its rows can stop it after a few. The algebra alone decides, without statistics.
In doubt a query is not cheap.
"""

from collections.abc import Iterator, Sequence

from graphdb.geo.entailment import is_derived
from graphdb.sparql.algebra import (
    AbstractQuery,
    Algebra,
    Bgp,
    Extend,
    Graph,
    Join,
    Path,
    Select,
    Service,
    TextSearch,
    Values,
    spine_of,
)
from graphdb.sparql.patterns import BuiltInCall, TriplePattern
from graphdb.sparql.search_requests import IndexSearch
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, Variable
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import nodes_of

__all__ = ["FEW_ROWS", "is_cheap", "is_index_scan", "is_repeatable", "why_not_cheap"]

FEW_ROWS = 1_000  # a LIMIT up to this keeps a pattern cheap that nothing else anchors
_DIFFERS_EACH_TIME = frozenset({"BNODE", "NOW", "RAND", "STRUUID", "UUID"})
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def is_cheap(query: Query) -> bool:
    """Whether every step of the evaluation yields a row of the answer.

    That holds for SELECT and ASK over one triple pattern without a path, in the default graph or in one named
    by an IRI: each is a scan of one index, in which every entry is a row. It does not hold where rows are
    dropped (FILTER, DISTINCT, OFFSET, a variable that stands twice) or collected first (ORDER BY, GROUP BY),
    and not for a join, which may look at any number of rows to find none. The answer shall also be short as
    far as one can tell: a subject or object is given, or a small LIMIT.
    """
    return next(_obstacles(abstract_query(query)), None) is None


def why_not_cheap(query: Query) -> tuple[str, ...]:
    """What keeps a query from being cheap, each in a few words for a person; empty for a cheap one."""
    return tuple(_obstacles(abstract_query(query)))


def is_repeatable(query: Query) -> bool:
    """Whether an answer stays right for as long as the state does, so that it may be kept.

    It does not where a function of the clock, of chance or of fresh blank nodes is called, or another
    service is. The labels of blank nodes, and the order of rows where none is asked for, may differ.
    """
    for node in nodes_of(abstract_query(query)):
        match node:
            case Service() | TextSearch(request=IndexSearch()):
                return False
            case BuiltInCall(name=name) if name in _DIFFERS_EACH_TIME:
                return False
    return True


def _obstacles(asked: AbstractQuery) -> Iterator[str]:
    if asked.form not in ("SELECT", "ASK"):
        yield f"{asked.form} makes triples"
    if asked.dataset:
        yield "FROM merges graphs"
    select = asked.select
    operands = _joined(_before_keys(select))
    if select.values is not None or any(isinstance(each, Values) for each in operands or ()):
        yield "VALUES joins its rows"
    yield from _obstacles_in_modifiers(select)
    triples = None if operands is None else _triples(operands)
    if triples is None:
        yield "the pattern is more than triples in one graph"
    elif len(triples) > 1:
        yield f"{len(triples)} triple patterns are joined"
    elif triples:
        yield from _obstacles_in_scan(asked.form, select, triples[0])
    elif asked.form != "ASK":
        yield "there is no triple pattern"
    elif select.extends:
        yield "what is selected drops or computes rows"


def _obstacles_in_modifiers(select: Select) -> Iterator[str]:
    for name, given in (
        ("GROUP BY", select.keys),
        ("HAVING", select.having),
        ("ORDER BY", select.order),
    ):
        if given:
            yield f"{name} collects the rows first"
    if select.start:
        yield "OFFSET drops rows"


def _obstacles_in_scan(form: str, select: Select, triple: TriplePattern | Path) -> Iterator[str]:
    if isinstance(triple, TriplePattern) and is_derived(triple):
        yield "a topology property looks at geometries"
    elif not is_index_scan(triple.subject, triple.predicate, triple.object):
        yield "the triple pattern has a path, a triple term, or a variable twice"
    elif not _shows_rows(select, triple):
        yield "what is selected drops or computes rows"
    elif form == "SELECT" and not _is_short(triple, select.length):
        yield f"neither a subject, nor an object other than a class, nor a LIMIT up to {FEW_ROWS} is given"


def _before_keys(select: Select) -> Algebra:
    """The pattern without the expressions of GROUP BY."""
    where = select.where
    while isinstance(where, Extend) and where.variable in select.keys:
        where = where.pattern
    return where


def _joined(pattern: Algebra) -> list[Algebra] | None:
    """What a group joins; None where it does anything else."""
    first, steps = spine_of(pattern)
    if not all(isinstance(step, Join) for step in steps):
        return None
    return [first, *(step.right for step in steps if isinstance(step, Join))]


def _triples(operands: list[Algebra]) -> list[TriplePattern | Path] | None:
    """The triple patterns that are joined, or those of the one GRAPH <iri>; None where there is more."""
    match [each for each in operands if not isinstance(each, Values)]:
        case [Graph(name=Iri(), pattern=pattern)]:
            return _plain_triples(_joined(pattern)) or None
        case others:
            return _plain_triples(others)


def _plain_triples(operands: Sequence[Algebra] | None) -> list[TriplePattern | Path] | None:
    found: list[TriplePattern | Path] = []
    for operand in (None,) if operands is None else operands:
        match operand:
            case Bgp(triples=triples):
                found += triples
            case Path():
                found.append(operand)
            case _:
                return None
    return found


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


def _shows_rows(select: Select, triple: TriplePattern | Path) -> bool:
    """Whether each solution puts something into the answer, so that a long answer is soon seen to be long."""
    if select.modifier is not None or select.extends:
        return False
    if select.variables is None:
        return True
    ends = (triple.subject, triple.predicate, triple.object)
    bound = {term for term in ends if isinstance(term, Variable)}
    return not bound or any(variable in bound for variable in select.variables)


def _is_short(triple: TriplePattern | Path, limit: int | None) -> bool:
    if limit is not None and limit <= FEW_ROWS:
        return True
    if _is_constant(triple.subject):
        return True
    return _is_constant(triple.object) and triple.predicate != _TYPE


def _is_constant(term: PatternTerm) -> bool:
    return isinstance(term, Iri | RdfLiteral)


_TYPE = Iri(RDF_TYPE, None)  # type: ignore[arg-type] # equality does not look at the span
