"""What one SPARQL request may be at most."""

from pydantic import Field

from graphdb.config.section import Section

__all__ = ["GateLimits"]


class GateLimits(Section):
    """The limits of the gate, kept in `[security]`; beyond one of them a request is refused with 400.

    Each figure is of a whole query, or of one operation of an update; text and tokens are of the request.
    """

    max_query_bytes: int = Field(
        262_144,
        ge=1,
        description="Size of a query or update in bytes, without large blocks of DATA.",
    )
    max_query_tokens: int = Field(
        2500,
        ge=1,
        description="Number of tokens, not counting those between the braces of VALUES and DATA.",
    )
    max_nesting: int = Field(
        50,
        ge=1,
        description="Nesting of groups: OPTIONAL, UNION, EXISTS, sub-selects and plain braces. Brackets of "
        "any kind nest at most 200 deep, whatever is set here.",
    )
    max_patterns_per_group: int = Field(
        40,
        ge=1,
        description="Joined elements of one group: triple patterns (also those within plain braces and "
        "GRAPH), steps of paths, sub-selects and VALUES; a UNION counts as two.",
    )
    max_patterns: int = Field(100, ge=1, description="Triple patterns of all groups together.")
    max_optionals: int = Field(32, ge=0, description="Number of OPTIONALs.")
    max_unions: int = Field(100, ge=0, description="Branches of all UNIONs.")
    max_binds: int = Field(
        100,
        ge=0,
        description="BINDs, computed columns, aggregates, keys of GROUP BY and ORDER BY, resources that "
        "DESCRIBE names.",
    )
    max_filters: int = Field(100, ge=0, description="FILTERs, EXISTS, MINUS and conditions of HAVING.")
    max_expression_depth: int = Field(
        500, ge=1, description="Depth of an expression; `a || b || c` is two deep, as the engine nests it."
    )
    max_expression_size: int = Field(
        2000, ge=1, description="Operators and calls of all expressions together."
    )
    max_path_depth: int = Field(
        10, ge=0, description="Nesting of operators in a property path; a sequence counts as one."
    )
    max_path_length: int = Field(
        100, ge=1, description="Steps of all property paths; those below each `+` count twice."
    )
    max_operations: int = Field(
        200, ge=1, description="Operations of an update, except INSERT DATA and DELETE DATA."
    )

    def figures(self) -> dict[str, int]:
        """The limits by their names; without what a section that extends this one has besides."""
        return self.model_dump(include=set(GateLimits.model_fields))
