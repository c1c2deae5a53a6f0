"""Snapshots of search indexes in a directory: the files of a repository, and the documents in them."""
