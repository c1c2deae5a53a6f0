"""Configuration: what can be set, what it means, and how it is read."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphdb.config.loading import load_settings
    from graphdb.config.service import Live
    from graphdb.config.settings import Settings

__all__ = ["Live", "Settings", "load_settings"]

# When first asked for: many modules need one section of the settings, and reading them takes 0.2 s to import.
_MODULES = {"Live": "service", "Settings": "settings", "load_settings": "loading"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
