"""What goes wrong in a script, and the error that the client gets of it."""

from typing import Any

from graphdb.search.errors import SearchError

__all__ = ["ScriptFault", "class_cast", "null_pointer", "script_error", "unsupported"]

_AROUND = 25  # characters of the script that are shown on both sides of the place
_SHOWN_MAX = 10_000  # of the text of a script in an error


class ScriptFault(Exception):
    """kind: Elasticsearch's type of the cause. at: the place in the text of the script, where it is known."""

    def __init__(self, kind: str, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.at = kind, reason, at

    def placed(self, at: int) -> "ScriptFault":
        """The same, at a place, unless it has one: the innermost one counts."""
        if self.at is None:
            self.at = at
        return self


def null_pointer(what: str) -> ScriptFault:
    """A member of a value that is null."""
    return ScriptFault("null_pointer_exception", f"cannot access {what} from a null def reference")


def class_cast(reason: str) -> ScriptFault:
    """A value of a type that an operation does not take."""
    return ScriptFault("class_cast_exception", reason)


def unsupported(reason: str, at: int | None = None) -> ScriptFault:
    """A name or a construct that is not known here."""
    return ScriptFault("illegal_argument_exception", reason, at)


def script_error(source: str, lang: str, fault: ScriptFault, is_compiling: bool) -> SearchError:
    """The `script_exception` of a fault. Each index would refuse what does not compile."""
    at = min(max(fault.at or 0, 0), len(source))
    start, end = max(0, at - _AROUND), min(len(source), at + _AROUND)
    before, after = "... " if start else "", " ..." if end < len(source) else ""
    metadata: dict[str, Any] = {
        "script_stack": [
            before + source[start:end] + after,
            " " * (len(before) + at - start) + "^---- HERE",
        ],
        "script": source[:_SHOWN_MAX],
        "lang": lang,
        "position": {"offset": at, "start": start, "end": end},
    }
    what = "compile error" if is_compiling else "runtime error"
    cause = SearchError(fault.kind, fault.reason)
    return SearchError("script_exception", what, 400, metadata, cause, of_request=is_compiling)
