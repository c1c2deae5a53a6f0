"""A SELECT under construction: what it reads, under which conditions, and where each variable stands."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.columns.catalog import Catalog
from graphdb.columns.term_ids import OFFSET, PAYLOAD_MASK, Tag, inline_id, tag_of_term, tagged, text_of
from graphdb.columns.values import DICTIONARY, Elsewhere, NotExact, Rep, Value, has_tag, inexact, quoted
from graphdb.sparql.terms import Variable

__all__ = [
    "Block",
    "Moved",
    "Names",
    "as_id",
    "bound",
    "compatible",
    "either",
    "joined",
    "kind_is",
    "left_joined",
    "lexical",
    "minus",
    "united",
]

Lookup = dict[str, str]
_FIELDS = ("text", "lexical", "datatype", "lang", "num")


@dataclass(frozen=True, slots=True)
class Moved:
    """A pattern whose solutions are in a table already. columns are the table's c0, c1, ... in their order:
    the variable of each, and what is known of its values.
    """

    table: str
    columns: tuple[tuple[Variable, Value], ...]

    def block(self, names: "Names") -> "Block":
        """The solutions."""
        alias = names.alias("m")
        columns = {
            variable.name: value.over(f"{alias}.c{number}")
            for number, (variable, value) in enumerate(self.columns)
        }
        return Block(names, [f"{self.table} {alias}"], [], columns)


@dataclass(slots=True)
class Names:
    """What the parts of one query share: the catalog, fresh aliases, and terms that the view does not hold.

    Such a term gets a number from the top of its tag's range, where the dictionary never comes.
    """

    catalog: Catalog
    has_all_terms: bool = True  # where the SQL runs; a shard has those of its quads
    tables: list[str] = field(default_factory=list)  # of WITH, in the order they need each other
    _numbers: Iterator[int] = field(default_factory=count)
    _absent: dict[NamedNode | BlankNode | Literal | Triple, int] = field(default_factory=dict)
    _constants: dict[int, NamedNode | BlankNode | Literal | Triple] = field(default_factory=dict)

    def apart(self, *, has_all_terms: bool) -> "Names":
        """For another SQL of the same query: aliases and terms are shared, the tables of WITH are not."""
        return replace(self, tables=[], has_all_terms=has_all_terms)

    def alias(self, letter: str) -> str:
        return f"{letter}{next(self._numbers)}"

    def with_clause(self) -> str:
        """WITH and the tables that all parts may read, or nothing."""
        return f"WITH RECURSIVE {', '.join(self.tables)} " if self.tables else ""

    def constant(self, term: NamedNode | BlankNode | Literal | Triple) -> Value:
        number = inline_id(term)
        if number is None:
            number = self.catalog.id_of(term)
        if number is None:
            number = self._absent.setdefault(
                term, tagged(tag_of_term(term), PAYLOAD_MASK - len(self._absent))
            )
        self._constants[number] = term
        tag = tag_of_term(term)
        return Value(str(number), Rep.ID, frozenset((tag,)), nullable=False, constant=number)

    def lexical_of(self, constant: int) -> str:
        """The lexical form of a constant of the query, or its IRI."""
        term = self._constants[constant]
        assert not isinstance(term, Triple)
        return term.value

    def language_of(self, constant: int) -> str:
        """The language of a constant of the query that has one."""
        term = self._constants[constant]
        assert isinstance(term, Literal)
        return term.language or ""

    def literal_of(self, constant: int) -> Literal:
        """A constant of the query that is a literal."""
        term = self._constants[constant]
        assert isinstance(term, Literal)
        return term

    def datatype_of(self, constant: int) -> str:
        """The IRI of the datatype of a constant of the query that is a literal."""
        term = self._constants[constant]
        assert isinstance(term, Literal)
        return term.datatype.value

    def absent(self) -> dict[int, str]:
        """The constants of the query that the view does not hold, in N-Triples, by their numbers."""
        return {number: text_of(term) for term, number in self._absent.items()}

    def terms(self, tags: frozenset[Tag]) -> str:
        """What to look terms of these tags up in."""
        absent = [(term, number) for term, number in self._absent.items() if tag_of_term(term) in tags]
        if not absent:
            return "terms"
        rows = ", ".join(_row(term, number) for term, number in absent)
        fields = "id, text, lexical, datatype, lang, num"
        return f"(SELECT {fields} FROM terms UNION ALL SELECT * FROM (VALUES {rows}) u({fields}))"


@dataclass(slots=True)
class Block:
    """tables is the FROM clause: an item, then joins; empty for the one solution that binds nothing.

    A column's SQL is valid in the SELECT list and in the conditions, and names aliases that are unique in
    the whole query.
    """

    names: Names
    tables: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    columns: dict[str, Value] = field(default_factory=dict)
    lookups: dict[str, Lookup] = field(default_factory=dict)

    def add(self, table: str, join: str = "CROSS JOIN", on: str | None = None) -> None:
        """Read one more table."""
        if not self.tables:
            if join == "LEFT JOIN":
                self.tables.append("(SELECT 1) unit")
            else:
                self.tables.append(table)
                return
        self.tables.append(f"{join} {table}" + (f" ON {on}" if on is not None else ""))

    def lookup(self, value: Value) -> Lookup:
        """The columns of `terms` for a term: NULL for one that is not of the dictionary. Raises Elsewhere."""
        if not (value.is_local or self.names.has_all_terms):
            raise Elsewhere("the text of a term of another shard")
        found = self.lookups.get(value.sql)
        if found is None:
            alias = self.names.alias("t")
            certain = not value.nullable and value.tags <= DICTIONARY
            if not self.tables:
                self.tables.append("(SELECT 1) unit")
            on = f"{alias}.id = {value.sql}"
            tags = value.tags & DICTIONARY
            if tags and not certain:
                # the numbers of a kind stand together: what cannot match is skipped, which DuckDB finds out
                # by itself in an inner join
                on += f" AND {alias}.id BETWEEN {tagged(min(tags), 0)} AND {tagged(max(tags), PAYLOAD_MASK)}"
            self.add(f"{self.names.terms(value.tags)} {alias}", "JOIN" if certain else "LEFT JOIN", on)
            found = {name: f"{alias}.{name}" for name in _FIELDS}
            self.lookups[value.sql] = found
        return found

    def rest(self) -> str:
        """FROM and WHERE."""
        source = f" FROM {' '.join(self.tables)}" if self.tables else ""
        return source + (f" WHERE {' AND '.join(self.conditions)}" if self.conditions else "")

    def wrapped(self, distinct: bool = False, suffix: str = "", with_lookups: bool = False) -> "Block":
        """The same solutions as a single table; suffix follows the SELECT."""
        alias = self.names.alias("q")
        items, columns = [], {}
        for number, (name, value) in enumerate(self.columns.items()):
            items.append(f"{value.sql} AS c{number}")
            columns[name] = value.over(f"{alias}.c{number}")
        lookups: dict[str, Lookup] = {}
        if with_lookups:
            for name, value in self.columns.items():
                if found := self.lookups.get(value.sql):
                    kept = {}
                    for field_name in _FIELDS:
                        items.append(f"{found[field_name]} AS l{len(items)}")
                        kept[field_name] = f"{alias}.l{len(items) - 1}"
                    lookups[columns[name].sql] = kept
        select = (
            f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(items) or '1 AS c'}{self.rest()}{suffix}"
        )
        return Block(self.names, [f"({select}) {alias}"], [], columns, lookups)


def as_id(value: Value) -> Value:
    """A computed value as a term's number. Raises NotExact."""
    match value.rep:
        case Rep.ID:
            return value
        case Rep.INTEGER:
            sql = (
                f"CASE WHEN {value.sql} BETWEEN {-OFFSET} AND {OFFSET - 1} "
                f"THEN ({value.sql} + {tagged(Tag.INTEGER, OFFSET)})::BIGINT "
                f"WHEN {value.sql} IS NOT NULL THEN {inexact('integer of more than 56 bits')} END"
            )
        case Rep.BOOLEAN:
            sql = f"CASE WHEN {value.sql} THEN {tagged(Tag.BOOLEAN, 1)} WHEN NOT {value.sql} "
            sql += f"THEN {tagged(Tag.BOOLEAN, 0)} END"
        case Rep.DECIMAL if value.scale <= 6:
            scaled = f"({value.sql} * {10 ** (6 - value.scale)}::HUGEINT)"
            sql = (
                f"CASE WHEN {scaled} BETWEEN {-(10**16) + 1} AND {10**16 - 1} "
                f"THEN ({scaled} + {tagged(Tag.DECIMAL, OFFSET)})::BIGINT "
                f"WHEN {value.sql} IS NOT NULL THEN {inexact('decimal of more than 16 digits')} END"
            )
        case _:
            raise NotExact(f"computed {value.rep.value} beside stored terms")
    return Value(sql, Rep.ID, value.tags, value.nullable)


