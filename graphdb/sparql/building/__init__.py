"""Makes the syntax tree from what the grammar recognises, a layer of the language a module."""
