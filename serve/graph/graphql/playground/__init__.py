"""The files of the playground, which `serve.graph.browser_pages` serves: our own, and GraphiQL."""
