"""`RelocatedPeers`: peers that say they listen elsewhere than where this node knows them, and are answered
there.

Such are a node that came back at another address, wiped or not; one that was added at one and runs at
another; and to a newcomer a leader that it was never told of. What a peer says of itself counts as long as it
speaks.
"""

from collections.abc import Callable, Mapping
from ipaddress import ip_address

from actors.raft.credentials import ClusterCredentials
from graphdb.config.service import split_address
from graphdb.errors import ConfigError
from graphdb.raft.membership import PeerId

__all__ = ["RELOCATED_S", "RelocatedPeers"]

RELOCATED_S = 10.0
_RELOCATED_MAX = 16


class RelocatedPeers:
    """Used on one thread."""

    def __init__(self, credentials: ClusterCredentials, clock: Callable[[], float]) -> None:
        """clock gives seconds that never go back."""
        self._credentials = credentials
        self._clock = clock
        self._met: dict[PeerId, tuple[str, float]] = {}  # where, and when it was last heard

    @property
    def addresses(self) -> Mapping[PeerId, str]:
        """Where each of them is to be answered."""
        return {peer: address for peer, (address, _) in self._met.items()}

    def meet(self, peer: PeerId, address: str, known_address: str | None) -> bool:
        """A peer has spoken that says it listens at address; whether that has changed `addresses`."""
        if address == known_address or not self._may_be_called(address):
            return self._met.pop(peer, None) is not None
        if peer not in self._met and len(self._met) >= _RELOCATED_MAX:
            return False
        before, _ = self._met.get(peer, ("", 0.0))
        self._met[peer] = (address, self._clock())
        return before != address

    def expire(self) -> bool:
        """Forget those that are silent; whether there were any."""
        silent = [peer for peer, (_, heard_at) in self._met.items() if self._clock() > heard_at + RELOCATED_S]
        for peer in silent:
            del self._met[peer]
        return bool(silent)

    def _may_be_called(self, address: str) -> bool:
        try:
            host, _ = split_address(address)
            self._credentials.check_address(address)
        except (ValueError, ConfigError):
            return False
        try:
            return not ip_address(
                host.strip("[]")
            ).is_unspecified  # 0.0.0.0 is where it listens, not where it is
        except ValueError:
            return True  # a name
