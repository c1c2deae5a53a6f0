"""The `graphdb` command: its groups put together, and every failure said in one line.

Exit codes: 0 done, 1 failed, 2 called wrongly, 130 interrupted.
"""

import os
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module

import typer
from typer.exceptions import TyperException

from graphdb.errors import GraphDBError
from serve.cli.console import CommandError

__all__ = ["COMMANDS", "main"]

# where each command is, or group of commands, in the order of the help
COMMANDS = {
    "serve": "serve.cli.serve",
    "load": "serve.cli.load",
    "query": "serve.cli.query",
    "update": "serve.cli.query",
    "dump": "serve.cli.dump",
    "validate": "serve.cli.validate",
    "health": "serve.cli.cluster",
    "backup": "serve.cli.backup",
    "restore": "serve.cli.backup",
    "auth": "serve.cli.auth",
    "cluster": "serve.cli.cluster",
    "history": "serve.cli.history",
    "snapshots": "serve.cli.snapshots",
    "mcp": "serve.cli.mcp",
}
INTERRUPTED = 130


def _made(names: Iterable[str]) -> typer.Typer:
    """The command with these of its commands. Only their modules are imported."""
    app = typer.Typer(
        name="graphdb",
        help="A graph database service: start it, fill it, ask it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)  # else the only command would be called without its name
    for name in names:
        found = getattr(import_module(COMMANDS[name]), name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command()(found)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the result is the exit code. arguments are the process's unless given."""
    first = (sys.argv[1:] if arguments is None else arguments)[:1]
    try:
        app = _made(COMMANDS.keys() & first or COMMANDS)  # all for the help, and for what is misspelt
        result = app(arguments, prog_name="graphdb", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _end_quietly()
    except typer.Abort:
        return INTERRUPTED
    except TyperException as error:
        # without a word where it was called without a command: the help is there already
        return _fail(error.format_message(), error.exit_code) if error.format_message() else error.exit_code
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except GraphDBError as error:
        return _fail(str(error), 1)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}", 1)
    except Exception as error:  # noqa: BLE001 a bug is said in one line too, with the place to look at
        return _fail(f"unexpected {type(error).__name__}: {error} (at {_place(error)})", 1)


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"


def _fail(reason: str, exit_code: int) -> int:
    for line in reason.splitlines() or ["failed"]:
        print(f"graphdb: {line}", file=sys.stderr)
    return exit_code


def _end_quietly() -> int:
    """The reader of standard output has closed it (`graphdb dump | head`), which is not an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
