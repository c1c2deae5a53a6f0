"""From the algebra of a query to SQL over the column view: `compile_query`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pyoxigraph import NamedNode

from graphdb.columns.blocks import Names
from graphdb.columns.catalog import Catalog
from graphdb.columns.expressions import literal_of
from graphdb.columns.graph_scope import Graphs, GraphScope
from graphdb.columns.groups import Groups
from graphdb.columns.rendering import rendered
from graphdb.columns.values import SQL_LENGTH_MAX, NotExact
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, TripleTerm, Variable

__all__ = ["CompiledQuery", "NotCompiled", "Template", "compile_query"]

Template: TypeAlias = tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """SQL that answers a query, in the transaction that the catalog was read in.

    form is SELECT, ASK or CONSTRUCT. The rows have a column for each of variables, as `results` reads them;
    those of ASK say only that there is one. unseen are the numbers that stand in them for terms that the view
    does not hold, and the terms in N-Triples. template is CONSTRUCT's. The SQL may fail with what the
    engine would have to compute: any error but an interrupt sends the query to a reader.
    """

    form: str
    variables: tuple[str, ...]
    sql: str
    unseen: Mapping[int, str] = field(default_factory=dict)
    template: Template = ()


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """construct is what has no exact meaning in SQL, in words for `explain`."""

    construct: str


def compile_query(query: AbstractQuery, dataset: Dataset, catalog: Catalog) -> CompiledQuery | NotCompiled:
    """The query over the columns, or why a reader has to answer it.

    dataset is the protocol's, which overrides the query's own.
    """
    try:
        compiled = _compiled(query, dataset or own_dataset(query), catalog)
    except NotExact as reason:
        return NotCompiled(str(reason))
    if len(compiled.sql) > SQL_LENGTH_MAX:
        return NotCompiled("a query that is too long in SQL")
    return compiled


def _compiled(query: AbstractQuery, dataset: Dataset, catalog: Catalog) -> CompiledQuery:
    names = Names(catalog, query.pattern)
    groups = Groups(names, GraphScope(_graphs(names, dataset)))
    if query.form == "SELECT":
        solved = groups.select(query.pattern)
        sql = rendered(names, solved.block, solved.columns, solved.keys, solved.suffix)
        return CompiledQuery("SELECT", solved.columns, sql, names.unseen())
    if query.form == "DESCRIBE":
        raise NotExact("DESCRIBE")
    select = query.select
    if select.keys or select.aggregates:
        raise NotExact(f"an aggregate or GROUP BY in {query.form}")
    solved = groups.select(query.pattern, has_columns=False)
    if query.form == "ASK":
        sql = f"{names.with_clause()}SELECT 1{solved.block.rest()}{solved.suffix or ' LIMIT 1'}"
        return CompiledQuery("ASK", (), sql)
    template = tuple((each.subject, each.predicate, each.object) for each in query.template)
    wanted = dict.fromkeys(name for triple in template for term in triple for name in _names(term))
    columns = tuple(name for name in wanted if name in solved.block.columns)
    sql = rendered(names, solved.block, columns, solved.keys, solved.suffix)
    return CompiledQuery("CONSTRUCT", columns, sql, names.unseen(), template)  # type: ignore[arg-type]


def _graphs(names: Names, dataset: Dataset) -> Graphs:
    if not dataset:
        return Graphs()
    default = _numbers(names, dataset.default_graphs)
    if len(set(default)) < len(default):
        raise NotExact("a graph that is in the default graph twice")
    return Graphs(default, _numbers(names, dataset.named_graphs))


def _numbers(names: Names, graphs: Sequence[NamedNode]) -> tuple[int, ...]:
    numbers = [names.constant(graph).constant for graph in graphs]
    return tuple(number for number in numbers if number is not None)


def _names(term: object) -> list[str]:
    match term:
        case Variable(name=name):
            return [name]
        case TripleTerm():
            raise NotExact("a triple term in a template")
        case RdfLiteral():
            # an answer's triples go through a store, which writes numbers and dates in its own way
            if literal_of(term).value != term.value:
                raise NotExact("a literal in a template that is not in the form of its value")
            return []
        case Iri() | BlankNodeLabel():
            return []
    raise NotExact("a path in a template")
