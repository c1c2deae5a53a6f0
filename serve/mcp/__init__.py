"""The graph for agents, by the Model Context Protocol: the tools, and the server that offers them.

The package `mcp` is imported by `mcp_server` alone, because that takes a second of processor time.
"""
