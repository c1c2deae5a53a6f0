"""Which indexes a request about indexes means."""

from graphdb.search.catalog.index import Index
from graphdb.search.catalog.resolution import ResolveOptions
from graphdb.search.errors import index_not_found
from serve.search.frame.exchange import Exchange

__all__ = ["CHOICE", "chosen_indexes"]

# The parameters of a choice.
CHOICE = "expand_wildcards allow_no_indices ignore_unavailable"


def chosen_indexes(
    exchange: Exchange,
    part: str = "index",
    states: str = "open",
    aliases: bool = True,
    may_be_none: bool = True,
) -> list[Index]:
    """By name. part: the segment of the path that names them; all where the path has none.

    states: what wildcards find unless the request says; aliases: they may be named too;
    may_be_none: patterns that find nothing are fine, unless the request says.
    Errors: index_not_found_exception, illegal_argument_exception.
    """
    parameters = exchange.parameters
    options = ResolveOptions.of(
        parameters.text("expand_wildcards") or states,
        parameters.boolean("ignore_unavailable", False),
        parameters.boolean("allow_no_indices", may_be_none),
        aliases,
    )
    names = exchange.get(part)
    if names == "":
        raise index_not_found(names)
    found = exchange.node.catalog.resolve(names or "_all", options, exchange.node.now_ms())
    return [one.index for one in found]
