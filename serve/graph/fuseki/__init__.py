"""The paths of Fuseki, for the clients of Jena."""
