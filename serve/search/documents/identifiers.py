"""Ids for documents that come without one."""

from secrets import token_urlsafe

__all__ = ["generated_id"]


def generated_id() -> str:
    """20 characters that stand in an address as they are."""
    return token_urlsafe(15)
