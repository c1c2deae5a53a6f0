"""`graphdb serve`: settings from their sources, then the service in the foreground."""

import asyncio
import functools
from pathlib import Path
from typing import Annotated

import typer

from graphdb.config import load_settings

__all__ = ["serve"]


def serve(
    config: Annotated[Path | None, typer.Option(help="Configuration file.", metavar="FILE")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where the data is kept.", metavar="DIR")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", metavar="H")] = None,
    port: Annotated[int | None, typer.Option(help="Port of SPARQL and Graph Store.", metavar="N")] = None,
    search_port: Annotated[int | None, typer.Option(help="Port of the search API.", metavar="N")] = None,
    demo: Annotated[
        Path | None, typer.Option(help="Load this folder once ready, and say what to try.", metavar="DIR")
    ] = None,
) -> None:
    """Start the service; it runs until SIGTERM or Ctrl-C."""
    settings = load_settings(
        config,
        {
            "server": {"data_dir": str(data_dir) if data_dir else None, "host": host, "port": port},
            "search": {"port": search_port},
        },
    )
    if settings.authentication.enabled:
        # at the top, a service without authentication would load the libraries of all its kinds
        from serve.access.authentication import Authenticator

        # invalid hashes and keys are reported before anything starts
        asyncio.run(Authenticator(settings).stop())
    if demo is not None:
        from serve.cli.demo import announce_demo, show_demo

        announce_demo(settings)
    # Ray is imported here, because that takes a second, for which other commands need not wait.
    from serve.deployments import run_service

    run_service(settings, None if demo is None else functools.partial(show_demo, settings, demo))
