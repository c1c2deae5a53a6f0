"""Ingest pipelines: what is done with documents before they are written."""
