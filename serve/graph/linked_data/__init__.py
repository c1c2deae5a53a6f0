"""Linked Data: resources at their own IRIs, and what the data are about (VoID)."""
