"""Which addresses may be reached. What is really connected to is tested in test_http_client."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from anykit.capabilities import Unavailable
from anykit.transports import OPEN, PUBLIC_ONLY, AddressGuard, AddressRefused, is_loopback
from anykit.transports.guard import literal, why_not_public

REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "::1": "loopback",
    "10.1.2.3": "private",
    "172.16.0.1": "private",
    "192.168.1.1": "private",
    "fd12:3456::1": "private",
    "169.254.1.1": "link-local",
    "fe80::1": "link-local",
    "169.254.169.254": "metadata",
    "fd00:ec2::254": "metadata",
    "100.100.100.200": "metadata",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "224.0.0.1": "multicast",
    "ff02::1": "multicast",
    "255.255.255.255": "broadcast",
    "240.0.0.1": "reserved",
    "100.64.0.1": "shared",
    "192.0.2.1": "private",
    "198.18.0.1": "private",
    "fec0::1": "site-local",
    "::ffff:127.0.0.1": "stands for 127.0.0.1: it is a loopback",
    "::ffff:169.254.169.254": "stands for 169.254.169.254: it is a cloud metadata",
    "64:ff9b::10.0.0.1": "stands for 10.0.0.1",
    "64:ff9b::a9fe:a9fe": "stands for 169.254.169.254",
    "64:ff9b:1::1": "another network",
    "2002:7f00:1::": "stands for 127.0.0.1",
    "2002:a9fe:a9fe::1": "stands for 169.254.169.254",
    "2001:0:7f00:1::": "another network",
    "::127.0.0.1": "stands for 127.0.0.1",
    "::8.8.8.8": "reserved",
}
PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]


@pytest.mark.parametrize(("address", "why"), REFUSED.items())
def test_b076_an_address_that_is_not_public_is_refused_and_the_error_says_why(address: str, why: str) -> None:
    """a2aproject/a2a-python#786: webhooks and cards that point inwards."""
    with pytest.raises(AddressRefused, match=why) as caught:
        PUBLIC_ONLY.check_address(address)
    assert caught.value.sent is False
    assert isinstance(caught.value, Unavailable)
    OPEN.check_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    PUBLIC_ONLY.check_address(address)
    assert why_not_public(ipaddress.ip_address(address)) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/x",
        "http://127.0.0.1:80/",
        "http://[::ffff:127.0.0.1]:80/",
        "http://[::1]/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://0/",
        "http://127.0.0.1./",
        "http://user:pass@127.0.0.1/",
        "https://10.0.0.1/",
        "http://[fe80::1%25eth0]/",
        "http://\u2460\u2461\u2466.0.0.1/",
        "http://127\u30020\u30020\u30021/",
    ],
)
def test_b076_every_spelling_of_such_an_address_is_seen_in_a_url(url: str) -> None:
    """a2aproject/a2a-python#1023."""
    with pytest.raises(AddressRefused, match="refused to connect"):
        PUBLIC_ONLY.check_url(url)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://h/", "ftp://h/", "ws://h/", "data:,x", "javascript:1", "//h/", "h/x", ""]
)
@pytest.mark.parametrize("guard", [OPEN, PUBLIC_ONLY])
def test_b076_other_schemes_are_always_refused(url: str, guard: AddressGuard) -> None:
    """a2aproject/a2a-js#584."""
    with pytest.raises(AddressRefused, match="only http and https"):
        guard.check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///path",
        "http://h\\@127.0.0.1/",
        "http://h /",
        "http://h\n/",
        "http://h:99999/",
        "http://[::1/",
    ],
)
def test_what_is_not_a_plain_url_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused, match="refused"):
        OPEN.check_url(url)


def test_a_name_passes_the_look_at_the_url_and_is_checked_when_it_is_connected_to() -> None:
    PUBLIC_ONLY.check_url("https://internal.example/")
    with pytest.raises(AddressRefused, match=r"'internal.example' \(10.0.0.5\): it is a private address"):
        PUBLIC_ONLY.check_address("10.0.0.5", port=443, host="internal.example")


@pytest.mark.parametrize(
    ("entry", "address", "port", "host"),
    [
        ("10.0.0.0/8", "10.200.1.1", 80, None),
        ("10.0.0.7", "10.0.0.7", 9999, "anything.example"),
        ("10.0.0.7:8080", "10.0.0.7", 8080, None),
        ("internal.example", "10.0.0.7", 80, "internal.example"),
        ("Internal.Example.", "10.0.0.7", 80, "INTERNAL.example"),
        ("internal.example:8443", "10.0.0.7", 8443, "internal.example"),
        ("localhost", "::1", 80, "localhost"),
        ("::1", "::1", 80, None),
        ("[::1]:8000", "::1", 8000, None),
        ("fd00::/8", "fd00::5", 80, None),
        ("127.0.0.1", "::ffff:127.0.0.1", 80, None),
        ("169.254.169.254", "169.254.169.254", 80, None),
    ],
)
def test_what_the_operator_allows_passes(entry: str, address: str, port: int, host: str | None) -> None:
    guard = AddressGuard(private_hosts=(entry,))
    guard.check_address(address, port=port, host=host)
    with pytest.raises(AddressRefused):
        guard.check_address("192.168.77.77", port=port, host="other.example")


@pytest.mark.parametrize(
    ("entry", "address", "port", "host"),
    [
        ("10.0.0.0/8", "192.168.0.1", 80, None),
        ("10.0.0.7:8080", "10.0.0.7", 8081, None),
        ("internal.example", "10.0.0.7", 80, "evil.example"),
        ("internal.example", "10.0.0.7", 80, None),
        ("internal.example", "10.0.0.7", 80, "x.internal.example"),
        ("internal.example:8443", "10.0.0.7", 443, "internal.example"),
    ],
)
def test_an_entry_allows_nothing_else(entry: str, address: str, port: int, host: str | None) -> None:
    guard = AddressGuard(private_hosts=(entry,))
    with pytest.raises(AddressRefused):
        guard.check_address(address, port=port, host=host)


@pytest.mark.parametrize("entry", ["", "http://h/", "10.0.0.0/99", "h:0", "h:99999", "h:x", "*", "a b", "a@b"])
def test_an_entry_that_means_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="private_hosts"):
        AddressGuard(private_hosts=(entry,))


@pytest.mark.anyio
async def test_a_name_is_resolved_to_what_is_allowed() -> None:
    with pytest.raises(AddressRefused, match=r"'localhost' .* loopback"):
        await PUBLIC_ONLY.resolve("localhost", 80)
    assert (socket.AF_INET, "127.0.0.1") in await OPEN.resolve("localhost", 80)
    allowed = AddressGuard(private_hosts=("127.0.0.0/8",))
    assert await allowed.resolve("localhost", 80, socket.AF_INET) == [(socket.AF_INET, "127.0.0.1")]


def test_a_connected_socket_can_be_checked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as connected:
            with pytest.raises(AddressRefused, match="loopback"):
                PUBLIC_ONLY.check_socket(connected)
            OPEN.check_socket(connected)
            port = server.getsockname()[1]
            AddressGuard(private_hosts=(f"127.0.0.1:{port}",)).check_socket(connected)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("2130706433", True),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("10.0.0.1", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_loopback_hosts_are_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("name", ["1e100.net", "dead.beef", "example.com", "0day.example", "3.fed", "", "."])
def test_names_are_not_taken_for_addresses(name: str) -> None:
    assert literal(name) is None
