"""Tokens of profiles: kept when a person has signed in, shown to the service, renewed before they end."""

import time
from collections.abc import Generator

import httpx

from serve.cli.console import CommandError
from serve.cli.profiles import Profile, ProfileStore
from serve.cli.provider import Granted, GrantRefused, Provider, ProviderAway

__all__ = ["ProfileAuth", "granted_to", "valid_profile"]

_MARGIN_S = 30.0  # a token that ends sooner is renewed before it is used


class ProfileAuth(httpx.Auth):
    """The credentials of one profile, for as many requests as there are, however long that takes."""

    def __init__(self, store: ProfileStore, name: str) -> None:
        self._store, self._name = store, name
        self._profile: Profile | None = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raises CommandError."""
        if self._profile is None or _ends_soon(self._profile):
            self._profile = valid_profile(self._store, self._name)
        request.headers["Authorization"] = f"Bearer {self._profile.access_token}"
        yield request


def granted_to(profile: Profile, granted: Granted) -> Profile:
    """The profile with new tokens; where there is no new refresh token the old one goes on."""
    return profile.model_copy(
        update={
            "access_token": granted.access_token,
            "refresh_token": granted.refresh_token or profile.refresh_token,
            "expires_at": None if granted.lives_s is None else time.time() + granted.lives_s,
        }
    )


def valid_profile(store: ProfileStore, name: str, renew: bool = False) -> Profile:
    """The profile, its token renewed where it ends soon, or in any case. Raises CommandError."""
    before = store.read()
    profile = before.profiles[before.chosen(name)]
    if not renew and not _ends_soon(profile):
        return profile
    with store.changing() as profiles:
        current = profiles.profiles[profiles.chosen(name)]
        # Another process may have renewed it while this one waited: its refresh token may be used once only.
        if current.access_token == profile.access_token or _ends_soon(current):
            current = _renewed(current, name, renew)
            profiles.profiles[name] = current
        return current


def _renewed(profile: Profile, name: str, must: bool) -> Profile:
    """Unless it must be renewed, a token that holds for a moment yet is better than none."""
    again = f"sign in again: graphdb auth login --profile {name}"
    will_do = not must and not _has_ended(profile)
    if profile.refresh_token is None:
        if will_do:
            return profile
        raise CommandError(f"the profile {name} has no refresh token (scope offline_access); {again}")
    try:
        with Provider(profile.issuer, profile.client_id) as provider:
            return granted_to(profile, provider.refresh(profile.refresh_token))
    except GrantRefused as error:
        raise CommandError(f"{error}; {again}") from None
    except ProviderAway:
        if not will_do:
            raise
        return profile


def _ends_soon(profile: Profile) -> bool:
    return profile.expires_at is not None and profile.expires_at - time.time() < _MARGIN_S


def _has_ended(profile: Profile) -> bool:
    return profile.expires_at is not None and profile.expires_at <= time.time()
