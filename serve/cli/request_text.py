"""Where the text of a query or update comes from: the argument, a file, or standard input."""

import sys
from pathlib import Path

from serve.cli.console import CommandError, UsageError

__all__ = ["read_text"]

_ENCODING = "utf-8-sig"  # without the byte order mark that some editors write


def read_text(text: str | None, file: Path | None) -> str:
    """The request's text. Without argument and file, or with "-", it is read from standard input."""
    if text is not None and file is not None:
        raise UsageError("give the text or --file, not both")
    if file is not None:
        try:
            return file.read_text(encoding=_ENCODING)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CommandError(f"{file}: not UTF-8") from None
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise UsageError("give the text as argument, with --file, or on standard input")
    try:
        return sys.stdin.buffer.read().decode(_ENCODING)
    except UnicodeDecodeError:
        raise CommandError("standard input: not UTF-8") from None
