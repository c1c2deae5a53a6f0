"""Runs scripts: a tree becomes nested functions of Python, once, which then run for each document.

Nothing of a script is ever Python source. A variable is a slot of the run's frame; lambdas share the frame of
the script around them, as they only live as arguments of a call.
"""

from collections.abc import Callable, Mapping
from typing import Any

from graphdb.search.scripts.conversions import DEFAULTS, converted, iterated
from graphdb.search.scripts.expression_compiler import Expression, ExpressionCompiler, Frame, Statement
from graphdb.search.scripts.faults import ScriptFault, unsupported
from graphdb.search.scripts.parser import Node
from graphdb.search.scripts.values import Budget, check_extent

__all__ = ["Program", "compiled"]

_BREAK, _CONTINUE, _RETURN = "break", "continue", "return"


class Program:
    """A script that is compiled. names: of those that it may find, the ones that it uses."""

    def __init__(self, body: Statement, slots: int, names: frozenset[str]) -> None:
        self._body, self._slots, self.names = body, slots, names

    def run(self, names: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """What it returns; None where it returns nothing. budget: of this run and others.

        Raises ScriptFault.
        """
        frame = Frame(names, self._slots, budget)
        try:
            self._body(frame)
            check_extent(frame.result)
        except RecursionError:
            raise ScriptFault("stack_overflow_error", "a value or the script is nested too deeply") from None
        except (OverflowError, ValueError, UnicodeError) as error:
            raise ScriptFault("illegal_argument_exception", str(error)[:200]) from None
        return frame.result


def compiled(tree: Node, known: frozenset[str], functions: frozenset[str] = frozenset()) -> Program:
    """known: names that a run gives it values of. functions: those of them that it may call.

    Raises ScriptFault.
    """
    compiler = _Compiler(known, functions)
    statements = tree.nodes
    if statements and statements[-1].kind == "expression_statement":
        # the value of the last statement is what the script returns
        last = statements[-1]
        statements = [*statements[:-1], Node("return", last.parts, last.at, last.size)]
    body = compiler.sequence(statements)
    return Program(body, compiler.slots, frozenset(compiler.used))


class _Compiler(ExpressionCompiler):
    """The statements."""

    def sequence(self, statements: list[Node]) -> Statement:
        made = [(self._statement(one), one.size) for one in statements]
        if len(made) == 1:
            only, cost = made[0]

            def run_one(frame: Frame) -> str | None:
                frame.budget.spend(cost)
                return only(frame)

            return run_one

        def run(frame: Frame) -> str | None:
            for statement, cost in made:
                frame.budget.spend(cost)
                ended = statement(frame)
                if ended is not None:
                    return ended
            return None

        return run

    def _statement(self, node: Node) -> Statement:
        make: Callable[[Node], Statement] | None = getattr(self, f"_do_{node.kind}", None)
        if make is None:
            raise unsupported(f"[{node.kind}] is not a statement", node.at)
        return make(node)

    def _do_block(self, node: Node) -> Statement:
        self._scopes.append({})
        try:
            return self.sequence(node.nodes)
        finally:
            self._scopes.pop()

    def _do_body(self, node: Node) -> Statement:
        return self._do_block(node)

    def _do_expression_statement(self, node: Node) -> Statement:
        value = self._expression(node.parts[0])

        def run(frame: Frame) -> None:
            value(frame)

        return run

    def _do_return(self, node: Node) -> Statement:
        value = self._expression(node.parts[0]) if node.parts else None

        def run(frame: Frame) -> str:
            frame.result = None if value is None else value(frame)
            return _RETURN

        return run

    def _do_break(self, node: Node) -> Statement:
        self._check_in_loop(node, "break")
        return lambda frame: _BREAK

    def _do_continue(self, node: Node) -> Statement:
        self._check_in_loop(node, "continue")
        return lambda frame: _CONTINUE

    def _check_in_loop(self, node: Node, what: str) -> None:
        if not self._loops:
            raise unsupported(f"{what.capitalize()} statement outside of a loop.", node.at)

    def _do_declare(self, node: Node) -> Statement:
        made = []
        kind = str(node.parts[0]).partition("<")[0].strip()
        for one in node.nodes:
            value = self._expression(one.parts[1]) if len(one.parts) > 1 else None
            made.append((self._declared(str(one.parts[0]), kind, one.at), value, one.at))
        default = DEFAULTS.get(kind)

        def run(frame: Frame) -> None:
            for slot, value, at in made:
                found = default if value is None else value(frame)
                frame.slots[slot] = converted(found, kind, at) if value is not None else found

        return run

    def _do_if(self, node: Node) -> Statement:
        test, *branches = node.nodes
        condition = self._condition(test)
        then = self._do_body(branches[0])
        other = self._do_body(branches[1]) if len(branches) > 1 else None

        def run(frame: Frame) -> str | None:
            if condition(frame):
                return then(frame)
            return None if other is None else other(frame)

        return run

    def _loop(self, node: Node) -> Statement:
        self._loops += 1
        try:
            return self._do_block(node)
        finally:
            self._loops -= 1

    def _do_while(self, node: Node) -> Statement:
        condition, body = self._condition(node.parts[0]), self._loop(node.parts[1])
        return _while(condition, body, lambda frame: None, node.size, False)

    def _do_do_while(self, node: Node) -> Statement:
        body, condition = self._loop(node.parts[0]), self._condition(node.parts[1])
        return _while(condition, body, lambda frame: None, node.size, True)

    def _do_for(self, node: Node) -> Statement:
        start, test, step, body = node.nodes
        self._scopes.append({})
        try:
            begin = [
                self._do_declare(one) if one.kind == "declare" else self._expression(one)
                for one in start.nodes
            ]
            condition = self._condition(test.nodes[0]) if test.nodes else lambda frame: True
            steps = [self._expression(one) for one in step.nodes]
            loop = _while(condition, self._loop(body), _all_of(steps), node.size, False)
        finally:
            self._scopes.pop()

        def run(frame: Frame) -> str | None:
            for one in begin:
                one(frame)
            return loop(frame)

        return run

    def _do_foreach(self, node: Node) -> Statement:
        *named, over, body = node.parts
        kind = str(named[0]).partition("<")[0].strip() if len(named) > 1 else "def"
        values = self._expression(over)
        self._scopes.append({})
        try:
            slot = self._declared(str(named[-1]), kind, node.at)
            run_body = self._loop(body)
        finally:
            self._scopes.pop()
        cost, at = body.size + 1, node.at

        def run(frame: Frame) -> str | None:
            for value in iterated(values(frame), at):
                frame.budget.spend(cost)
                frame.slots[slot] = converted(value, kind, at)
                ended = run_body(frame)
                if ended == _BREAK:
                    break
                if ended == _RETURN:
                    return ended
            return None

        return run


def _while(
    condition: Callable[[Frame], bool], body: Statement, step: Expression, cost: int, is_after: bool
) -> Statement:
    def run(frame: Frame) -> str | None:
        is_first = is_after
        while is_first or condition(frame):
            is_first = False
            frame.budget.spend(cost)
            ended = body(frame)
            if ended == _BREAK:
                break
            if ended == _RETURN:
                return ended
            step(frame)
        return None

    return run


def _all_of(steps: list[Expression]) -> Expression:
    def run(frame: Frame) -> None:
        for step in steps:
            step(frame)

    return run
