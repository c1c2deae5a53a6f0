"""One node's search indexes, following the log. See DESIGN.md."""
