"""Scripts over columns: the value of an expression for many documents at once, in NumPy.

It covers scripts that compute numbers and booleans of numbers: `doc['f'].value`, `size()`, `empty`, dates as
`millis`, `_score`, parameters, arithmetic, comparisons, `?:`, `&&`, `||`, `!`, `Math`, functions of vectors,
local variables that are set once, `if` with `return`. A branch is evaluated for those documents only that
come to it, so it fails for the same documents as the interpreter, where all else is sent (`NotColumnar`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphdb.search.leaf_reader import Floats, Longs
from graphdb.search.scripts.documents import DOC_FUNCTIONS, Documents, no_value
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.parser import Node
from graphdb.search.scripts.static_methods import CONSTANTS
from graphdb.search.scripts.values import BINARY, Budget, negated

__all__ = ["NotColumnar", "evaluated", "single_expression"]


class NotColumnar(Exception):
    """The script has to be interpreted, document by document."""


# The statements of a script as one expression.


def single_expression(tree: Node) -> Node | None:
    """None where it is none."""
    try:
        return _sequence(tree.nodes, 0)
    except NotColumnar:
        return None


def _sequence(statements: Sequence[Node], depth: int) -> Node:
    if not statements or depth > 50:
        raise NotColumnar
    first, rest = statements[0], statements[1:]
    if first.kind == "return" and first.parts:
        return _expression(first.parts[0])
    if first.kind == "expression_statement" and not rest:
        return _expression(first.parts[0])
    if first.kind == "declare" and first.parts[0] == "def":
        inner = _sequence(rest, depth + len(first.nodes))
        for one in reversed(first.nodes):
            if len(one.parts) != 2:
                raise NotColumnar
            inner = Node("let", (one.parts[0], _expression(one.parts[1]), inner), one.at)
        return inner
    if first.kind == "if":
        test, *branches = first.nodes
        then = _sequence(_statements(branches[0]), depth + 1)
        other = _statements(branches[1]) if len(branches) > 1 else []
        return Node("conditional", (_expression(test), then, _sequence([*other, *rest], depth + 1)), first.at)
    raise NotColumnar


def _statements(body: Node) -> list[Node]:
    """Those of a branch, which has to return: what comes after the `if` is not for its documents."""
    nodes = body.nodes
    return nodes[0].nodes if len(nodes) == 1 and nodes[0].kind == "block" else nodes


def _expression(node: Node) -> Node:
    return _expression(node.parts[0]) if node.kind == "expression" else node


# Its value.

_Value = Any  # an array with one for each document, or a number or boolean that is that of all of them


def evaluated(
    expression: Node,
    documents: Documents,
    docs: Longs,
    scores: Floats | None,
    params: Mapping[str, Any],
) -> _Value:
    """For the documents docs of a leaf; scores are those of all of its documents.

    Raises ScriptFault, NotColumnar.
    """
    with np.errstate(all="ignore"):
        return _Evaluation(documents, scores, params).of(expression, docs, {})


class _Evaluation:
    def __init__(self, documents: Documents, scores: Floats | None, params: Mapping[str, Any]) -> None:
        self._documents, self._scores, self._params = documents, scores, params
        self._budget = Budget()

    def of(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        evaluate: Callable[..., _Value] | None = getattr(self, f"_{node.kind}", None)
        if evaluate is None:
            raise NotColumnar
        try:
            value = evaluate(node, docs, variables)
        except ScriptFault as fault:
            raise fault.placed(node.at) from None
        # what NumPy makes of numbers alone is a number
        return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value

    def _expression(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        return self.of(node.parts[0], docs, variables)

    def _constant(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        return _number(node.parts[0])

    def _let(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        name, value, inner = node.parts
        return self.of(inner, docs, {**variables, name: self.of(value, docs, variables)})

    def _name(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        name = node.parts[0]
        if name in variables:
            return variables[name]
        if name == "_score" and self._scores is not None:
            return self._scores[docs].astype(np.float64)
        raise NotColumnar

    def _conditional(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        test, then, other = node.parts
        found = _truth(self.of(test, docs, variables))
        if isinstance(found, bool):
            return self.of(then if found else other, docs, variables)
        first = self.of(then, docs[found], _picked(variables, found)) if found.any() else None
        second = self.of(other, docs[~found], _picked(variables, ~found)) if not found.all() else None
        if first is None or second is None:
            return first if second is None else second
        if _kind(first) != _kind(second):
            raise NotColumnar
        merged = np.empty(len(docs), _KINDS[_kind(first)])
        merged[found], merged[~found] = first, second
        return merged

    def _binary(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        left, operator, right = node.parts
        if operator in ("&&", "||"):
            return self._junction(left, right, operator == "||", docs, variables)
        one, other = self.of(left, docs, variables), self.of(right, docs, variables)
        if not isinstance(one, np.ndarray) and not isinstance(other, np.ndarray):
            return _number(BINARY[operator](one, other, self._budget))
        kinds = _kind(one), _kind(other)
        if "b" in kinds:
            if kinds == ("b", "b") and operator in ("==", "!="):
                return one == other if operator == "==" else one != other
            raise NotColumnar
        apply = _OPERATORS.get(operator)
        if apply is None:
            raise NotColumnar
        return apply(one, other, kinds == ("i", "i"))

    def _junction(
        self, left: Node, right: Node, is_or: bool, docs: Longs, variables: Mapping[str, _Value]
    ) -> _Value:
        """`&&` and `||`: the right side only for those documents that it decides for."""
        found = _truth(self.of(left, docs, variables))
        if isinstance(found, bool):
            return found if found == is_or else _truth(self.of(right, docs, variables))
        open_ones = ~found if is_or else found
        if not open_ones.any():
            return found
        result = found.copy()
        result[open_ones] = _truth(self.of(right, docs[open_ones], _picked(variables, open_ones)))
        return result

    def _unary(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        operator, inner = node.parts
        value = self.of(inner, docs, variables)
        if not isinstance(value, np.ndarray):
            return negated(operator, value)
        if operator == "!" and _kind(value) == "b":
            return ~value
        if operator in "+-" and _kind(value) != "b":
            return -value if operator == "-" else value
        raise NotColumnar

    def _cast(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        value = self.of(node.parts[1], docs, variables)
        name = str(node.parts[0]).strip("() \t\r\n")
        if name not in ("double", "float") or _kind(value) == "b":
            raise NotColumnar
        return value.astype(np.float64) if isinstance(value, np.ndarray) else float(value)

    # Members and calls.

    def _index(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        return self._parameter(node)

    def _member(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        inner, _, name = node.parts
        path = _doc_field(inner)
        if path is not None:
            return self._field_member(path, name, docs)
        if _is_date_value(inner) and name == "millis":
            return self._moments(inner, docs)
        if inner.kind == "name" and f"{inner.parts[0]}.{name}" in CONSTANTS:
            return _number(CONSTANTS[f"{inner.parts[0]}.{name}"])
        return self._parameter(node)

    def _static_member(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        return _number(CONSTANTS.get(f"{node.parts[0]}.{node.parts[2]}"))

    def _parameter(self, node: Node) -> _Value:
        """`params.a.b` or `params['a']`, where it is a number or a boolean."""
        return _number(self._raw_parameter(node))

    def _raw_parameter(self, node: Any) -> Any:
        node = _expression(node)
        if node.kind == "name" and node.parts[0] == "params":
            return self._params
        if node.kind == "member" and node.parts[1] == ".":
            key = node.parts[2]
        elif node.kind == "index" and _expression(node.parts[1]).kind == "constant":
            key = _expression(node.parts[1]).parts[0]
        else:
            raise NotColumnar
        owner = self._raw_parameter(node.parts[0])
        if not isinstance(owner, Mapping) or not isinstance(key, str) or key not in owner:
            raise NotColumnar
        return owner[key]

    def _field_member(self, path: str, name: str, docs: Longs) -> _Value:
        if name == "value":
            values, has, is_date = self._documents.first_numbers(path)
            if values is None or is_date:
                raise NotColumnar
            if not has[docs].all():
                raise no_value()
            return values[docs]
        if name in ("empty", "length"):
            counts = self._counts(path, docs)
            return counts == 0 if name == "empty" else counts
        raise NotColumnar

    def _counts(self, path: str, docs: Longs) -> Longs:
        counts = self._documents.counts(path)
        if counts is None:
            raise NotColumnar
        return counts[docs]

    def _moments(self, node: Node, docs: Longs) -> _Value:
        """Milliseconds of `doc['date'].value`."""
        values, has, is_date = self._documents.first_numbers(str(_doc_field(node.parts[0])))
        if values is None or not is_date:
            raise NotColumnar
        if not has[docs].all():
            raise no_value()
        return values[docs]

    def _call(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        inner, _, name, arguments = node.parts
        path = _doc_field(inner)
        if path is not None and not arguments.parts:
            if name in ("size", "getLength", "isEmpty"):
                counts = self._counts(path, docs)
                return counts == 0 if name == "isEmpty" else counts
            if name == "getValue":
                return self._field_member(path, "value", docs)
            raise NotColumnar
        if not arguments.parts and name in ("getMillis", "toEpochMilli"):
            if inner.kind == "call" and inner.parts[2] == "toInstant" and not inner.parts[3].parts:
                inner = inner.parts[0]
            if _is_date_value(inner):
                return self._moments(inner, docs)
        if inner.kind == "name" and inner.parts[0] == "Math":
            return self._math(name, arguments, docs, variables)
        raise NotColumnar

    def _static_call(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        if node.parts[0] != "Math":
            raise NotColumnar
        return self._math(node.parts[2], node.parts[3], docs, variables)

    def _math(self, name: str, arguments: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        values = [self.of(one, docs, variables) for one in arguments.nodes]
        function = _MATH.get((name, len(values)))
        if function is None or any(_kind(value) == "b" for value in values):
            raise NotColumnar
        if name not in ("max", "min", "abs") or len({_kind(value) for value in values}) > 1:
            values = [np.asarray(value, np.float64) for value in values]
        return function(*values)

    def _own_call(self, node: Node, docs: Longs, variables: Mapping[str, _Value]) -> _Value:
        name, arguments = node.parts[0], node.parts[1].nodes
        if name in DOC_FUNCTIONS and len(arguments) == 2:
            field = _expression(arguments[1])
            if field.kind != "constant":
                raise NotColumnar
            return DOC_FUNCTIONS[name](
                self._documents, docs, self._raw_parameter(arguments[0]), field.parts[0]
            )
        if name in ("saturation", "sigmoid"):
            values = [np.asarray(self.of(one, docs, variables), np.float64) for one in arguments]
            if name == "saturation" and len(values) == 2:
                return values[0] / (values[0] + values[1])
            if name == "sigmoid" and len(values) == 3:
                powers = values[0] ** values[2]
                return powers / (values[1] ** values[2] + powers)
        raise NotColumnar


def _doc_field(node: Any) -> str | None:
    """The field of `doc['field']` or `doc.field`."""
    node = _expression(node)
    if node.kind == "index" and node.parts[0].kind == "name" and node.parts[0].parts[0] == "doc":
        key = _expression(node.parts[1])
        return key.parts[0] if key.kind == "constant" and isinstance(key.parts[0], str) else None
    if node.kind == "member" and node.parts[0].kind == "name" and node.parts[0].parts[0] == "doc":
        return str(node.parts[2])
    return None


def _is_date_value(node: Any) -> bool:
    """`doc['field'].value`, of a date or not."""
    return node.kind == "member" and node.parts[2] == "value" and _doc_field(node.parts[0]) is not None


def _number(value: Any) -> Any:
    if type(value) not in (bool, int, float):
        raise NotColumnar
    return value


def _picked(variables: Mapping[str, _Value], which: Any) -> dict[str, _Value]:
    return {
        name: value[which] if isinstance(value, np.ndarray) else value for name, value in variables.items()
    }


_KINDS: dict[str, Any] = {"b": np.bool_, "i": np.int64, "f": np.float64}


def _kind(value: _Value) -> str:
    if isinstance(value, np.ndarray):
        return str(value.dtype.kind)
    return "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"


def _truth(value: _Value) -> Any:
    if _kind(value) != "b":
        raise NotColumnar
    return value


def _divided(one: Any, other: Any, is_whole: bool) -> Any:
    if not is_whole:
        return np.true_divide(one, other)
    if np.any(np.equal(other, 0)):
        raise ScriptFault("arithmetic_exception", "/ by zero")
    down = np.floor_divide(one, other)
    is_inexact = (np.remainder(one, other) != 0) & (np.less(one, 0) != np.less(other, 0))
    return down + is_inexact


def _remaining(one: Any, other: Any, is_whole: bool) -> Any:
    if is_whole and np.any(np.equal(other, 0)):
        raise ScriptFault("arithmetic_exception", "/ by zero")
    return np.fmod(one, other)


_OPERATORS: dict[str, Callable[[Any, Any, bool], Any]] = {
    "+": lambda one, other, is_whole: np.add(one, other),
    "-": lambda one, other, is_whole: np.subtract(one, other),
    "*": lambda one, other, is_whole: np.multiply(one, other),
    "/": _divided,
    "%": _remaining,
    "<": lambda one, other, is_whole: np.less(one, other),
    "<=": lambda one, other, is_whole: np.less_equal(one, other),
    ">": lambda one, other, is_whole: np.greater(one, other),
    ">=": lambda one, other, is_whole: np.greater_equal(one, other),
    "==": lambda one, other, is_whole: np.equal(one, other),
    "!=": lambda one, other, is_whole: np.not_equal(one, other),
}


def _rounded(value: Any) -> Any:
    if not np.all(np.abs(value) < 2.0**62):
        raise NotColumnar
    return np.floor(value + 0.5).astype(np.int64)


_MATH: dict[tuple[str, int], Callable[..., Any]] = {
    **{
        (name, 1): getattr(np, name)
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log10", "log1p")
    },
    ("sqrt", 1): np.sqrt,
    ("cbrt", 1): np.cbrt,
    ("asin", 1): np.arcsin,
    ("acos", 1): np.arccos,
    ("atan", 1): np.arctan,
    ("floor", 1): np.floor,
    ("ceil", 1): np.ceil,
    ("rint", 1): np.rint,
    ("signum", 1): np.sign,
    ("abs", 1): np.abs,
    ("round", 1): _rounded,
    ("toRadians", 1): lambda value: value * (math.pi / 180),
    ("toDegrees", 1): lambda value: value * (180 / math.pi),
    ("max", 2): np.maximum,
    ("min", 2): np.minimum,
    ("pow", 2): np.power,
    ("atan2", 2): np.arctan2,
    ("hypot", 2): np.hypot,
}
