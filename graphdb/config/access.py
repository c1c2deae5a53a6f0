"""The sections that say who may come in, what they may do and what they see."""

import re
import ssl
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, Field, SecretStr, StringConstraints, model_validator

from graphdb.config.distinguished_names import canonical_name
from graphdb.config.section import AbsoluteFile, AddressRange, ProviderUrl, Section, Sid

__all__ = [
    "Acl",
    "AclContext",
    "ApiKey",
    "Authentication",
    "Authorization",
    "Basic",
    "BasicUser",
    "Jwt",
    "Ldap",
    "Oidc",
    "RateLimiting",
    "SigningAlgorithm",
]

Name: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
# Asymmetric only: a verifier that holds a signing key could make tokens itself.
SigningAlgorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "ES256", "ES384", "PS256", "PS384", "PS512", "EdDSA"
]


def _distinguished_name(text: str) -> str:
    canonical_name(text)
    return text


def _directory_url(url: str) -> str:
    parts = urlsplit(url)
    if (
        parts.scheme not in ("ldap", "ldaps")
        or not parts.hostname
        or parts.port == 0
        or parts.path not in ("", "/")
        or parts.username is not None
        or parts.query
        or re.search(r"\s", url)
    ):
        raise ValueError("an address of a directory is ldap://HOST or ldaps://HOST, with :PORT or without")
    return url


def _authorities(path: AbsoluteFile) -> AbsoluteFile:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise ValueError(f"{path} holds no certificates as PEM") from None
    return path


def _redis_url(url: SecretStr) -> SecretStr:
    if not re.fullmatch(r"(rediss?://[^\s/]|unix://)\S*", url.get_secret_value()):
        raise ValueError("an address of Redis begins with redis://, rediss:// or unix://")
    return url


DistinguishedName: TypeAlias = Annotated[
    str, StringConstraints(min_length=1), AfterValidator(_distinguished_name)
]


def _check_distinct(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} stands twice")
        seen.add(name)


_PROFILE = ("display_name_attribute", "email_attribute")


class Ldap(Section):
    """Passwords checked against a directory."""

    server_url: Annotated[str, AfterValidator(_directory_url)] = Field(
        description="`ldap://` or `ldaps://` address."
    )
    # A server of Microsoft's takes other names here too, such as user@domain.
    bind_dn: Name = Field(description="DN that searches for users.")
    bind_password: SecretStr = Field(
        min_length=1, description='Its password; `"${NAME}"` reads the environment variable NAME.'
    )
    user_search_base: DistinguishedName = Field(description="Base DN of the search for users.")
    user_search_filter: str = Field(
        "(uid={0})", pattern=r"\{0\}", description="Filter that finds a user; `{0}` is replaced by the name."
    )
    group_member_attribute: Name = Field("memberOf", description="Attribute of a user that lists the groups.")
    sid_attribute: Name = Field("objectSid", description="Attribute of a user that holds the SID.")
    timeout_seconds: int = Field(5, ge=1, description="Seconds that one directory operation may take.")
    pool_size: int = Field(5, ge=1, description="Connections kept; requests queue when all are busy.")
    follow_referrals: bool = Field(False, description="Whether referrals to other servers are followed.")
    ca_cert_file: Annotated[AbsoluteFile, AfterValidator(_authorities)] | None = Field(
        None, description="PEM certificates that sign the server's; by default those of the system."
    )
    group_role_mapping: dict[DistinguishedName, Name] = Field({}, description="Group DN to role.")
    group_sid_mapping: dict[DistinguishedName, Sid] = Field({}, description="Group DN to SID.")

    @model_validator(mode="before")
    @classmethod
    def _without_profile(cls, given: Any) -> Any:
        """Keys of the interface about a user's profile, which the service has no use for."""
        return {key: given[key] for key in given if key not in _PROFILE} if isinstance(given, dict) else given


class Oidc(Section):
    """Access tokens of an OpenID Connect provider."""

    issuer_url: ProviderUrl = Field(
        description="The provider; must equal the tokens' `iss`. `https`, or `http` on loopback."
    )
    client_id: Name = Field(description="Client that command-line logins use.")
    audience: Name = Field(description="Must be in the tokens' `aud`.")
    roles_claim: Name = Field(
        "roles", description="Claim that lists roles; a dotted path reaches into objects."
    )
    sids_claim: Name = Field("sids", description="Claim that lists SIDs, dotted like `roles_claim`.")
    jwks_refresh_interval_secs: int = Field(
        3600, ge=1, description="Seconds after which keys are fetched again."
    )
    http_timeout_secs: int = Field(10, ge=1, description="Seconds that one call to the provider may take.")
    ca_cert_file: AbsoluteFile | None = Field(
        None, description="PEM certificates that sign the provider's; by default those of the system."
    )
    role_mapping: dict[str, Name] = Field(
        {},
        description="Maps the provider's roles to roles of the service; other roles are ignored. If empty, "
        "roles are used unchanged.",
    )


