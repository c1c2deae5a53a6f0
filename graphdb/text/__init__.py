"""Full text of the graph's literals, for searches within SPARQL. See DESIGN.md."""
