"""The catalogue: the indexes of a node as a state machine that log entries drive. See DESIGN.md."""
