"""Constraints on one value as expressions of SPARQL.

Every expression is true or false for every term: an error would be lost in what stands around it. Within
EXISTS the engine plans as if nothing were bound outside, so there stand single triple patterns only.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from pyoxigraph import NamedNode

from graphdb.shacl.derived_types import DERIVED_TYPES, ZONED, DerivedType
from graphdb.shacl.engine_terms import EngineFunctions, string_text, term_text
from graphdb.shacl.paths import InversePath, PredicatePath, path_text
from graphdb.shacl.shacl_names import RDF_TYPE, XSD, Node, Term
from graphdb.shacl.shape_tree import (
    AllOf,
    ClassConstraint,
    Constraint,
    CountConstraint,
    DatatypeConstraint,
    ExactlyOneOf,
    HasValueConstraint,
    InConstraint,
    LanguageInConstraint,
    LengthConstraint,
    NodeConstraint,
    NodeKindConstraint,
    NotConstraint,
    OneOf,
    PatternConstraint,
    PropertyConstraint,
    QualifiedConstraint,
    RangeConstraint,
    Shape,
)
from graphdb.shacl.shapes import Shapes

__all__ = ["ConditionWriter"]

_CHARACTERS_MAX = 4_000  # of an expression; what is larger is evaluated as sets of nodes
_LISTED_MAX = 50  # terms that are compared one by one
# Types whose lexical forms the engine checks when it casts.
_CAST = frozenset(
    XSD + name
    for name in (
        *("integer", "decimal", "double", "float", "boolean", "dateTime", "date", "time"),
        *("duration", "dayTimeDuration", "yearMonthDuration"),
    )
)
# What the engine's numbers have no room for, and what it therefore keeps as it is and cannot cast.
_LARGE = {XSD + "integer": r"^[+-]?[0-9]+$", XSD + "decimal": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"}
_LANGUAGE_RANGE = re.compile("[A-Za-z0-9]+(-[A-Za-z0-9]+)*")  # RFC 4647; nothing else matches any tag
_KINDS = {"IRI": "isIRI", "BlankNode": "isBlank", "Literal": "isLiteral"}


class ConditionWriter:
    """Writes expressions for the queries of one validation."""

    def __init__(
        self, shapes: Shapes, subclasses: Callable[[Node], list[Term]], functions: EngineFunctions
    ) -> None:
        """subclasses gives a class and its subclasses in the data."""
        self._shapes, self._subclasses, self._functions = shapes, subclasses, functions
        self._numbers: Iterator[int] = count()

    def condition(self, constraint: Constraint, variable: str) -> str | None:
        """True where the value of the variable satisfies the constraint; None where that cannot be said."""
        about_value = self._about_value(constraint, variable)
        if about_value is not None:
            return about_value  # whatever its length: there is no other way for most of them
        text = self._about_shapes(constraint, variable)
        return None if text is None or len(text) > _CHARACTERS_MAX else text

    def qualified(self, constraint: QualifiedConstraint) -> str | None:
        """True where ?value conforms to the shape that is counted, and to none of its siblings."""
        siblings = (self.shape_condition(each, "?value") for each in constraint.siblings)
        others = self._all(siblings, operator=" || ")
        inner = self.shape_condition(constraint.shape, "?value")
        if inner is None or others is None or len(inner) + len(others) > _CHARACTERS_MAX:
            return None
        return f"{inner} && !{others}" if constraint.siblings else inner

    def shape_condition(self, node: Node, variable: str) -> str | None:
        """The same for conforming to a shape."""
        shape = self._shapes[node]
        if shape.deactivated:
            return "true"
        if shape.path is not None:
            return self._property_condition(shape, variable)
        return self._all(self.condition(each, variable) for each in shape.constraints)

    def _about_value(self, constraint: Constraint, variable: str) -> str | None:
        match constraint:
            case DatatypeConstraint():
                return _datatype(constraint.datatype, variable)
            case NodeKindConstraint():
                tests = (f"{_KINDS[kind]}({variable})" for kind in sorted(constraint.kinds))
                return f"({' || '.join(tests)})"
            case RangeConstraint():
                return _safe(f"{variable} {constraint.operator} {term_text(constraint.bound)}")
            case LengthConstraint(most=None):
                return _safe(f"STRLEN(STR({variable})) >= {constraint.least}")
            case LengthConstraint():
                return _safe(f"STRLEN(STR({variable})) <= {constraint.most}")
            case PatternConstraint():
                pattern, flags = string_text(constraint.pattern), string_text(constraint.flags)
                return _safe(f"REGEX(STR({variable}), {pattern}, {flags})")
            case LanguageInConstraint():
                return _safe(_language_matches(constraint.ranges, variable))
            case InConstraint():
                return self._in(constraint.members, variable)
            case HasValueConstraint():  # of a node shape, where the value is the focus node
                return f"sameTerm({variable}, {term_text(constraint.value)})"
            case ClassConstraint():
                return self._class(constraint.cls, variable)
            case _:
                return None

    def _in(self, members: tuple[Term, ...], variable: str) -> str:
        if not members:
            return "false"
        if len(members) > _LISTED_MAX:
            return f"{self._functions.membership(frozenset(members))}({variable})"
        return f"({' || '.join(f'sameTerm({variable}, {term_text(member)})' for member in members)})"

    def _class(self, cls: Node, variable: str) -> str:
        classes = self._subclasses(cls)
        if len(classes) == 1:
            return f"EXISTS {{ {variable} {RDF_TYPE} {cls} }}"
        name = self._name()
        if len(classes) > _LISTED_MAX:
            test = f"{self._functions.membership(frozenset(classes))}({name})"
        else:
            test = f"{name} IN ({', '.join(map(term_text, classes))})"
        return f"EXISTS {{ {variable} {RDF_TYPE} {name} FILTER({test}) }}"

    def _about_shapes(self, constraint: Constraint, variable: str) -> str | None:
        match constraint:
            case NodeConstraint() | PropertyConstraint():
                return self.shape_condition(constraint.shape, variable)
            case NotConstraint():
                inner = self.shape_condition(constraint.shape, variable)
                return None if inner is None else f"(!{inner})"
            case AllOf():
                return self._all(self.shape_condition(each, variable) for each in constraint.shapes)
            case OneOf():
                return self._all(
                    (self.shape_condition(each, variable) for each in constraint.shapes), operator=" || "
                )
            case ExactlyOneOf():
                terms = (self._counted(self.shape_condition(each, variable)) for each in constraint.shapes)
                count = self._all(terms, operator=" + ")
                return None if count is None else f"({count} = 1)"
            case _:
                return None

    def _property_condition(self, shape: Shape, variable: str) -> str | None:
        match shape.path:
            case PredicatePath() | InversePath(path=PredicatePath()):
                path = path_text(shape.path)
            case _:
                return None
        return self._all(self._of_property(each, variable, path) for each in shape.constraints)

    def _of_property(self, constraint: Constraint, variable: str, path: str) -> str | None:
        value, other = self._name(), self._name()
        match constraint:
            case CountConstraint(least=0):
                return "true"
            case CountConstraint(least=1):
                return f"EXISTS {{ {variable} {path} {value} }}"
            case CountConstraint(most=0):
                return f"(!EXISTS {{ {variable} {path} {value} }})"
            case CountConstraint(most=1):
                pattern = f"{variable} {path} {value} . {variable} {path} {other}"
                return f"(!EXISTS {{ {pattern} FILTER(!sameTerm({value}, {other})) }})"
            case HasValueConstraint():
                return f"EXISTS {{ {variable} {path} {term_text(constraint.value)} }}"
            case _:
                inner = self.condition(constraint, value)
                return (
                    None if inner is None else f"(!EXISTS {{ {variable} {path} {value} FILTER(!{inner}) }})"
                )

    def _all(self, conditions: Iterable[str | None], operator: str = " && ") -> str | None:
        parts: list[str] = []
        for condition in conditions:
            if condition is None:
                return None
            parts.append(condition)
        return f"({operator.join(parts)})" if parts else "true"

    def _counted(self, condition: str | None) -> str | None:
        return None if condition is None else f"IF({condition}, 1, 0)"

    def _name(self) -> str:
        """A variable that no other expression has."""
        return f"?c{next(self._numbers)}"


def _safe(expression: str) -> str:
    return f"COALESCE({expression}, false)"


def _language_matches(ranges: tuple[str, ...], variable: str) -> str:
    """LANGMATCHES for one of the ranges, but in one pass."""
    if "*" in ranges:
        return f'LANG({variable}) != ""'
    plain = [each for each in ranges if _LANGUAGE_RANGE.fullmatch(each)]
    pattern = string_text(f"^({'|'.join(plain)})(-|$)")
    return f'REGEX(LANG({variable}), {pattern}, "i")' if plain else "false"


def _datatype(datatype: NamedNode, variable: str) -> str:
    """The datatype is the one, and the literal is not ill-typed (SHACL section 4.1.2)."""
    if datatype.value in DERIVED_TYPES:
        return _derived(DERIVED_TYPES[datatype.value], variable)
    test = f"DATATYPE({variable}) = {datatype}"
    if datatype.value in _CAST:
        cast = f"isLiteral({datatype}({variable}))"
        large = _LARGE.get(datatype.value)
        other = f"REGEX(STR({variable}), {string_text(large)})" if large else "false"
        test += f" && COALESCE({cast}, {other})"
    return _safe(test)


def _derived(derived: DerivedType, variable: str) -> str:
    test = f"DATATYPE({variable}) = <{derived.stored}>"
    if derived.zoned:
        return _safe(f"{test} && REGEX(STR({variable}), {string_text(ZONED)})")
    within = [f"{variable} >= {derived.least}"] if derived.least is not None else []
    if derived.most is not None:
        within.append(f"{variable} <= {derived.most}")
    return _safe(f"{test} && COALESCE({' && '.join(within)}, {_large(derived, variable)})")


def _large(derived: DerivedType, variable: str) -> str:
    """For an integer of more than 64 bits, which the engine does not compare."""
    digits = f"STR({variable})"
    if derived.most is None:
        return f"REGEX({digits}, {string_text(r'^[+]?[0-9]+$')})"
    if derived.least is None:
        return f"REGEX({digits}, {string_text('^-[0-9]+$')})"
    most = str(derived.most)
    within = f"STRLEN({digits}) = {len(most)} && {digits} <= {string_text(most)}"
    shorter = f"STRLEN({digits}) < {len(most)}"
    return f"(REGEX({digits}, {string_text('^[0-9]+$')}) && ({shorter} || {within}))"
