"""The expressions of scripts, as functions of a `Frame`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from graphdb.search.scripts.conversions import NEW, TYPES, cast, converted, element, map_key, put_element
from graphdb.search.scripts.faults import ScriptFault, class_cast, null_pointer, unsupported
from graphdb.search.scripts.methods import call_method, get_member
from graphdb.search.scripts.parser import Node
from graphdb.search.scripts.static_methods import CONSTANTS, STATIC
from graphdb.search.scripts.values import BINARY, Budget, negated, truth, type_name, wrapped

__all__ = ["Expression", "ExpressionCompiler", "Frame", "Statement"]


class Frame:
    """One run: the variables, what the script finds by name, what it may still do, what it returns."""

    __slots__ = ("budget", "names", "result", "slots")

    def __init__(self, names: Mapping[str, Any], slots: int, budget: Budget | None = None) -> None:
        self.names = names
        self.slots: list[Any] = [None] * slots
        self.budget = Budget() if budget is None else budget
        self.result: Any = None


Expression: TypeAlias = Callable[[Frame], Any]
Statement: TypeAlias = Callable[[Frame], str | None]
"""Says how it ended: None for normally, else `break`, `continue`, `return`."""


class ExpressionCompiler:
    """For one script. Its statements are a subclass's."""

    def __init__(self, known: frozenset[str], functions: frozenset[str]) -> None:
        self._known, self._functions = known, functions
        self._scopes: list[dict[str, tuple[int, str]]] = [{}]
        self.slots = 0
        self.used: set[str] = set()
        self._loops = 0

    def _do_block(self, node: Node) -> Statement:
        raise NotImplementedError

    def _declared(self, name: str, kind: str, at: int) -> int:
        if any(name in scope for scope in self._scopes):
            raise unsupported(f"variable [{name}] is already defined.", at)
        self._scopes[-1][name] = (self.slots, kind)
        self.slots += 1
        return self.slots - 1

    def _condition(self, node: Node) -> Callable[[Frame], bool]:
        value, at = self._expression(node), node.at

        def test(frame: Frame) -> bool:
            found = value(frame)
            if found is True or found is False:
                return bool(found)
            try:
                return truth(found)
            except ScriptFault as fault:
                raise fault.placed(at) from None

        return test

    def _expression(self, node: Node) -> Expression:
        make: Callable[[Node], Expression] | None = getattr(self, f"_of_{node.kind}", None)
        if make is None:
            raise unsupported(f"[{node.kind}] is not an expression", node.at)
        return make(node)

    def _expressions(self, node: Node) -> list[Expression]:
        return [self._expression(one) for one in node.nodes]

    def _of_expression(self, node: Node) -> Expression:
        return self._expression(node.parts[0])

    def _of_constant(self, node: Node) -> Expression:
        value = node.parts[0]
        return lambda frame: value

    def _of_name(self, node: Node) -> Expression:
        name = str(node.parts[0])
        for scope in reversed(self._scopes):
            if name in scope:
                slot = scope[name][0]
                return lambda frame: frame.slots[slot]
        if name not in self._known or name in self._functions:
            raise unsupported(f"cannot resolve symbol [{name}]", node.at)
        self.used.add(name)
        return lambda frame: frame.names[name]

    def _of_binary(self, node: Node) -> Expression:
        left, operator, right = node.parts
        if operator in ("&&", "||"):
            first, second = self._condition(left), self._condition(right)
            if operator == "&&":
                return lambda frame: first(frame) and second(frame)
            return lambda frame: first(frame) or second(frame)
        return _operation(operator, self._expression(left), self._expression(right), node.at)

    def _of_unary(self, node: Node) -> Expression:
        operator, inner = node.parts
        if operator == "-" and isinstance(inner, Node) and inner.kind == "constant":
            number = inner.parts[0]
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                return lambda frame: -number
        value, at = self._expression(inner), node.at

        def run(frame: Frame) -> Any:
            try:
                return negated(operator, value(frame))
            except ScriptFault as fault:
                raise fault.placed(at) from None

        return run

    def _of_conditional(self, node: Node) -> Expression:
        test, then, other = node.parts
        condition, first, second = self._condition(test), self._expression(then), self._expression(other)
        return lambda frame: first(frame) if condition(frame) else second(frame)

    def _of_elvis(self, node: Node) -> Expression:
        first, second = self._expressions(node)

        def run(frame: Frame) -> Any:
            value = first(frame)
            return second(frame) if value is None else value

        return run

    def _of_cast(self, node: Node) -> Expression:
        kind = str(node.parts[0]).strip("() \t\r\n").partition("<")[0].strip()
        value, at = self._expression(node.parts[1]), node.at

        def run(frame: Frame) -> Any:
            return cast(value(frame), kind, at)

        return run

    def _of_instance_of(self, node: Node) -> Expression:
        value, kind = self._expression(node.parts[0]), str(node.parts[1]).partition("<")[0].strip()
        types = TYPES.get(kind, (object,))

        def run(frame: Frame) -> bool:
            found = value(frame)
            if isinstance(found, bool) and bool not in types and object not in types:
                return False
            return found is not None and isinstance(found, types)

        return run

    def _of_list(self, node: Node) -> Expression:
        values = self._expressions(node)

        def run(frame: Frame) -> list[Any]:
            frame.budget.allocate(len(values))
            return [value(frame) for value in values]

        return run

    def _of_map(self, node: Node) -> Expression:
        entries = [(self._expression(one.parts[0]), self._expression(one.parts[1])) for one in node.nodes]
        at = node.at

        def run(frame: Frame) -> dict[Any, Any]:
            frame.budget.allocate(len(entries))
            return {map_key(key(frame), at): value(frame) for key, value in entries}

        return run

    def _of_new(self, node: Node) -> Expression:
        kind, arguments = str(node.parts[0]).partition("<")[0].strip(), self._expressions(node.parts[1])
        make, at = NEW.get(kind), node.at
        if make is None or len(arguments) > 1:
            raise unsupported(f"cannot make a new [{kind}] with [{len(arguments)}] arguments", at)

        def run(frame: Frame) -> Any:
            given = [argument(frame) for argument in arguments]
            frame.budget.allocate(1 + sum(len(one) for one in given if isinstance(one, (list, tuple, dict))))
            try:
                return make(*given)
            except (TypeError, ValueError):
                raise class_cast(f"cannot make a [{kind}] of [{type_name(given[0])}]").placed(at) from None

        return run

    # Members, calls and what stands in brackets.

    def _of_member(self, node: Node) -> Expression:
        static = self._static_name(node)
        if static is not None:
            if static not in CONSTANTS:
                raise unsupported(f"unknown constant [{static}]", node.at)
            value = CONSTANTS[static]
            return lambda frame: value
        inner, dot, name = node.parts
        target, at, is_safe = self._expression(inner), node.at, dot == "?."

        def run(frame: Frame) -> Any:
            found = target(frame)
            if found is None and is_safe:
                return None
            try:
                return get_member(found, name)
            except ScriptFault as fault:
                raise fault.placed(at) from None

        return run

    def _static_name(self, node: Node) -> str | None:
        """`Class.name`, where that is what a member or call says."""
        inner, name = node.parts[0], str(node.parts[2])
        if not isinstance(inner, Node):
            return None
        if inner.kind == "static_member":
            return f"{inner.parts[0]}.{inner.parts[2]}.{name}"
        if inner.kind != "name" or not str(inner.parts[0])[:1].isupper():
            return None
        return f"{inner.parts[0]}.{name}"

    def _of_static_member(self, node: Node) -> Expression:
        name = f"{node.parts[0]}.{node.parts[2]}"
        if name not in CONSTANTS:
            raise unsupported(f"unknown constant [{name}]", node.at)
        value = CONSTANTS[name]
        return lambda frame: value

    def _of_static_call(self, node: Node) -> Expression:
        return self._static_call(f"{node.parts[0]}.{node.parts[2]}", node.parts[3], node.at)

    def _static_call(self, name: str, arguments: Node, at: int) -> Expression:
        method = STATIC.get(name)
        if method is None:
            shown = name.replace(".", ", ")
            raise unsupported(f"static method [{shown}/{len(arguments.nodes)}] not found", at)
        given = self._expressions(arguments)

        def run(frame: Frame) -> Any:
            frame.budget.spend(1)
            values = [argument(frame) for argument in given]
            try:
                return method(frame.budget, *values)
            except ScriptFault as fault:
                raise fault.placed(at) from None
            except TypeError as error:
                if "positional argument" not in str(error):
                    raise
                raise unsupported(f"[{name}] takes other arguments", at) from None

        return run

    def _of_call(self, node: Node) -> Expression:
        static = self._static_name(node)
        if (static is not None and static in STATIC) or _is_class(node.parts[0]):
            return self._static_call(str(static), node.parts[3], node.at)
        inner, dot, name, arguments = node.parts
        target, given = self._expression(inner), self._expressions(arguments)
        at, is_safe = node.at, dot == "?."

        def run(frame: Frame) -> Any:
            found = target(frame)
            if found is None and is_safe:
                return None
            frame.budget.spend(1)
            values = [argument(frame) for argument in given]
            try:
                return call_method(frame.budget, found, name, values)
            except ScriptFault as fault:
                raise fault.placed(at) from None

        return run

    def _of_own_call(self, node: Node) -> Expression:
        name, given, at = str(node.parts[0]), self._expressions(node.parts[1]), node.at
        if name not in self._functions:
            raise unsupported(f"Unknown call [{name}] with [{len(given)}] arguments.", at)
        self.used.add(name)

        def run(frame: Frame) -> Any:
            frame.budget.spend(1)
            values = [argument(frame) for argument in given]
            try:
                return frame.names[name](*values)
            except ScriptFault as fault:
                raise fault.placed(at) from None
            except TypeError as error:
                if "positional argument" not in str(error):
                    raise
                raise unsupported(f"[{name}] takes other arguments", at) from None

        return run

    def _of_index(self, node: Node) -> Expression:
        target, key, at = self._expression(node.parts[0]), self._expression(node.parts[1]), node.at

        def run(frame: Frame) -> Any:
            try:
                return element(target(frame), key(frame))
            except ScriptFault as fault:
                raise fault.placed(at) from None

        return run

    def _of_lambda(self, node: Node) -> Expression:
        named, body = node.parts
        names = [one.split()[-1] for one in str(named).strip("() \t\r\n").split(",") if one.strip()]
        self._scopes.append({})
        loops, self._loops = self._loops, 0
        try:
            slots = [self._declared(name, "def", node.at) for name in names]
            is_block = body.kind == "block"
            block = self._do_block(body) if is_block else None
            value = None if is_block else self._expression(body)
        finally:
            self._scopes.pop()
            self._loops = loops
        cost = node.size

        def run(frame: Frame) -> Any:
            def call(*arguments: Any) -> Any:
                if len(arguments) != len(slots):
                    raise unsupported(f"a lambda takes [{len(slots)}] arguments, not [{len(arguments)}]")
                frame.budget.spend(cost)
                for slot, argument in zip(slots, arguments, strict=True):
                    frame.slots[slot] = argument
                if value is not None:
                    return value(frame)
                assert block is not None
                before, frame.result = frame.result, None
                block(frame)
                result, frame.result = frame.result, before
                return result

            return call

        return run

    # Changes of variables, members and elements.

    def _of_assign(self, node: Node) -> Expression:
        target, operator, new = node.parts
        value, at = self._expression(new), node.at
        if operator == "=":
            return self._changed(target, lambda frame, old: value(frame), False, at)
        apply = BINARY[operator[:-1]]

        def changed(frame: Frame, old: Any) -> Any:
            try:
                return apply(old, value(frame), frame.budget)
            except ScriptFault as fault:
                raise fault.placed(at) from None

        return self._changed(target, changed, True, at)

    def _of_step_before(self, node: Node) -> Expression:
        return self._changed(node.parts[1], _stepped(node.parts[0], node.at), True, node.at)

    def _of_step_after(self, node: Node) -> Expression:
        return self._changed(node.parts[0], _stepped(node.parts[1], node.at), True, node.at, gives_old=True)

    def _changed(
        self,
        target: Node,
        change: Callable[[Frame, Any], Any],
        reads: bool,
        at: int,
        gives_old: bool = False,
    ) -> Expression:
        """change: the new value of the old one, which is only read where `reads` says so."""
        if target.kind == "name":
            return self._changed_variable(target, change, gives_old)
        if target.kind not in ("member", "index"):
            raise unsupported("the left-hand side cannot be assigned a value", at)
        owner = self._expression(target.parts[0])
        if target.kind == "index":
            key = self._expression(target.parts[1])
        else:
            name = str(target.parts[2])

            def key(frame: Frame) -> Any:
                return name

        is_member = target.kind == "member"

        def run(frame: Frame) -> Any:
            try:
                into, where = owner(frame), key(frame)
                if not reads:
                    old = None
                elif is_member:
                    old = get_member(into, where)
                else:
                    old = element(into, where)
                new = change(frame, old)
                put_element(frame.budget, into, where, new)
            except ScriptFault as fault:
                raise fault.placed(at) from None
            return old if gives_old else new

        return run

    def _changed_variable(
        self, target: Node, change: Callable[[Frame, Any], Any], gives_old: bool
    ) -> Expression:
        name = str(target.parts[0])
        found = next((scope[name] for scope in reversed(self._scopes) if name in scope), None)
        if found is None:
            what = "is read-only" if name in self._known else "is not defined"
            raise unsupported(f"variable [{name}] {what}", target.at)
        (slot, kind), at = found, target.at

        def run(frame: Frame) -> Any:
            old = frame.slots[slot]
            new = frame.slots[slot] = converted(change(frame, old), kind, at)
            return old if gives_old else new

        return run


def _operation(operator: str, left: Expression, right: Expression, at: int) -> Expression:
    apply = BINARY[operator]

    def run(frame: Frame) -> Any:
        try:
            return apply(left(frame), right(frame), frame.budget)
        except ScriptFault as fault:
            raise fault.placed(at) from None

    return run


def _stepped(operator: str, at: int) -> Callable[[Frame, Any], Any]:
    by = 1 if operator == "++" else -1

    def change(frame: Frame, old: Any) -> Any:
        if isinstance(old, bool) or not isinstance(old, (int, float)):
            raise (
                null_pointer(f"an operand of [{operator}]")
                if old is None
                else class_cast(f"Cannot apply [{operator}] operation to type [{type_name(old)}].")
            ).placed(at)
        return wrapped(old + by) if isinstance(old, int) else old + by

    return change


def _is_class(node: Any) -> bool:
    """Whether it is a name that only a class can have."""
    return (
        isinstance(node, Node)
        and node.kind in ("name", "static_member")
        and (node.kind == "static_member" or str(node.parts[0])[:1].isupper())
    )
