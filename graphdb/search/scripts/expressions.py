"""The language `expression`: Lucene's expressions, rewritten to the nodes of Painless.

Everything is a double. A parameter is a bare name, a field without a value is 0, and the functions of `Math`
are called by their own names. Source: Elasticsearch's reference, "Lucene expressions language".
"""

from graphdb.search.scripts.faults import unsupported
from graphdb.search.scripts.parser import Node
from graphdb.search.scripts.static_methods import STATIC

__all__ = ["as_painless"]

_RENAMED = {"ln": "log"}
_BOOLEAN = {"<", "<=", ">", ">=", "==", "!=", "&&", "||"}
_COUNTS = {"size", "count", "length"}
_ZERO, _ONE = Node("constant", (0.0,)), Node("constant", (1.0,))


def as_painless(tree: Node) -> Node:
    """Raises ScriptFault for what is no expression."""
    statements = tree.nodes
    if len(statements) != 1 or statements[0].kind != "expression_statement":
        raise unsupported("an expression is one expression, without statements", 0)
    value = _double(statements[0].parts[0])
    return Node("start", (Node("return", (value,), 0, value.size),), 0, value.size)


def _node(kind: str, parts: tuple[object, ...], at: int) -> Node:
    size = 1 + sum(part.size for part in parts if isinstance(part, Node))
    return Node(kind, parts, at, size)


def _inner(node: Node) -> Node:
    return _inner(node.parts[0]) if node.kind == "expression" else node


def _double(node: Node) -> Node:
    """The value of a node as a double."""
    node = _inner(node)
    if _is_boolean(node):
        return _node("conditional", (_boolean(node), _ONE, _ZERO), node.at)
    make = _MAKERS.get(node.kind)
    if make is None:
        raise unsupported(f"[{node.kind}] is not part of an expression", node.at)
    return make(node)


def _is_boolean(node: Node) -> bool:
    return (node.kind == "binary" and node.parts[1] in _BOOLEAN) or (
        node.kind == "unary" and node.parts[0] == "!"
    )


def _boolean(node: Node) -> Node:
    """The value of a node as a boolean: not 0."""
    node = _inner(node)
    if node.kind == "unary" and node.parts[0] == "!":
        return _node("unary", ("!", _boolean(node.parts[1])), node.at)
    if node.kind == "binary" and node.parts[1] in ("&&", "||"):
        left, operator, right = node.parts
        return _node("binary", (_boolean(left), operator, _boolean(right)), node.at)
    if _is_boolean(node):
        left, operator, right = node.parts
        return _node("binary", (_double(left), operator, _double(right)), node.at)
    return _node("binary", (_double(node), "!=", _ZERO), node.at)


def _constant(node: Node) -> Node:
    value = node.parts[0]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise unsupported("an expression has no values but numbers", node.at)
    return Node("constant", (float(value),), node.at)


def _name(node: Node) -> Node:
    name = node.parts[0]
    if name == "_score":
        return node
    if name == "_value":
        raise unsupported("[_value] is not supported in expressions", node.at)
    params = Node("name", ("params",), node.at)
    return _as_double(_node("member", (params, ".", name), node.at))


def _as_double(node: Node) -> Node:
    return _node("cast", ("(double)", node), node.at)


def _binary(node: Node) -> Node:
    left, operator, right = node.parts
    if operator not in "+-*/%":
        raise unsupported(f"the operator [{operator}] is not part of an expression", node.at)
    return _node("binary", (_double(left), operator, _double(right)), node.at)


def _unary(node: Node) -> Node:
    operator, inner = node.parts
    if operator not in "+-":
        raise unsupported(f"the operator [{operator}] is not part of an expression", node.at)
    return _node("unary", (operator, _double(inner)), node.at)


def _conditional(node: Node) -> Node:
    test, then, other = node.parts
    return _node("conditional", (_boolean(test), _double(then), _double(other)), node.at)


def _own_call(node: Node) -> Node:
    name, arguments = str(node.parts[0]), node.parts[1]
    given = tuple(_double(one) for one in arguments.nodes)
    if name in ("min", "max") and len(given) > 2:
        first, *rest = given
        for one in rest:
            first = _math(name, (first, one), node.at)
        return first
    name = _RENAMED.get(name, name)
    if f"Math.{name}" not in STATIC:
        raise unsupported(f"Unrecognized function call ({node.parts[0]}).", node.at)
    return _as_double(_math(name, given, node.at))


def _math(name: str, given: tuple[Node, ...], at: int) -> Node:
    owner = Node("name", ("Math",), at)
    return _node("call", (owner, ".", name, _node("arguments", given, at)), at)


def _field(node: Node) -> bool:
    """Whether it is `doc['field']`."""
    return node.kind == "index" and node.parts[0].kind == "name" and node.parts[0].parts[0] == "doc"


def _of_field(owner: Node, name: str, at: int) -> Node:
    """A property of a field; 0 where the document has no value."""
    no_arguments = Node("arguments", ())
    if name in _COUNTS:
        return _as_double(_node("call", (owner, ".", "size", no_arguments), at))
    is_empty = _node("call", (owner, ".", "isEmpty", no_arguments), at)
    if name in ("empty", "isEmpty"):
        return _node("conditional", (is_empty, _ONE, _ZERO), at)
    if name not in ("value", "getValue", "min"):
        raise unsupported(f"the property [{name}] of a field is not supported in expressions", at)
    value = _as_double(_node("member", (owner, ".", "value"), at))
    return _node("conditional", (is_empty, _ZERO, value), at)


def _member(node: Node) -> Node:
    owner, _, name = node.parts
    if not _field(owner):
        raise unsupported("an expression has no members but those of [doc]", node.at)
    return _of_field(owner, str(name), node.at)


def _call(node: Node) -> Node:
    owner, _, name, arguments = node.parts
    if not _field(owner) or arguments.parts:
        raise unsupported("an expression has no methods but those of [doc]", node.at)
    return _of_field(owner, str(name), node.at)


def _index(node: Node) -> Node:
    if not _field(node):
        raise unsupported("an expression has no elements but those of [doc]", node.at)
    return _of_field(node, "value", node.at)


_MAKERS = {
    "constant": _constant,
    "name": _name,
    "binary": _binary,
    "unary": _unary,
    "conditional": _conditional,
    "own_call": _own_call,
    "member": _member,
    "call": _call,
    "index": _index,
}
