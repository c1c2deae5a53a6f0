"""From the text of a script to a tree of `Node`s. The grammar is `grammar.lark`."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphdb.search.scripts.faults import ScriptFault, unsupported

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["DEPTH_MAX", "SOURCE_MAX", "Node", "parse"]

SOURCE_MAX = 65_535  # characters: Elasticsearch's script.max_size_in_bytes
DEPTH_MAX = 120  # of expressions and statements in each other
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_LONG_MAX = 2**63


@dataclass(frozen=True, slots=True)
class Node:
    """One rule of the grammar, by the name that it has there.

    parts: `Node`s and texts, in their order. A `constant` has its value as its only part.
    at: place in the text. size: how many nodes there are in it, which is what running it once costs.
    """

    kind: str
    parts: tuple[Any, ...]
    at: int = 0
    size: int = 1
    depth: int = 1

    @property
    def nodes(self) -> "list[Node]":
        """The parts that are nodes."""
        return [part for part in self.parts if isinstance(part, Node)]


def parse(source: str) -> Node:
    """The statements as a node of kind `start`. Raises ScriptFault."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

    if len(source) > SOURCE_MAX:
        reason = f"exceeded max allowed inline script size in bytes [{SOURCE_MAX}]"
        raise unsupported(f"{reason} with size [{len(source)}]")
    try:
        tree: Any = _parser().parse(source + "\n;")
    except UnexpectedToken as error:
        raise _unexpected(source, error.token, error.pos_in_stream or 0) from None
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        shown = source[at : at + 20]
        raise unsupported(f"unexpected character [{shown}].", at) from None
    except VisitError as error:
        if isinstance(error.orig_exc, ScriptFault):
            raise error.orig_exc from None
        raise
    assert isinstance(tree, Node)
    return tree


def _unexpected(source: str, token: Any, at: int) -> ScriptFault:
    if at >= len(source) or token.type == "$END":
        return unsupported("unexpected end of script.", len(source))
    if token == "/" and source[:at].rstrip()[-1:] in ("~", "=", "(", ","):
        return unsupported("regular expressions are not supported in scripts", at)
    return unsupported(f"unexpected token ['{str(token)[:50]}'].", at)


@lru_cache(maxsize=1)
def _parser() -> "Lark":
    from lark import Lark, Transformer, Tree

    class Nodes(Transformer):  # type: ignore[type-arg]
        """Makes nodes while the text is read, so that nothing walks a deep tree."""

        def __default__(self, data: Any, children: list[Any], meta: Any) -> Any:
            # a rule with an underscore becomes a part of the one around it
            return Tree(data, children) if data.startswith("_") else _node(str(data), children)

        def string(self, children: list[Any]) -> Node:
            return Node("constant", (_unescaped(children[0]),), children[0].start_pos)

        def integer(self, children: list[Any]) -> Node:
            text = children[0].rstrip("lL")
            is_hex = text[:2] in ("0x", "0X")
            value = int(text[2:], 16) if is_hex else int(text) if len(text) < 40 else _LONG_MAX
            if is_hex and value >= _LONG_MAX:
                value -= 2 * _LONG_MAX
            if not -_LONG_MAX <= value < _LONG_MAX:
                raise unsupported(f"Invalid int constant [{text[:50]}].", children[0].start_pos)
            return Node("constant", (value,), children[0].start_pos)

        def decimal(self, children: list[Any]) -> Node:
            return Node("constant", (float(children[0].rstrip("fFdD")),), children[0].start_pos)

        def true(self, children: list[Any]) -> Node:
            return Node("constant", (True,))

        def false(self, children: list[Any]) -> Node:
            return Node("constant", (False,))

        def null(self, children: list[Any]) -> Node:
            return Node("constant", (None,))

    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False, transformer=Nodes())


def _node(kind: str, children: list[Any]) -> Node:
    at, size, depth = -1, 1, 0
    parts: list[Any] = []
    for child in children:
        if isinstance(child, Node):
            at = child.at if at < 0 else at
            size, depth = size + child.size, max(depth, child.depth)
            parts.append(child)
        else:
            at = child.start_pos
            parts.append(str(child))
    if depth >= DEPTH_MAX:
        raise unsupported(f"the script is nested deeper than [{DEPTH_MAX}] levels", max(at, 0))
    return Node(kind, tuple(parts), max(at, 0), size, depth + 1)


def _unescaped(token: Any) -> str:
    text, place = str(token[1:-1]), 0
    out: list[str] = []
    while (found := text.find("\\", place)) >= 0:
        out.append(text[place:found])
        escape = text[found + 1]
        if escape not in _ESCAPES:
            raise unsupported(f"unknown escape [\\{escape}] in a string", token.start_pos + found)
        out.append(_ESCAPES[escape])
        place = found + 2
    return "".join(out) + text[place:]
