"""Which URLs the rules allow, and which addresses a name may turn out to have."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.egress.rules import HostRules
from graphdb.errors import HostNotAllowed

RULES = ("data.example", "Sub.Data.Example", "10.1.0.0/16", "192.0.2.7", "2001:db8::/32", "localhost")

ALLOWED = {
    "http://data.example": ("data.example", 80),
    "HTTPS://DATA.example./path": ("data.example", 443),
    "http://sub.data.example:8080/?q#f": ("sub.data.example", 8080),
    "http://10.1.2.3/": ("10.1.2.3", 80),
    "http://192.0.2.7:1/": ("192.0.2.7", 1),
    "http://[2001:DB8:0::1]/": ("2001:db8::1", 80),
    "http://[::ffff:10.1.2.3]/": ("10.1.2.3", 80),
    "http://[::ffff:0a01:0203]/": ("10.1.2.3", 80),
    "http://localhost:7001/": ("localhost", 7001),
}

REFUSED = {
    "http://example/": "no rule is the name 'example'",
    "http://other.data.example/": "no rule is the name 'other.data.example'",
    "http://data.example.evil/": "no rule is the name",
    "http://data.example:80@evil/": "it holds credentials",
    "http://user@data.example/": "it holds credentials",
    "http://data.example\\@evil/": "it holds credentials",
    "http://10.2.0.1/": "no rule covers the address 10.2.0.1",
    "http://127.0.0.1/": "no rule covers the address 127.0.0.1",
    "http://[::1]/": "no rule covers the address ::1",
    "http://[::ffff:127.0.0.1]/": "no rule covers the address 127.0.0.1",
    "http://167837699/": "no rule is the name",
    "http://0x0a.1.2.3/": "no rule is the name",
    "http://10.1.515/": "no rule is the name",
    "http://012.1.2.3/": "this is no URL",
    "http://10.1.2.3.4/": "no rule is the name",
    "http://%31%30.1.2.3/": "no rule is the name",
    "http://１０.1.2.3/": "",
    "http://data。example.evil/": "",
    "http://data.example:0/": "no port 0",
    "http://data.example:99999/": "no port 99999",
    "http://data.example:x/": "this is no URL",
    "http:///data.example/": "there is no host",
    "http:data.example/": "there is no host",
    "//data.example/": "only http and https",
    "file:///etc/passwd": "only http and https",
    "ftp://data.example/": "only http and https",
    "urn:data.example": "only http and https",
    "": "only http and https",
    "http://data.example/\n": "this is no URL",
}


@pytest.mark.parametrize("url", ALLOWED)
def test_allowed(url: str) -> None:
    destination = HostRules("LOAD", RULES).destination(url)
    assert (destination.host, destination.port) == ALLOWED[url]


@pytest.mark.parametrize("url", REFUSED)
def test_refused(url: str) -> None:
    rules = HostRules("LOAD", RULES)
    with pytest.raises(HostNotAllowed) as refused:
        rules.destination(url)
    assert REFUSED[url] in str(refused.value)
    assert refused.value.operation == "LOAD"
    assert not rules.allows(url)


def test_no_rules_allow_nothing() -> None:
    assert not HostRules("LOAD", ())
    assert not HostRules("LOAD", ()).allows("http://data.example/")


PUBLIC = ["93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34"]
NOT_PUBLIC = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.2.1",
    "192.168.0.1",
    "168.63.129.16",
    "192.0.0.192",
    "192.88.99.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2001::1",
    "2002:7f00:1::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_name_may_have_public_addresses(address: str) -> None:
    rules = HostRules("SERVICE", ["data.example"])
    assert rules.checked(rules.destination("http://data.example/"), [address])


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_a_name_may_have_no_others_unless_a_rule_covers_them(address: str) -> None:
    rules = HostRules("SERVICE", ["data.example"])
    destination = rules.destination("http://data.example/")
    with pytest.raises(HostNotAllowed, match="which is not public; a rule with this address"):
        rules.checked(destination, [PUBLIC[0], address])
    plain = ipaddress.ip_address(address)
    covering = HostRules("SERVICE", ["data.example", address.partition("%")[0]])
    assert covering.checked(destination, [address]) == [getattr(plain, "ipv4_mapped", None) or plain]


def test_localhost_may_be_loopback_and_nothing_else() -> None:
    rules = HostRules("SERVICE", ["localhost", "db.localhost", "localhost.example"])
    for name in ("localhost", "db.localhost"):
        destination = rules.destination(f"http://{name}/")
        assert len(rules.checked(destination, ["127.0.0.1", "::1"])) == 2
        with pytest.raises(HostNotAllowed):
            rules.checked(destination, ["10.0.0.1"])
    with pytest.raises(HostNotAllowed):
        rules.checked(rules.destination("http://localhost.example/"), ["127.0.0.1"])


def webhook_rules(*rules: str) -> HostRules:
    return HostRules("WEBHOOK", rules, public_allowed=True)


@pytest.mark.parametrize("address", PUBLIC)
def test_where_public_hosts_need_no_rule(address: str) -> None:
    rules = webhook_rules()
    assert rules.checked(rules.destination("https://hooks.example/x"), [address])
    host = f"[{address}]" if ":" in address else address
    assert rules.allows(f"http://{host}/")


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_where_only_what_is_not_public_needs_a_rule(address: str) -> None:
    rules = webhook_rules("intra.example")
    host = f"[{address.replace('%', '%25')}]" if ":" in address else address
    assert not rules.allows(f"http://{host}/")
    with pytest.raises(HostNotAllowed, match=r"webhook_allow.*which is not public"):
        rules.checked(rules.destination("http://hooks.example/"), [PUBLIC[0], address])
    assert rules.checked(rules.destination("http://INTRA.example/"), [address])
    covering = webhook_rules(address.partition("%")[0])
    assert covering.checked(covering.destination("http://hooks.example/"), [address])


LOOPBACK_NAMES = [
    "localhost",
    "LocalHost",
    "localhost.",
    "localhost\u3002",
    "db.localhost",
    "localhost.localdomain",
    "LOCALHOST.LOCALDOMAIN.",
    "db.localdomain",
    "localhost4",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
]
PRIVATE_NAMES = [
    "printer.local",
    "metadata.google.internal",
    "nas.home.arpa",
    "ip6-allnodes",
    "broadcasthost",
]
SPELLINGS_OF_ADDRESSES = [
    "2130706433",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F.0.0.1",
    "017700000001",
    "127.0.0.0x1",
    "0",
    "0x",
    "1.1.1.1.1",
    "16843009",
    "a.0",
]
NO_NAMES = [
    "localhost..",
    "a..b",
    ".localhost",
    "loc%61lhost",
    "localhost%2e",
    "127.0.0.1%00.hooks.example",
    "a" * 64,
]


@pytest.mark.parametrize("name", LOOPBACK_NAMES)
def test_a_name_of_this_machine_needs_a_rule_before_it_is_resolved(name: str) -> None:
    url = f"http://{name}:7001/"
    with pytest.raises(HostNotAllowed, match="is this machine, which is not public"):
        webhook_rules("10.0.0.0/8", "hooks.example").destination(url)
    for rule in ("127.0.0.0/8", "::1", name.rstrip(".\u3002")):
        assert webhook_rules(rule).allows(url)


@pytest.mark.parametrize("name", PRIVATE_NAMES)
def test_a_name_of_a_private_network_needs_a_rule_before_it_is_resolved(name: str) -> None:
    url = f"http://{name}/"
    with pytest.raises(HostNotAllowed, match="in a private network, which is not public"):
        webhook_rules("hooks.example").destination(url)
    assert webhook_rules("10.0.0.0/8").allows(url)  # its addresses decide
    assert webhook_rules(name).allows(url)


@pytest.mark.parametrize("name", SPELLINGS_OF_ADDRESSES)
def test_an_address_has_one_spelling(name: str) -> None:
    with pytest.raises(HostNotAllowed, match="unusual spelling"):
        webhook_rules("127.0.0.0/8", "1.1.1.1").destination(f"http://{name}/")


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_no_resolver_should_be_asked_for(name: str) -> None:
    assert not webhook_rules("127.0.0.0/8", "localhost").allows(f"http://{name}/")


@pytest.mark.parametrize(
    "name", ["hooks.example", "localhost.example", "mylocalhost", "0x7g.example", "a_b.c-d", "1a"]
)
def test_other_names_may_be_of_public_hosts(name: str) -> None:
    assert webhook_rules().allows(f"http://{name}./")


def test_what_is_no_host_is_not_called() -> None:
    for url in ("http:///", "http://", "hooks.example", "ftp://hooks.example/", "http://u:p@hooks.example/"):
        assert not webhook_rules().allows(url)


@given(
    address=st.ip_addresses(v=4) | st.ip_addresses(v=6),
    network=st.ip_addresses(v=4) | st.ip_addresses(v=6),
    bits=st.integers(0, 128),
)
def test_a_range_covers_what_is_in_it(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
    network: ipaddress.IPv4Address | ipaddress.IPv6Address,
    bits: int,
) -> None:
    """The naive twin compares the first bits of the numbers, all as IPv6."""
    bits = min(bits, network.max_prefixlen)
    text = f"[{address}]" if address.version == 6 else str(address)

    def number(each: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int:
        return int(each) if each.version == 6 else int(each) + (0xFFFF << 32)

    shift = network.max_prefixlen - bits
    expected = number(address) >> shift == number(network) >> shift
    # A range of IPv6 does not reach into IPv4, however that is written, unless it is one of mapped addresses.
    if number(address) >> 32 == 0xFFFF and network.version == 6:
        expected = expected and bits >= 96
    assert HostRules("LOAD", [f"{network}/{bits}"]).allows(f"http://{text}/") == expected


ODD = st.text(alphabet="[]@:/?#%.\\0178afx-_ ä²。\u0661\t", max_size=12)


@given(
    ODD, ODD, st.sampled_from(["http://", "https://", "http:", "//", "HTTP://data.example", "http://[::1"])
)
def test_no_text_is_too_odd(host: str, rest: str, head: str) -> None:
    """Whatever is allowed is one of the hosts named, and its port is one."""
    url = head + host + rest
    try:
        destination = HostRules("LOAD", ["data.example", "::/0", "0.0.0.0/0"]).destination(url)
    except HostNotAllowed:
        return
    assert destination.address is not None or destination.host == "data.example"
    assert 0 < destination.port < 65_536
    assert not destination.url.userinfo
