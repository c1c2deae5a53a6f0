"""Documents made from the graph, and which of them a change of it may concern. See DESIGN.md."""