def compatible(left: Value, right: Value) -> tuple[str | None, Value]:
    """The condition under which two values of a variable are compatible (None: never), and the joined one."""
    if left.rep is not right.rep or left.rep in (Rep.DECIMAL, Rep.DOUBLE, Rep.FLOAT):
        left, right = as_id(left), as_id(right)
    condition = f"{left.sql} = {right.sql}"
    common = left.tags & right.tags
    if not left.nullable and not right.nullable:
        if not common:
            return None, left
        kept = left if left.constant is not None else right if right.constant is not None else left
        return condition, kept if kept.tags == common else replace(kept, tags=common)
    if not right.nullable:
        return f"({left.sql} IS NULL OR {condition})", right
    if not left.nullable:
        return f"({right.sql} IS NULL OR {condition})", left
    return (
        f"({left.sql} IS NULL OR {right.sql} IS NULL OR {condition})",
        either(left, right),
    )


def either(left: Value, right: Value) -> Value:
    """The left value, or the right one where that is unbound; both stand in SQL in the same way."""
    return replace(
        left,
        sql=f"COALESCE({left.sql}, {right.sql})",
        tags=left.tags | right.tags,
        constant=None,
        is_local=left.is_local and right.is_local,
    )


def joined(left: Block, right: Block) -> Block:
    """The join of two blocks; both are used up."""
    if not (left.columns or left.tables or left.conditions):
        return right
    columns = dict(left.columns)
    conditions = left.conditions + right.conditions
    for name, value in right.columns.items():
        if name in columns:
            condition, columns[name] = compatible(columns[name], value)
            conditions.append("FALSE" if condition is None else condition)
        else:
            columns[name] = value
    tables = list(left.tables)
    if right.tables:
        tables += [f"CROSS JOIN {right.tables[0]}" if tables else right.tables[0], *right.tables[1:]]
    return Block(left.names, tables, conditions, columns, left.lookups | right.lookups)


