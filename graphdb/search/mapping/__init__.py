"""Mappings: which fields an index has, and what a document gives each. See DESIGN.md."""

from graphdb.search.mapping.mapping import Mapping
from graphdb.search.mapping.mapping_definition import MappingLimits

__all__ = ["Mapping", "MappingLimits"]
