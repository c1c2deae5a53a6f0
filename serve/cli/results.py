"""How the results of queries are printed: tables with short names, and explanations."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

from serve.cli.console import out, print_table

__all__ = ["find_prefixes", "print_explanation", "results_table", "show_term"]

Binding: TypeAlias = Mapping[str, Any]  # a term of the SPARQL results JSON format
WELL_KNOWN = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_PREFIX = re.compile(r"\bPREFIX\s+([^\s:]*):\s*<([^>]*)>", re.IGNORECASE)
_LOCAL_NAME = re.compile(r"[\w][\w-]*(\.[\w-]+)*")


def find_prefixes(query: str) -> dict[str, str]:
    """The prefixes that the query declares, and the usual ones: prefix to namespace."""
    return WELL_KNOWN | {prefix: namespace for prefix, namespace in _PREFIX.findall(query) if namespace}


def results_table(
    variables: Sequence[str], rows: Sequence[Mapping[str, Binding]], prefixes: Mapping[str, str]
) -> Table:
    """A table with a column a variable; an unbound variable is an empty cell."""
    table = Table(show_edge=False, pad_edge=False)
    for variable in variables:
        numeric = any(variable in row for row in rows) and all(
            _is_number(row[variable]) for row in rows if variable in row
        )
        table.add_column(variable, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(show_term(row[name], prefixes)) if name in row else "" for name in variables))
    return table


def show_term(term: Binding, prefixes: Mapping[str, str]) -> str:
    """A term as Turtle would write it, but literals without quotes, and datatypes left out."""
    value = term["value"]
    match term["type"]:
        case "uri":
            return _show_iri(value, prefixes)
        case "bnode":
            return f"_:{value}"
        case "triple":
            parts = (show_term(value[part], prefixes) for part in ("subject", "predicate", "object"))
            return f"<<( {' '.join(parts)} )>>"
    language = term.get("xml:lang")
    direction = term.get("its:dir")
    return str(value) + (f" @{language}" if language else "") + (f"--{direction}" if direction else "")


def _show_iri(iri: str, prefixes: Mapping[str, str]) -> str:
    for prefix, namespace in prefixes.items():
        if iri.startswith(namespace) and _LOCAL_NAME.fullmatch(iri[len(namespace) :]):
            return f"{prefix}:{iri[len(namespace) :]}"
    return f"<{iri}>"


def _is_number(term: Binding) -> bool:
    datatype = str(term.get("datatype", ""))
    return datatype.removeprefix(WELL_KNOWN["xsd"]) in {
        "integer",
        "decimal",
        "double",
        "float",
        "int",
        "long",
    }


def print_explanation(found: Mapping[str, Any]) -> None:
    """Print an explanation: the evaluation and its reasons, the scans, and the limits that the query is
    close to.
    """
    _print_evaluation(found["evaluation"])
    classification = found["classification"]
    _print(f"usually evaluated {classification['evaluated']}:")
    for reason in classification["reasons"]:
        _print(f"  {reason}")
    _print(f"the answer {'can' if classification['cacheable'] else 'cannot'} be kept")
    query = found["query"]
    if query["engine_text"] != query["text"]:
        _print(f"\nas the engine gets it:\n{query['engine_text']}")
    if found["scans"]:
        out.print()
        print_table(_scans(found["scans"]))
    for lookup in found["lookups"]:
        _print(_lookup(lookup))
    out.print()
    print_table(_complexity(found["complexity"]))
    out.print()
    print_table(_ways(found["ways"]))


def _print(line: str) -> None:
    out.print(line, markup=False)


def _print_evaluation(evaluation: Mapping[str, Any]) -> None:
    rows = evaluation["rows"]
    counted = "" if rows is None else f", {rows:,} {'row' if rows == 1 else 'rows'}"
    seconds = f"{evaluation['seconds']:.3f} s"
    index = f"{'' if evaluation['snapshot_exact'] else 'or after '}index {evaluation['snapshot_index']}"
    _print(f"{evaluation['outcome']}{counted} in {seconds} by {evaluation['where']}, at {index}")
    if evaluation["error"] is not None:
        _print(f"  {evaluation['error']}")


def _ways(ways: list[Mapping[str, Any]]) -> Table:
    """What answering takes by each way."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("way")
    for name in ("rows, estimated", "ms, estimated", "ms, taken"):
        table.add_column(name, justify="right")
    table.add_column("", overflow="fold")
    for way in ways:
        figures = (way["estimated_rows"], way["estimated_ms"], way["took_ms"])
        said = "chosen" if way["chosen"] else f"not possible: {way['reason']}" if way["reason"] else ""
        table.add_row(way["way"], *("" if each is None else f"{each:,}" for each in figures), Text(said))
    return table


def _scans(scans: list[Mapping[str, Any]]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("pattern", overflow="fold")
    table.add_column("quads", justify="right")
    for scan in scans:
        if scan["quads"] is None:
            count = "not counted"
        else:
            count = f"{scan['quads']:,}{'' if scan['complete'] else ' or more'}"
        table.add_row(Text(scan["pattern"]), count)
    return table


def _lookup(lookup: Mapping[str, Any]) -> str:
    what = f"spatial index, ?{lookup['variable']} {lookup['sought']}"
    if lookup["values"] is None:
        return f"{what}: not used, for {lookup['reason']}"
    return f"{what}: {lookup['values']:,} values"


def _complexity(complexity: Mapping[str, Mapping[str, Any]]) -> Table:
    """What the query has any of."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("complexity")
    table.add_column("of this query", justify="right")
    table.add_column("at most", justify="right")
    table.add_column("set by")
    for name, figure in complexity.items():
        if figure["value"]:
            table.add_row(
                name.replace("_", " "), f"{figure['value']:,}", f"{figure['limit']:,}", figure["setting"]
            )
    return table
