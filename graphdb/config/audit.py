"""The section of the audit log."""

from pydantic import Field

from graphdb.config.section import AbsolutePath, Section

__all__ = ["Audit"]


class Audit(Section):
    """A log of all requests and who made them."""

    enabled: bool = Field(False, description="Whether requests are logged.")
    file: AbsolutePath | None = Field(
        None, description="Path of the log; by default `audit/audit.log` in the data directory."
    )
    max_file_bytes: int = Field(
        100_000_000, ge=10_000, description="Size in bytes at which the file is rotated."
    )
    files: int = Field(10, ge=1, le=1_000, description="Older files kept, as `audit.log.1` and so on.")
    reads: bool = Field(
        True,
        description="Whether successful reads are logged too; writes, refusals and failures always are.",
    )
