"""What may be configured but is not built yet, where ignoring it would be dangerous."""

from graphdb.config.settings import Settings
from graphdb.errors import ConfigError

__all__ = ["refuse_unenforced"]


def refuse_unenforced(settings: Settings) -> None:
    """Raise ConfigError for each promise in the configuration that this version would not keep.

    A service that starts although it was told to check passwords, and checks none, is worse than one that
    does not start. What is merely absent (subscriptions) is not refused: nobody is misled by a
    path that is not there. Nor are providers while authentication is off, for then nobody is asked.
    """
    authentication = settings.authentication
    limiting = authentication.rate_limiting
    promises = {
        "acl": settings.acl is not None,
        "authentication.ldap": authentication.enabled and authentication.ldap is not None,
        "authentication.oidc": authentication.enabled and authentication.oidc is not None,
        "authentication.rate_limiting.backend = redis": authentication.enabled
        and limiting.enabled
        and limiting.backend == "redis",
    }
    unkept = [
        f"{key} is configured, but this version does not enforce it yet" for key, on in promises.items() if on
    ]
    if unkept:
        raise ConfigError(*unkept)
