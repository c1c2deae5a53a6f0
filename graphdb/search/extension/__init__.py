"""`_ext`: what a search may ask of the graph. See DESIGN.md."""
