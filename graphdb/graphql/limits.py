"""What one GraphQL operation may be at most."""

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The first four are those of `[graphql]` in the configuration."""

    max_depth: int = 15
    max_complexity: int = 1000
    default_page_size: int = 25
    max_page_size: int = 100
    max_rows: int = 200_000  # of the SPARQL query
    introspection: bool = True
