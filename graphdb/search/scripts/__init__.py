"""Scripts of requests, in the syntax of Painless. See DESIGN.md.

What is here has no import of Lark, which is read with the first script that is compiled.
"""
