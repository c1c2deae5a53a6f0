"""Mappings: which fields an index has, and what a document gives each. See DESIGN.md."""

from graphdb.search.mapping.definition import MappingLimits
from graphdb.search.mapping.mapping import Mapping

__all__ = ["Mapping", "MappingLimits"]
