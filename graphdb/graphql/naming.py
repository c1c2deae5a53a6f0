"""What things are called in GraphQL: local names, made spellable, made different, made plural."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from pyoxigraph import Literal, NamedNode

if TYPE_CHECKING:
    import inflect

__all__ = ["different", "enum_value_name", "field_name", "local_name", "plural_of", "spelt"]

_UNSPELLABLE = re.compile(r"[^_0-9A-Za-z]")
_NO_VALUES = ("true", "false", "null")  # GraphQL section 3.9: an enum has no such value
_T = TypeVar("_T")


def local_name(iri: str) -> str:
    """What stands behind the last "#", "/" or ":"; the whole IRI where nothing does."""
    return re.split(r"[#/:]", iri.rstrip("#/:"))[-1] or iri


def spelt(name: str) -> str:
    """The name with what GraphQL cannot spell as "_" (section 2.1.9), and accents left out.

    Two underscores at the beginning are GraphQL's own: one of them goes.
    """
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    plain = _UNSPELLABLE.sub("_", plain)
    plain = re.sub(r"^_+", "_", plain)
    return f"_{plain}" if not plain or plain[0].isdigit() else plain


def field_name(name: str) -> str:
    """`id` is every type's own: a property of this name is `id_`."""
    found = spelt(name)
    return "id_" if found == "id" else found


def enum_value_name(term: NamedNode | Literal) -> str:
    """Upper case, as the interface says."""
    found = spelt(local_name(term.value) if isinstance(term, NamedNode) else term.value).upper()
    return f"{found}_" if found.lower() in _NO_VALUES else found


def plural_of(name: str) -> str:
    """The English plural, in lower case; a name that is its own plural gets "list" behind it."""
    lower = name.lower()
    plural = str(_engine().plural_noun(lower) or lower)
    return plural if plural != lower else f"{lower}list"


def different(
    things: Iterable[_T], name_of: Callable[[_T], str], order: Callable[[_T], str], taken: Iterable[str] = ()
) -> dict[_T, str]:
    """A name for each, none twice: the first by `order` has the plain name, others `_2`, `_3` behind it."""
    used, found = set(taken), {}
    for thing in sorted(things, key=order):
        plain = name = name_of(thing)
        number = 1
        while name in used:
            number += 1
            name = f"{plain}_{number}"
        used.add(name)
        found[thing] = name
    return found


@lru_cache(maxsize=1)
def _engine() -> "inflect.engine":
    import inflect  # seconds, which the start of a node need not take

    engine = inflect.engine()
    engine.classical(persons=True)
    return engine
