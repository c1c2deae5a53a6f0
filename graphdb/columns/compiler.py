"""From the algebra of a query to SQL over the column view: `compile_query`.

The outermost SELECT returns the numbers of terms, which `results` makes text of, and computed values as text.
A computed cell is the term in the form of N-Triples, NULL for unbound, or, marked by `MARK`, what Python
writes as the engine does: D and a decimal times 10^18, E and a double, F and a float.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pyoxigraph import NamedNode

from graphdb.columns.blocks import Names
from graphdb.columns.catalog import Catalog
from graphdb.columns.expressions import literal_of
from graphdb.columns.groups import Groups, Solutions
from graphdb.columns.term_ids import Tag
from graphdb.columns.triples import Graphs, GraphScope
from graphdb.columns.values import SQL_LENGTH_MAX, NotExact, Rep, Value
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, TripleTerm, Variable

__all__ = ["MARK", "CompiledQuery", "NotCompiled", "Template", "compile_query", "compiled_in", "graphs_of"]

Template: TypeAlias = tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...]
MARK: Final = "\x01"
_MARK = f"chr({ord(MARK)})"
_XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """SQL that answers a query, in the transaction that the catalog was read in.

    form is SELECT, ASK or CONSTRUCT. The rows have a column for each of variables, as `results` reads them;
    those of ASK say only that there is one. absent are the numbers that stand in them for terms that the view
    does not hold, and the terms in N-Triples. template is CONSTRUCT's. The SQL may fail with what the
    engine would have to compute: any error but an interrupt sends the query to a reader. There are at most
    rows_max rows; None where the data decides. is_set: the SQL gives no row twice.
    """

    form: str
    variables: tuple[str, ...]
    sql: str
    absent: Mapping[int, str] = field(default_factory=dict)
    template: Template = ()
    rows_max: int | None = None
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """construct is what has no exact meaning in SQL, in words for `explain`."""

    construct: str


def compile_query(query: AbstractQuery, dataset: Dataset, catalog: Catalog) -> CompiledQuery | NotCompiled:
    """The query over the columns, or why a reader has to answer it.

    dataset is the protocol's, which overrides the query's own.
    """
    try:
        names = Names(catalog)
        compiled = compiled_in(names, query, graphs_of(names, dataset or own_dataset(query)))
    except NotExact as reason:
        return NotCompiled(str(reason))
    if len(compiled.sql) > SQL_LENGTH_MAX:
        return NotCompiled("a query that is too long in SQL")
    return compiled


def compiled_in(names: Names, query: AbstractQuery, graphs: Graphs) -> CompiledQuery:
    """The query where the names are good. Raises NotExact."""
    groups = Groups(names, GraphScope(graphs))
    if query.form == "SELECT":
        solved = groups.select(query.pattern)
        sql = _rendered(names, solved, solved.columns)
        return CompiledQuery("SELECT", solved.columns, sql, names.absent(), rows_max=query.select.rows_max)
    if query.form == "DESCRIBE":
        raise NotExact("DESCRIBE")
    select = query.select
    if select.keys or select.aggregates:
        raise NotExact(f"an aggregate or GROUP BY in {query.form}")
    solved = groups.select(query.pattern, has_columns=False)
    if query.form == "ASK":
        sql = f"{names.with_clause()}SELECT 1{solved.block.rest()}{solved.suffix or ' LIMIT 1'}"
        return CompiledQuery("ASK", (), sql, rows_max=1)
    template = tuple((each.subject, each.predicate, each.object) for each in query.template)
    wanted = dict.fromkeys(name for triple in template for term in triple for name in _names(term))
    columns = tuple(name for name in wanted if name in solved.block.columns)
    has_blanks = any(isinstance(term, BlankNodeLabel) for triple in template for term in triple)
    # equal rows make equal triples; where some rows are left out, it matters how many equal ones there are
    is_set = not (has_blanks or solved.keys or solved.suffix)
    sql = _rendered(names, solved, columns, is_set=is_set)
    return CompiledQuery("CONSTRUCT", columns, sql, names.absent(), template, is_set=is_set)  # type: ignore[arg-type]


def graphs_of(names: Names, dataset: Dataset) -> Graphs:
    """What a dataset's graphs are in the view. Raises NotExact."""
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


def _rendered(names: Names, solved: Solutions, columns: Sequence[str], *, is_set: bool = False) -> str:
    """The SQL of a whole query with these columns. is_set: of equal rows only one is needed."""
    if not columns:
        raise NotExact("a result without columns")
    cells = []
    for number, name in enumerate(columns):
        value = solved.block.columns.get(name)
        if value is not None and Tag.TRIPLE in value.tags:
            raise NotExact("a result that may hold triple terms")
        cells.append(f"{'NULL::VARCHAR' if value is None else _cell(value)} AS v{number}")
    order = f" ORDER BY {', '.join(solved.keys)}" if solved.keys else ""
    distinct = "DISTINCT " if is_set else ""
    return (
        f"{names.with_clause()}SELECT {distinct}{', '.join(cells)}{solved.block.rest()}{order}{solved.suffix}"
    )


def _cell(value: Value) -> str:
    """The number of a term, or the text of a computed one."""
    match value.rep:
        case Rep.ID:
            return value.sql
        case Rep.INTEGER:
            return _typed(f"({value.sql})::VARCHAR", "integer")
        case Rep.BOOLEAN:
            return _typed(f"({value.sql})::VARCHAR", "boolean")
        case Rep.DECIMAL:
            scaled = (
                f"(({value.sql})::HUGEINT * {10 ** (18 - value.scale)}::HUGEINT)"
                if value.scale < 18
                else value.sql
            )
            return f"{_MARK} || 'D' || ({scaled})::VARCHAR"
        case Rep.DOUBLE:
            return f"{_MARK} || 'E' || ({value.sql})::VARCHAR"
        case Rep.FLOAT:
            return f"{_MARK} || 'F' || ({value.sql})::VARCHAR"
        case Rep.STRING:
            return f"'\"' || {_escaped(value.sql)} || '\"'"


def _typed(text: str, datatype: str) -> str:
    return f"'\"' || {text} || '\"^^<{_XSD}{datatype}>'"


def _escaped(sql: str) -> str:
    """As N-Triples has it; a tab too, which ends a cell."""
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        sql = f"replace({sql}, chr({ord(character)}), '{written}')"
    return sql
