"""`graphdb backup` and `graphdb restore`: a data directory in its present state, copied away and back."""

from pathlib import Path
from typing import Annotated

import typer

from graphdb.config import load_settings
from serve.cli.console import UsageError, out

__all__ = ["backup", "restore"]

DataDir = Annotated[Path | None, typer.Option(help="The service's data directory.", metavar="DIR")]
Config = Annotated[Path | None, typer.Option(help="Configuration file that names it.", metavar="FILE")]


def backup(
    directory: Annotated[Path, typer.Argument(help="New directory for the backup.", metavar="DIR")],
    data_dir: DataDir = None,
    config: Config = None,
) -> None:
    """Copy one consistent state of the service, running or stopped, into a new directory.

    The files are hard links where the file system allows, so a backup on the same disk takes no time and next
    to no room; copy it to another disk to survive the loss of this one.
    """
    from serve.cli import node  # reaches for stores and for Ray, which the other commands need not wait for

    if directory.exists():
        raise UsageError(f"{directory} exists; name a new directory")
    index = node.back_up(_data_dir(data_dir, config), directory.absolute())
    out.print(f"{directory}: the state at index {index}", markup=False)


def restore(
    directory: Annotated[
        Path, typer.Argument(help="A directory that `graphdb backup` wrote.", metavar="DIR")
    ],
    data_dir: DataDir = None,
    config: Config = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what the data directory holds.")] = False,
) -> None:
    """Make a backup the state of a stopped service."""
    from serve.cli import node

    target = _data_dir(data_dir, config)
    index = node.restore(directory.absolute(), target, replace=force)
    out.print(f"{target}: the state at index {index}", markup=False)


def _data_dir(data_dir: Path | None, config: Path | None) -> Path:
    overrides = {"server": {"data_dir": str(data_dir) if data_dir else None}}
    return load_settings(config, overrides).server.data_dir
