"""Settings of the whole cluster, as `PUT /_cluster/settings` takes them, and what they mean.

There is one, `action.auto_create_index`. A transient setting wins over a persistent one. Both are kept with
the templates, so that every node that applies the same log decides the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import PutClusterSettings
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = ["AUTO_CREATE", "check_auto_create", "with_cluster_settings"]

AUTO_CREATE = "action.auto_create_index"
_KINDS = ("transient", "persistent")
_LENGTH_MAX = 10_000  # characters of the list of patterns


def with_cluster_settings(state: CatalogState, command: PutClusterSettings) -> CatalogState:
    """All of them set, or none. null resets a setting, and with wildcards all that fit.

    Errors: illegal_argument_exception.
    """
    after = {kind: dict(state.cluster_settings.get(kind, {})) for kind in _KINDS}
    for kind in _KINDS:
        given: Mapping[str, Any] = getattr(command, kind)
        for name, value in given.items():
            if value is None:
                for known in [known for known in after[kind] if wildcard_match(name, known)]:
                    del after[kind][known]
            elif name != AUTO_CREATE:
                raise illegal_argument(f"{kind} setting [{name[:200]}], not recognized")
            else:
                after[kind][name] = _checked(value)
    return replace(state, cluster_settings={kind: values for kind, values in after.items() if values})


def _checked(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else value
    if not isinstance(text, str) or len(text) > _LENGTH_MAX:
        raise _unreadable(str(value)[:100], _CHOICES)
    _expressions(text)
    return text


_CHOICES = "must be either [true, false, or a comma separated list of index patterns]"


def _expressions(text: str) -> list[tuple[bool, str]]:
    """(whether it allows, pattern) in the order given: the first that fits a name decides."""
    found = []
    for part in text.split(",") if text else ():
        pattern = part.strip()
        if not pattern:
            raise _unreadable(text[:100], _CHOICES)
        sign = pattern[0] if pattern[0] in "+-" else ""
        if pattern == sign:
            raise _unreadable(text[:100], f"must contain an index name after [{sign}]")
        found.append((sign != "-", pattern.removeprefix(sign)))
    return found


def _unreadable(value: str, rule: str) -> SearchError:
    return illegal_argument(f"Can't parse [{value}] for setting [{AUTO_CREATE}] {rule}")


def check_auto_create(state: CatalogState, name: str) -> None:
    """Errors: index_not_found_exception, where an index of that name is not to be made for a document."""
    text = next(
        (found for kind in _KINDS if (found := state.cluster_settings.get(kind, {}).get(AUTO_CREATE))), "true"
    )
    if text == "true":
        return
    if text == "false":
        raise _forbidden(name, f"[{AUTO_CREATE}] is [false]")
    for allows, pattern in _expressions(text):
        if wildcard_match(pattern, name):
            if allows:
                return
            reason = f"[{AUTO_CREATE}] contains [-{pattern}] which forbids automatic creation of the index"
            raise _forbidden(name, reason)
    raise _forbidden(name, f"[{AUTO_CREATE}] ([{text}]) doesn't match")


def _forbidden(name: str, reason: str) -> SearchError:
    return SearchError(
        "index_not_found_exception",
        f"no such index [{name}] and {reason}",
        404,
        {"index_uuid": "_na_", "index": name},
    )
