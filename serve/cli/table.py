"""Query results as a table that a person can read."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

__all__ = ["find_prefixes", "results_table", "show_term"]

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
