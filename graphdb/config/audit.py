"""The section of the audit log."""

from pydantic import Field

from graphdb.config.section import AbsolutePath, Section

__all__ = ["Audit"]


class Audit(Section):
    """A file that says who asked what."""

    enabled: bool = Field(False, description="Whether requests are noted.")
    file: AbsolutePath | None = Field(
        None, description="The file; `audit/audit.log` in the data directory unless given."
    )
    max_file_bytes: int = Field(
        100_000_000, ge=10_000, description="Size at which the file is put aside and a new one begun."
    )
    files: int = Field(10, ge=1, le=1_000, description="Older files kept, as `audit.log.1` and so on.")
    reads: bool = Field(
        True,
        description="Whether reads that succeed are noted too; writes, refusals and failures always are.",
    )
