"""Where profiles are kept, for all commands, which have no need of what is in them where there are none."""

import os
from pathlib import Path

__all__ = ["PROFILES_FILE", "profiles_directory"]

PROFILES_FILE = "profiles.json"


def profiles_directory() -> Path:
    """`graphdb` in the directory of the XDG Base Directory Specification; a relative path is ignored."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path("~/.config").expanduser()
    return base / "graphdb"
