"""Who may speak on port 7002: TLS files, a shared secret, both, or neither on the loopback."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from graphdb.addresses import is_loopback
from graphdb.config.service import Cluster, split_address
from graphdb.errors import ConfigError

__all__ = ["ClusterCredentials", "TlsFiles"]

_SALT = b"graphdb cluster secret 1"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM content: what this node shows its peers, and who signs theirs. Each side asks the other for it."""

    certificate: bytes
    key: bytes = field(repr=False)
    authorities: bytes


@dataclass(frozen=True, slots=True)
class ClusterCredentials:
    """What a node of the cluster knows and others do not."""

    key: bytes | None = field(default=None, repr=False)  # derived from the secret, see `with_secret`
    tls: TlsFiles | None = None

    @classmethod
    def of(cls, secret: str | None, tls: TlsFiles | None = None) -> "ClusterCredentials":
        """Derive the key from a secret, slowly: whoever overhears a proof can try secrets against it, and
        shall not try many.
        """
        if secret is None:
            return cls(None, tls)
        key = hashlib.scrypt(secret.encode(), salt=_SALT, n=1 << 14, r=8, p=1, dklen=32)
        return cls(key, tls)

    @classmethod
    def from_settings(cls, settings: Cluster) -> "ClusterCredentials":
        """Read the files that the settings name. Raises ConfigError."""
        secret = settings.secret.get_secret_value() if settings.secret is not None else None
        files = (settings.tls_cert_file, settings.tls_key_file, settings.tls_ca_file)
        tls = TlsFiles(*[_read(path) for path in files if path is not None]) if all(files) else None
        return cls.of(secret, tls)

    def check_address(self, address: str) -> None:
        """Raises ConfigError where a node at this address must not go without credentials."""
        host, _ = split_address(address)
        if self.key is None and self.tls is None and not is_loopback(host):
            raise ConfigError(f"cluster.address: {address} is not loopback: it needs TLS files or a secret")

    def for_server(self) -> grpc.ServerCredentials | None:
        """What the port is opened with; None: without TLS."""
        if self.tls is None:
            return None
        pair = (self.tls.key, self.tls.certificate)
        return grpc.ssl_server_credentials([pair], self.tls.authorities, require_client_auth=True)

    def for_channel(self) -> grpc.ChannelCredentials | None:
        """What peers are called with; None: without TLS."""
        if self.tls is None:
            return None
        return grpc.ssl_channel_credentials(self.tls.authorities, self.tls.key, self.tls.certificate)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cluster: {path} cannot be read: {error.strerror}") from error
