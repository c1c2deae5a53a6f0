"""Segments: arrays of documents, built, merged and kept on disk, and the shard that they make up."""

from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.builder import SegmentBuilder

__all__ = ["ArraySegment", "SegmentBuilder"]
