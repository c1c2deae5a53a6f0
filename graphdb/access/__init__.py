"""Who asks, and what they may do: principals, roles, credentials and how often these may be wrong."""
