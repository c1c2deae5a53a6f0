"""`Slapd`: a real directory on loopback ports of its own, with users, groups and binary SIDs."""

import shutil
import struct
from pathlib import Path

import ldap3
import pytest
from ldap3.core.exceptions import LDAPExceptionError

from tests.support.server_process import ServerProcess
from tests.support.service import free_port

__all__ = ["BASE", "MANAGER", "SECRET", "Slapd", "needs_slapd", "sid_octets"]

COMMAND = shutil.which("slapd") or shutil.which("/usr/sbin/slapd")
needs_slapd = pytest.mark.skipif(COMMAND is None, reason="slapd is missing: apt-get install slapd")

BASE, SECRET = "dc=example,dc=org", "of the service"
MANAGER = f"cn=service,{BASE}"
_CONFIGURATION = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.2.840.113556.1.4.146 NAME 'objectSid' EQUALITY octetStringMatch
    SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
objectclass ( 1.3.6.1.4.1.53263.1 NAME 'principal' AUXILIARY MAY objectSid )
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {directory}/slapd.pid
{tls}
sizelimit 500
database mdb
suffix "{base}"
rootdn "{manager}"
rootpw "{secret}"
directory {directory}/db
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by * read
"""


def sid_octets(text: str) -> bytes:
    """A SID as Microsoft's directories hold it."""
    numbers = [int(part) for part in text.split("-")[2:]]
    head = struct.pack(">BBHI", 1, len(numbers) - 1, numbers[0] >> 32, numbers[0] & 0xFFFFFFFF)
    return head + struct.pack(f"<{len(numbers) - 1}I", *numbers[1:])


class Slapd(ServerProcess):
    """Started when made; what it held is there when it is started again."""

    def __init__(self, directory: Path, certificate: Path | None = None, key: Path | None = None) -> None:
        """With a certificate and its key it takes ldaps too."""
        assert COMMAND is not None
        self._port, tls_port = free_port(), free_port()
        self.certificate = certificate
        (directory / "db").mkdir()
        tls = f"TLSCertificateFile {certificate}\nTLSCertificateKeyFile {key}" if certificate else ""
        file = directory / "slapd.conf"
        file.write_text(
            _CONFIGURATION.format(directory=directory, tls=tls, base=BASE, manager=MANAGER, secret=SECRET)
        )
        self.url, self.tls_url = f"ldap://127.0.0.1:{self._port}", f"ldaps://localhost:{tls_port}"
        urls = self.url + (f" ldaps://127.0.0.1:{tls_port}" if certificate else "")
        super().__init__([COMMAND, "-f", str(file), "-h", urls, "-d", "0"], self._port)
        self.start()
        self.add(BASE, ["organization", "dcObject"], o="example")
        for name in ("people", "groups"):
            self.add(f"ou={name},{BASE}", ["organizationalUnit"])

    def add(self, dn: str, classes: list[str], **attributes: object) -> None:
        """An entry."""
        server = ldap3.Server("127.0.0.1", self._port, get_info=ldap3.NONE)
        with ldap3.Connection(server, MANAGER, SECRET) as connection:
            if not connection.add(dn, classes, attributes):  # type: ignore[no-untyped-call]
                raise LDAPExceptionError(f"{dn}: {connection.result}")

    def add_user(self, name: str, password: str | None, sid: bytes | None = None, **further: object) -> str:
        """A user, by uid; its distinguished name."""
        dn = f"cn={name},ou=people,{BASE}"
        attributes = {"sn": name, "uid": name, **further}
        attributes |= {} if password is None else {"userPassword": password}
        attributes |= {} if sid is None else {"objectSid": sid}
        self.add(dn, ["inetOrgPerson", "principal"], **attributes)
        return dn

    def add_group(self, rdn: str, *members: str, sid: bytes | None = None) -> str:
        """A group of these; its distinguished name."""
        dn = f"{rdn},ou=groups,{BASE}"
        attributes = {} if sid is None else {"objectSid": sid}
        self.add(dn, ["groupOfNames", "principal"], member=list(members), **attributes)
        return dn