def left_joined(left: Block, right: Block, extra: Iterable[str] = ()) -> Block:
    """OPTIONAL: right is a single table; extra are further conditions of the match."""
    columns, on = dict(left.columns), [*right.conditions, *extra]
    for name, value in right.columns.items():
        if name not in columns:
            columns[name] = replace(value, nullable=True, constant=None)
            continue
        mine = columns[name]
        condition, both = compatible(mine, value)
        on.append("FALSE" if condition is None else condition)
        if mine.nullable:
            if mine.rep is not both.rep:
                mine = as_id(mine)
            other = as_id(value) if both.rep is Rep.ID else value
            columns[name] = replace(either(mine, other), nullable=True)
    result = Block(left.names, list(left.tables), left.conditions, columns, left.lookups)
    result.add(
        right.tables[0] if right.tables else "(SELECT 1) unit", "LEFT JOIN", " AND ".join(on) or "TRUE"
    )
    return result


def minus(left: Block, right: Block, hidden: str | None) -> None:
    """Keep of left what no solution of right that shares a variable is compatible with.

    The hidden variable of a GRAPH has to be equal, and does not count as shared.
    """
    shared = [name for name in right.columns if name in left.columns and name != hidden]
    if not shared:
        return
    conditions, bound = list(right.conditions), []
    for name in [*shared, *([hidden] if hidden is not None and hidden in right.columns else [])]:
        mine, theirs = left.columns[name], right.columns[name]
        condition, _ = compatible(mine, theirs)
        conditions.append("FALSE" if condition is None else condition)
        if name != hidden:
            bound.append((mine, theirs))
    if all(mine.nullable or theirs.nullable for mine, theirs in bound):
        some = (f"({mine.sql} IS NOT NULL AND {theirs.sql} IS NOT NULL)" for mine, theirs in bound)
        conditions.append(f"({' OR '.join(some)})")
    right = replace(right, conditions=conditions)
    left.conditions.append(f"NOT EXISTS (SELECT 1{right.rest()})")


