"""Configuration: what can be set, what it means, and how it is read."""

from graphdb.config.loading import load_settings
from graphdb.config.service import Live
from graphdb.config.settings import Settings

__all__ = ["Live", "Settings", "load_settings"]
