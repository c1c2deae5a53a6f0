"""GraphQL over the graph: the types it shows, one SPARQL query for one operation, what an input changes."""
