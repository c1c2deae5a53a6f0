"""Sets of synonyms that filters name (`synonyms_set`), as the catalog keeps them.

An index has the rules of its sets in its settings, under `synonyms` of the filter, where they are not shown.
So whatever makes analyzers needs the settings alone, and a change of a set is one of its indexes' settings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import DeleteSynonyms, PutSynonyms
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import SearchError, illegal_argument

__all__ = [
    "analyzers_with",
    "check_rule",
    "set_named",
    "users_of",
    "with_sets",
    "with_synonyms",
    "without_synonyms",
]

_SETS_MAX = 1_000
_RULES_MAX = 10_000  # of one set
_NAME_MAX = 512
_FILTERS = ("synonym", "synonym_graph")

Rules = Sequence[Mapping[str, str]]
"""Each with `id` and `synonyms`, in the order of their ids."""


def set_named(state: CatalogState, name: str) -> Rules:
    """Errors: resource_not_found_exception."""
    found: Rules | None = state.synonyms.get(name)
    if found is None:
        raise _missing(f"synonyms set [{name[:_NAME_MAX]}] not found")
    return found


def check_rule(text: object) -> str | None:
    """Why a text is no rule in Solr's format; None where it is one."""
    if not isinstance(text, str) or not text.strip():
        return "[synonyms] field can't be empty"
    sides = text.split("=>")
    if len(sides) > 2:
        return f"More than one explicit mapping specified in the same synonyms rule: [{text[:200]}]"
    if not all(side.strip(", ") for side in sides):
        return f"Incorrect syntax for the synonyms rule: [{text[:200]}]"
    return None


def with_synonyms(state: CatalogState, command: PutSynonyms) -> CatalogState:
    """Errors: illegal_argument_exception; resource_not_found_exception for rules of a set that is missing."""
    name = command.name
    if not name or len(name) > _NAME_MAX:
        raise illegal_argument(f"invalid id of a synonyms set: [{name[:100]}]")
    if name not in state.synonyms and len(state.synonyms) >= _SETS_MAX:
        raise illegal_argument(f"there cannot be more than [{_SETS_MAX}] synonyms sets")
    before = {rule["id"]: rule for rule in set_named(state, name)} if command.only else {}
    rules = before | {rule["id"]: rule for rule in command.rules}
    if len(rules) > _RULES_MAX:
        raise illegal_argument(f"The number of synonyms rules in a synonyms set cannot exceed {_RULES_MAX}.")
    return replace(state, synonyms={**state.synonyms, name: [rules[key] for key in sorted(rules)]})


def without_synonyms(state: CatalogState, command: DeleteSynonyms) -> CatalogState:
    """Errors: resource_not_found_exception; illegal_argument_exception for a set that an index names."""
    rules = set_named(state, command.name)
    if command.rule is None:
        if users := users_of(state, command.name):
            raise illegal_argument(
                f"synonyms set [{command.name}] cannot be deleted as it is used in the following indices: "
                f"{', '.join(sorted(index.name for index in users))}"
            )
        return replace(
            state, synonyms={key: one for key, one in state.synonyms.items() if key != command.name}
        )
    left = [rule for rule in rules if rule["id"] != command.rule]
    if len(left) == len(rules):
        raise _missing(
            f"synonym rule [{command.rule[:_NAME_MAX]}] not found on synonyms set [{command.name}]"
        )
    return replace(state, synonyms={**state.synonyms, command.name: left})


def users_of(state: CatalogState, name: str) -> list[Index]:
    """The indexes that name a set."""
    return [
        index
        for index in state.by_uuid.values()
        if any(one["synonyms_set"] == name for _, one in _naming(index.settings))
    ]


def analyzers_with(index: Index, name: str | None) -> list[str]:
    """The analyzers of an index that a set has a part in; None: any set."""
    analysis = index.settings.get("analysis") or {}
    filters = {key for key, one in _naming(index.settings) if name in (None, one["synonyms_set"])}
    found = []
    for key, one in (analysis.get("analyzer") or {}).items():
        named = one.get("filter") or []
        if filters & set(named if isinstance(named, list) else [part.strip() for part in named.split(",")]):
            found.append(key)
    return sorted(found)


def with_sets(settings: Mapping[str, Any], state: CatalogState) -> dict[str, Any]:
    """Settings with the rules of the sets that they name. Errors: illegal_argument_exception."""
    made = dict(settings)
    named = list(_naming(settings))
    if not named:
        return made
    filters = dict(settings["analysis"]["filter"])
    for key, one in named:
        rules = state.synonyms.get(one["synonyms_set"])
        if rules is None and "synonyms" in one:  # of an index that is restored without the set
            continue
        if rules is None:
            raise illegal_argument(f"synonyms set [{str(one['synonyms_set'])[:_NAME_MAX]}] not found")
        filters[key] = {**one, "synonyms": [rule["synonyms"] for rule in rules]}
    made["analysis"] = {**settings["analysis"], "filter": filters}
    return made


def _naming(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The filters of an index that name a set."""
    analysis = settings.get("analysis")
    filters = analysis.get("filter") if isinstance(analysis, Mapping) else None
    for key, one in filters.items() if isinstance(filters, Mapping) else ():  # others are refused elsewhere
        if (
            isinstance(one, Mapping)
            and one.get("type") in _FILTERS
            and isinstance(one.get("synonyms_set"), str)
        ):
            yield key, one


def _missing(reason: str) -> SearchError:
    return SearchError("resource_not_found_exception", reason, 404)
