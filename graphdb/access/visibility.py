"""`Visibility`: the part of the graph, and of the search indexes, that a principal may see."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyoxigraph import DefaultGraph, NamedNode

from graphdb.access.permissions import Permission
from graphdb.model import GraphName

if TYPE_CHECKING:  # as in `graphdb.access.permissions`
    from graphdb.config.access import Acl, AclContext

__all__ = [
    "FULL_VISIBILITY",
    "NO_INDEXES",
    "NO_VISIBILITY",
    "WHOLE_INDEXES",
    "Contexts",
    "IndexVisibility",
    "Visibility",
]

# `IndexVisibility`: which search indexes a principal may see, and which documents in them.

EVERY_PLAIN_INDEX = "*"  # the pattern of every index but those that follow the graph
EVERY_INDEX = "**"


@dataclass(frozen=True)
class IndexVisibility:
    """patterns: names of indexes, in which `*` stands for any letters; `*` alone is not for indexes that
    follow the graph, `**` is for all. sids: a document that lists SIDs is seen by whoever has one of them.
    is_whole: everything, those lists too; the others then say nothing.
    """

    is_whole: bool = False
    patterns: frozenset[str] = frozenset()
    sids: frozenset[str] = frozenset()

    def sees_index(self, name: str, follows_graph: bool = False) -> bool:
        """Whether the index may be known of, or made. follows_graph: its documents are made of the graph, of
        which the principal may not see everything.
        """
        if self.is_whole:
            return True
        names = self._names_of_followers if follows_graph else self._names
        return names.fullmatch(name) is not None

    @cached_property
    def _names(self) -> re.Pattern[str]:
        return _one_of(self.patterns)

    @cached_property
    def _names_of_followers(self) -> re.Pattern[str]:
        return _one_of(self.patterns - {EVERY_PLAIN_INDEX})

    def to_json(self) -> str:
        """The same text for the same visibility; `from_json` reads it."""
        return json.dumps([self.is_whole, sorted(self.patterns), sorted(self.sids)])

    @classmethod
    def from_json(cls, text: str) -> "IndexVisibility":
        """Raises ValueError for what `to_json` has not written."""
        match json.loads(text):
            case [bool(is_whole), [*patterns], [*sids]] if all(
                isinstance(one, str) for one in (*patterns, *sids)
            ):
                return cls(is_whole, frozenset(patterns), frozenset(sids))
        raise ValueError("no visibility of indexes")


def _one_of(patterns: frozenset[str]) -> re.Pattern[str]:
    one_of = ("[^\n]*".join(map(re.escape, re.split(r"\*+", pattern))) for pattern in sorted(patterns))
    return re.compile("|".join(one_of) if patterns else "(?!)")


WHOLE_INDEXES = IndexVisibility(is_whole=True)
NO_INDEXES = IndexVisibility()


# `Visibility`: what of the graph a principal may see, and `Contexts`, by the configuration `[acl]`.

_NAMED = "*"  # every named graph
_ALL = "**"  # the default graph too


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which graphs are seen, and which SIDs show annotated triples in them.

    patterns: IRIs of graphs, starts of IRIs followed by `*`, or `*` alone for every named graph.
    is_whole: everything, the annotations themselves too; the other members then say nothing.
    """

    is_whole: bool = False
    default_graph: bool = False
    patterns: frozenset[str] = frozenset()
    sids: frozenset[str] = frozenset()

    @property
    def has_all_graphs(self) -> bool:
        """Whether no graph is hidden."""
        return self.is_whole or (self.default_graph and _NAMED in self.patterns)

    @property
    def without_sids(self) -> "Visibility":
        """What of the same graphs is for all who see them."""
        return _EVERY_GRAPH if self.is_whole else replace(self, sids=frozenset())

    def sees_graph(self, graph: GraphName) -> bool:
        """Whether the graph may be known of. One that a blank node names is seen by `*` alone."""
        if self.is_whole:
            return True
        if isinstance(graph, DefaultGraph):
            return self.default_graph
        if _NAMED in self.patterns:
            return True
        if not isinstance(graph, NamedNode):
            return False
        iri = graph.value
        return iri in self.patterns or any(
            pattern.endswith("*") and iri.startswith(pattern[:-1]) for pattern in self.patterns
        )

    def to_json(self) -> str:
        """The same text for the same visibility; `from_json` reads it."""
        return json.dumps([self.is_whole, self.default_graph, sorted(self.patterns), sorted(self.sids)])

    @classmethod
    def from_json(cls, text: str) -> "Visibility":
        """Raises ValueError for what `to_json` has not written."""
        match json.loads(text):
            case [bool(is_whole), bool(default_graph), [*patterns], [*sids]] if all(
                isinstance(one, str) for one in (*patterns, *sids)
            ):
                return cls(is_whole, default_graph, frozenset(patterns), frozenset(sids))
        raise ValueError("no visibility")


FULL_VISIBILITY = Visibility(is_whole=True)
NO_VISIBILITY = Visibility()
_EVERY_GRAPH = Visibility(default_graph=True, patterns=frozenset({_NAMED}))


class Contexts:
    """The visibilities of one configuration: an actor's context wins over its roles', of which the union
    counts."""

    def __init__(self, acl: "Acl | None") -> None:
        """Without `[acl]` nobody is kept from any graph, and annotations count all the same."""
        self._acl = acl

    def visibility_of(
        self, actor: str, roles: Iterable[str], sids: frozenset[str], permission: Permission
    ) -> Visibility:
        """What whoever authentication has found out may see; an admin all of it."""
        if permission is Permission.ADMIN:
            return FULL_VISIBILITY
        graphs = _EVERY_GRAPH if self._acl is None else _union(self._fitting(self._acl, actor, roles))
        return replace(graphs, sids=sids)

    def index_visibility_of(
        self, actor: str, roles: Iterable[str], sids: frozenset[str], permission: Permission
    ) -> IndexVisibility:
        """The same of the search indexes. One that follows the graph is seen by whoever sees all graphs, and
        where a context names it.
        """
        if permission is Permission.ADMIN:
            return WHOLE_INDEXES
        if self._acl is None:
            return IndexVisibility(patterns=frozenset({EVERY_INDEX}), sids=sids)
        fitting = self._fitting(self._acl, actor, roles)
        patterns = {pattern for context in fitting for pattern in context.visible_indexes}
        if EVERY_PLAIN_INDEX in patterns and _union(fitting).has_all_graphs:
            patterns.add(EVERY_INDEX)
        return IndexVisibility(patterns=frozenset(patterns), sids=sids)

    @staticmethod
    def _fitting(acl: "Acl", actor: str, roles: Iterable[str]) -> "list[AclContext]":
        if actor in acl.actor_contexts:
            return [acl.contexts[acl.actor_contexts[actor]]]
        return [acl.contexts[acl.role_contexts[role]] for role in roles if role in acl.role_contexts]


def _union(contexts: "Iterable[AclContext]") -> Visibility:
    default_graph, patterns = False, set[str]()
    for context in contexts:
        default_graph |= context.visible_default_graph or _ALL in context.visible_graphs
        patterns.update(_NAMED if pattern == _ALL else pattern for pattern in context.visible_graphs)
    return Visibility(default_graph=default_graph, patterns=frozenset(patterns))
