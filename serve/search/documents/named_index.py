"""The one index that a request for a document names, itself or by an alias."""

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.index import Index
from graphdb.search.errors import illegal_argument, index_not_found

__all__ = ["one_index"]


def one_index(catalog: Catalog, name: str) -> Index:
    """To read from. Errors: index_not_found_exception; illegal_argument_exception for an alias of several."""
    index = catalog.find(name)
    if index is not None:
        return index
    meant = [one for one in catalog.indexes() if name in one.aliases]
    if not meant:
        raise index_not_found(name)
    if len(meant) > 1:
        listed = ", ".join(one.name for one in meant)
        raise illegal_argument(
            f"alias [{name}] has more than one index associated with it [{listed}], "
            "can't execute a single index op"
        )
    return meant[0]
