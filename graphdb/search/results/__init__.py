"""Results: a whole search on one index, from the JSON of the request to that of the answer."""

from graphdb.search.results.search import SearchOptions, columns_of, execute, search

__all__ = ["SearchOptions", "columns_of", "execute", "search"]
