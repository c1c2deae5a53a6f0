"""`access_backend`: what the authentication of a port needs of the actors."""

import os

from actors.access.audit_file import AuditFile
from actors.access.failure_board import FailureBoard
from actors.wire.server import private_directory
from graphdb.access.permissions import Roles
from graphdb.config import Settings
from serve.access.access_backend import AccessBackend

__all__ = ["access_backend"]


def access_backend(settings: Settings) -> AccessBackend:
    """What the door of one of this node's ports needs; its application closes it."""
    configured, audit = settings.authentication, None
    if settings.audit.enabled:
        audit = AuditFile(
            settings.audit.file or settings.server.data_dir / "audit" / "audit.log", settings.audit
        )
    if not configured.enabled:
        return AccessBackend(audit=audit)
    limits, ldap, redis = configured.rate_limiting, configured.ldap, None
    if limits.enabled and limits.backend == "redis":
        # not at the top: its client, or that of LDAP, is a tenth of a second of the start of each port
        from actors.access.redis_failures import RedisFailures

        redis = RedisFailures(limits)
    directory = None
    if ldap is not None:
        from actors.access.directory import Directory

        directory = Directory(ldap, Roles(settings.authorization))
    files = private_directory(str(settings.server.data_dir / "graph"))
    return AccessBackend(FailureBoard(os.path.join(files, "failures"), limits), redis, directory, audit)
