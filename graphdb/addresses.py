"""Addresses that may be trusted with secrets: of this machine, of providers. It loads next to nothing."""

from ipaddress import ip_address
from urllib.parse import urlsplit

__all__ = ["is_loopback", "provider_url"]


def is_loopback(host: str) -> bool:
    """Whether a listener on this host is reached from this machine alone; of names, only localhost counts."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def provider_url(text: str) -> str:
    """An address to which secrets may be sent and whose answers are believed. Raises ValueError."""
    parts = urlsplit(text)
    if not text.isprintable() or " " in text or not parts.hostname or parts.fragment or "@" in parts.netloc:
        raise ValueError("no address of a provider")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise ValueError("an address of a provider begins with https://; with http:// only on loopback")
    return text