def united(names: Names, blocks: list[Block]) -> Block:
    """UNION of blocks."""
    order = list(dict.fromkeys(name for block in blocks for name in block.columns))
    columns: dict[str, Value] = {}
    alias = names.alias("q")
    for number, name in enumerate(order):
        present = [block.columns[name] for block in blocks if name in block.columns]
        alike = len({(value.rep, value.scale) for value in present}) == 1
        rep = present[0].rep if alike else Rep.ID
        if not alike:
            present = [as_id(value) for value in present]
        columns[name] = Value(
            f"{alias}.c{number}",
            rep,
            frozenset().union(*(value.tags for value in present)),
            nullable=len(present) < len(blocks) or any(value.nullable for value in present),
            scale=present[0].scale if alike else 0,
            is_local=all(value.is_local for value in present),
        )
    selects = []
    for block in blocks:
        items = []
        for number, name in enumerate(order):
            value = block.columns.get(name)
            if value is not None and columns[name].rep is Rep.ID:
                value = as_id(value)
            missing = "NULL::BIGINT" if columns[name].rep is Rep.ID else "NULL"
            items.append(f"{missing if value is None else value.sql} AS c{number}")
        selects.append(f"SELECT {', '.join(items) or '1 AS c'}{block.rest()}")
    return Block(names, [f"({' UNION ALL '.join(selects)}) {alias}"], [], columns)


def _row(term: NamedNode | BlankNode | Literal | Triple, number: int) -> str:
    """A row for a term that is not in `terms`, as `Names.terms` lists the columns."""
    lexical = quoted(term.value) if not isinstance(term, Triple) else "NULL::VARCHAR"
    datatype, lang, num = "NULL::VARCHAR", "NULL::VARCHAR", "NULL::DOUBLE"
    if isinstance(term, Literal):
        if term.language is not None:
            lang = quoted(term.language + (f"--{term.direction.value}" if term.direction else ""))
        tag = tag_of_term(term)
        if tag is Tag.TYPED or tag >= Tag.BIG_INTEGER:
            datatype = quoted(term.datatype.value)
        if tag >= Tag.BIG_INTEGER:
            num = f"{quoted(term.value)}::DOUBLE"
    return f"({number}::BIGINT, {quoted(str(term))}, {lexical}, {datatype}, {lang}, {num})"


def bound(value: Value) -> str:
    """Whether a variable has a value."""
    return f"({value.sql} IS NOT NULL)" if value.nullable else "TRUE"


def kind_is(value: Value, *tags: Tag) -> str:
    """`has_tag` for a value of any representation."""
    if value.rep is Rep.ID:
        return has_tag(value, tags)
    whether = "TRUE" if value.tags & frozenset(tags) else "FALSE"
    return f"CASE WHEN {value.sql} IS NOT NULL THEN {whether} END" if value.nullable else whether


def lexical(block: Block, value: Value) -> str:
    """The lexical form of a term of the dictionary, or a computed string."""
    if value.rep is Rep.STRING:
        return value.sql
    if value.constant is not None:
        return quoted(block.names.lexical_of(value.constant))
    return block.lookup(value)["lexical"]
