"""Options that several commands have."""

from typing import Annotated, TypeAlias

import typer

__all__ = ["AsOf", "Endpoint", "ProfileName"]

Endpoint: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--endpoint", help="Address of the service; else the profile's, or GRAPHDB_ENDPOINT.", metavar="URL"
    ),
]

AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="The graph as it was: a log index, a time such as 2026-11-27T08:00:00Z, or the name of a state.",
        metavar="MOMENT",
    ),
]

ProfileName: TypeAlias = Annotated[
    str | None,
    typer.Option("--profile", help="Sign in as `graphdb auth login` has for this profile.", metavar="NAME"),
]
