"""GraphiQL, served from files beside this one: `VENDORED.md` says which. Nothing is loaded from elsewhere."""

from serve.graph.stored_page import SCRIPT, STYLE, StoredPage

__all__ = ["PLAYGROUND"]

# The files are our own, then those of npm packages as they came, but compressed.
PLAYGROUND = StoredPage(
    __name__,
    "playground.html",
    {
        "playground.js": SCRIPT,
        "playground.css": STYLE,
        "react.production.min.js": SCRIPT,
        "react-dom.production.min.js": SCRIPT,
        "graphiql.min.js": SCRIPT,
        "graphiql.min.css": STYLE,
    },
)