class Jwt(Section):
    """Tokens signed with your own key."""

    algorithm: SigningAlgorithm = Field(description="The one signing algorithm accepted.")
    public_key_file: AbsoluteFile = Field(description="PEM public key.")
    audience: Name = Field(description="Must be in the tokens' `aud`.")
    issuer: Name = Field(description="Must equal the tokens' `iss`.")
    roles_claim: Name = Field("roles", description="Claim that lists roles.")
    sids_claim: Name = Field("sids", description="Claim that lists SIDs.")


class BasicUser(Section):
    """One user of the file."""

    username: str = Field(pattern=r"^[^:]+$", description="Name, without a colon.")
    password_hash: str = Field(pattern=r"^\$argon2id\$", description="Argon2id hash of the password.")
    roles: tuple[Name, ...] = Field((), description="Roles of the user.")


class Basic(Section):
    """Users listed in the file; for development."""

    enabled: bool = Field(False, description="Whether these users may sign in.")
    users: tuple[BasicUser, ...] = Field((), description="The users.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_distinct("user", (user.username for user in self.users))
        return self


class RateLimiting(Section):
    """Lockout of addresses that fail to authenticate too often."""

    enabled: bool = Field(True, description="Whether failures are counted.")
    max_attempts: int = Field(
        10, ge=1, description="Failures within `window_seconds` that lock an address out."
    )
    window_seconds: int = Field(300, ge=1, description="Seconds over which failures are counted.")
    lockout_duration: int = Field(900, ge=1, description="Seconds that a lockout lasts.")
    whitelist: tuple[AddressRange, ...] = Field(
        (), description="Addresses or CIDR ranges that are never limited."
    )
    backend: Literal["memory", "redis"] = Field(
        "memory", description="`memory` counts per node, `redis` for all nodes."
    )
    redis_url: Annotated[SecretStr, AfterValidator(_redis_url)] | None = Field(
        None, description="Address of Redis; needed by the backend `redis`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.backend == "redis" and self.redis_url is None:
            raise ValueError('backend = "redis" needs redis_url')
        return self


class ApiKey(Section):
    """One API key; only its digest is kept."""

    name: Name = Field(description="Name of the key, for logs.")
    key_sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the key, in lower-case hexadecimal."
    )
    roles: tuple[Name, ...] = Field((), description="Roles of the key.")
    sids: tuple[Sid, ...] = Field((), description="SIDs of the key.")
    expires_at: AwareDatetime | None = Field(
        None, description="When the key expires, with time zone; by default never."
    )


class Authentication(Section):
    """How clients authenticate."""

    enabled: bool = Field(
        False, description="Whether requests need credentials; if not, credentials are ignored."
    )
    ldap: Ldap | None = Field(None, description="Directory.")
    oidc: Oidc | None = Field(None, description="OpenID Connect provider.")
    jwt: Jwt | None = Field(None, description="Self-issued tokens.")
    basic: Basic | None = Field(None, description="Users of the file.")
    rate_limiting: RateLimiting = Field(RateLimiting(), description="Brute-force protection.")
    api_keys: tuple[ApiKey, ...] = Field((), description="API keys.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_distinct("API key", (key.name for key in self.api_keys))
        providers = (self.ldap, self.oidc, self.jwt, self.basic and self.basic.enabled, self.api_keys)
        if self.enabled and not any(providers):
            raise ValueError(
                "enabled, but no ldap, oidc, jwt, basic (enabled) or api_keys: nobody could come in"
            )
        return self


class Authorization(Section):
    """Permissions of roles."""

    role_permissions: dict[Name, Literal["Admin", "Write", "Read", "None"]] = Field(
        {}, description="Further role names; `admin`, `writer` and `reader` are always known."
    )


class AclContext(Section):
    """A set of visible graphs and search indexes."""

    visible_graphs: tuple[Name, ...] = Field(
        (),
        description="`**` all graphs, `*` the named ones, an IRI, or the start of one followed by `*`.",
    )
    visible_default_graph: bool = Field(False, description="Whether the default graph is visible.")
    visible_indexes: tuple[Name, ...] = Field(
        ("*",),
        description="Visible search indexes: names, in which `*` matches any characters. `*` alone is "
        "every index; an index that follows the graph is included only if all graphs are "
        "visible. `**` always includes these too.",
    )


class Acl(Section):
    """Visibility of data; once configured, users without a context see nothing."""

    contexts: dict[Name, AclContext] = Field({}, description="The contexts by name.")
    role_contexts: dict[Name, Name] = Field({}, description="Role to context.")
    actor_contexts: dict[Name, Name] = Field(
        {}, description="User to context; takes precedence over `role_contexts`."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for table, mapping in (
            ("role_contexts", self.role_contexts),
            ("actor_contexts", self.actor_contexts),
        ):
            for who, context in mapping.items():
                if context not in self.contexts:
                    raise ValueError(f"{table}.{who}: there is no context {context!r}")
        return self
