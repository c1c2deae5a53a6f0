"""`Network`: network namespaces on one bridge, as machines on one switch, whose links can be cut."""

import contextlib
import os
import secrets
import shutil
import subprocess

__all__ = ["Network", "why_unavailable"]

_NOWHERE = "02:00:00:00:00:01"  # nobody has this address: what is sent there is lost without a word
_HOST_NUMBER = 254


def why_unavailable() -> str | None:
    """Why no network can be made here; None where one can."""
    if shutil.which("ip") is None:
        return "there is no `ip`: apt-get install iproute2"
    if os.geteuid() != 0:
        return "network namespaces take root"
    probe = f"gdbprobe{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces here: {made.stderr.strip()}"
    linked = subprocess.run(
        ["ip", "-n", probe, "link", "add", "one", "type", "veth", "peer", "name", "two"],
        capture_output=True,
        text=True,
        check=False,
    )
    _ip("netns", "delete", probe)
    return f"no veth pairs here: {linked.stderr.strip()}" if linked.returncode else None


class Network:
    """Machines by number, 1 to 253; this process reaches them all. close() it at last."""

    def __init__(self) -> None:
        mark = secrets.token_hex(3)
        self._bridge = f"gdbbr{mark}"
        self._name = f"gdb{mark}"
        # 198.18.0.0/15 is set aside for tests of networks (RFC 2544)
        self._prefix = f"198.18.{secrets.randbelow(256)}"
        self._machines: set[int] = set()
        self._cut: set[tuple[int, int]] = set()
        _ip("link", "add", self._bridge, "type", "bridge")
        try:
            _ip("address", "add", f"{self._prefix}.{_HOST_NUMBER}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
        except BaseException:
            self.close()
            raise

    def add(self, number: int) -> None:
        """A machine of its own, with a loopback and one card."""
        name, port = self._namespace(number), f"{self._name}v{number}"
        _ip("netns", "add", name)
        self._machines.add(number)
        _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", port, "master", self._bridge, "up")
        _ip("-n", name, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")

    def remove(self, number: int) -> None:
        """Remove a machine; what runs on it has to have ended before."""
        self._machines.remove(number)
        _ip("netns", "delete", self._namespace(number))

    def address(self, number: int) -> str:
        return f"{self._prefix}.{number}"

    @property
    def own_address(self) -> str:
        """Where the machines reach this process."""
        return f"{self._prefix}.{_HOST_NUMBER}"

    def within(self, number: int) -> tuple[str, ...]:
        """The beginning of a command that runs on this machine."""
        return ("ip", "netns", "exec", self._namespace(number))

    def cut(self, sender: int, receiver: int) -> None:
        """From now on nothing that sender sends reaches receiver; the other way is another cut."""
        self._cut.add((sender, receiver))
        target = (self.address(receiver), "lladdr", _NOWHERE, "dev", "eth0", "nud", "permanent")
        _ip("-n", self._namespace(sender), "neighbour", "replace", *target)

    def isolate(self, number: int) -> None:
        """Cut a machine off from all others, both ways; this process still reaches it."""
        for other in self._machines - {number}:
            self.cut(number, other)
            self.cut(other, number)

    def heal(self) -> None:
        """Undo every cut."""
        for sender, receiver in self._cut:
            entry = (self.address(receiver), "dev", "eth0")
            _ip("-n", self._namespace(sender), "neighbour", "delete", *entry)
        self._cut.clear()

    def close(self) -> None:
        """Remove it all; what runs on the machines has to have ended before."""
        for number in list(self._machines):
            with contextlib.suppress(subprocess.CalledProcessError):
                self.remove(number)
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "delete", self._bridge)

    def _namespace(self, number: int) -> str:
        return f"{self._name}n{number}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
