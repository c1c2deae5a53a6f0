"""The files of `/docs`, which `serve.graph.browser_pages` serves: our own, and Swagger UI (`VENDORED.md`)."""
