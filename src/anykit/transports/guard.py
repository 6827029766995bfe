"""The address guard: which addresses an outgoing connection may reach. Every library's connections pass it.

It looks at the address that is really connected to, so neither a name, a redirect, a strange spelling of an address nor
a second answer of the name server leads around it.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import ipaddress
import re
import socket
import unicodedata
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

from anykit.capabilities import Unavailable

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

SCHEMES = {"http": 80, "https": 443}
"""What may be fetched at all, and the default ports."""

_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google, and most others
        "fd00:ec2::254",  # AWS over IPv6
        "fd20:ce::254",  # Google over IPv6
        "169.254.170.2",  # AWS container credentials
        "169.254.170.23",  # AWS EKS pod identity
        "fd00:ec2::23",
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure's wire server: a public number that never leaves the host
        "192.0.0.192",  # Oracle
    )
)
_SHARED = ipaddress.ip_network("100.64.0.0/10")  # RFC 6598
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052
_NAT64_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")  # RFC 8215
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")  # RFC 3056
_TEREDO = ipaddress.ip_network("2001::/32")  # RFC 4380
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?")
_connecting_to: ContextVar[str | None] = ContextVar("connecting_to", default=None)


class AddressRefused(Unavailable):
    """The guard does not let this connection be made; nothing was sent, and trying again does not help."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False, detail={"reason": "address_refused"})


class RefusedSocket(OSError):
    """`AddressRefused` in the shape that connecting libraries pass on; `refused` is the error itself."""

    def __init__(self, refused: AddressRefused) -> None:
        super().__init__(errno.EACCES, refused.message)
        self.refused = refused


@dataclass(frozen=True, slots=True)
class _Allowed:
    """One entry of `private_hosts`."""

    name: str | None
    network: Network | None
    port: int | None

    def covers(self, address: Address, port: int | None, host: str | None) -> bool:
        if self.port is not None and port != self.port:
            return False
        if self.network is not None:
            return address.version == self.network.version and address in self.network
        return host is not None and host == self.name


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """A policy for addresses. Without arguments: public addresses only.

    Args:
        allow_private: Let every address pass; for what the operator wrote. Schemes are still checked.
        private_hosts: What may be reached although it is not public: `host`, `host:port`, an address, `[v6]:port` or a
            network (`10.0.0.0/8`). A host is compared with the name in the URL.
    """

    allow_private: bool = False
    private_hosts: tuple[str, ...] = ()
    _allowed: tuple[_Allowed, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", tuple(_parse(entry) for entry in self.private_hosts))

    def check_url(self, url: str) -> None:
        """Raise `AddressRefused` if `url` can be seen not to be allowed; a name still has to pass when it is connected to."""
        if _NOT_IN_A_URL.search(url):
            raise AddressRefused("refused: a URL must not contain spaces, backslashes or control characters")
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, parts.hostname, parts.port
        except ValueError as error:
            raise AddressRefused(f"refused: not a URL ({error})") from None
        self.check_target(scheme, host, port)

    def check_target(self, scheme: str, host: str | None, port: int | None) -> None:
        """Check what a URL was split into: the scheme always, the host where it is an address in any spelling."""
        if scheme.lower() not in SCHEMES:
            raise AddressRefused(f"refused: scheme {scheme.lower()[:32]!r} is not allowed, only http and https are")
        if not host:
            raise AddressRefused("refused: the URL names no host")
        address = literal(host)
        if address is not None:
            self.check_address(str(address), port=port or SCHEMES[scheme.lower()], host=host)

    def check_address(self, address: str, *, port: int | None = None, host: str | None = None) -> None:
        """Check an address about to be connected to; `host` is the name that led there. Raises `AddressRefused`."""
        if self.allow_private:
            return
        ip = ipaddress.ip_address(address.partition("%")[0])
        reason = why_not_public(ip)
        if reason is None:
            return
        name = None if host is None else host_name(host)
        for candidate in (ip, *embedded(ip)):
            if any(entry.covers(candidate, port, name) for entry in self._allowed):
                return
        named = f"{ip}" if name is None or literal(name) == ip else f"{name!r} ({ip})"
        raise AddressRefused(f"refused to connect to {named}: {reason}; private_hosts may allow it")

    def check_socket(self, connected: socket.socket, *, host: str | None = None) -> None:
        """Check the peer of a connected socket, for a library that offers no earlier moment. Raises `AddressRefused`."""
        if connected.family not in (socket.AF_INET, socket.AF_INET6):
            raise AddressRefused("refused: not an internet address")
        address, port = connected.getpeername()[:2]
        self.check_address(address, port=port, host=host)

    def open_socket(self, info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
        """Make the socket for one address of `getaddrinfo`, checked (aiohttp's `socket_factory`). Raises `RefusedSocket`."""
        family, kind, protocol, _, target = info
        try:
            self.check_address(str(target[0]), port=int(target[1]), host=_connecting_to.get())
        except AddressRefused as refused:
            raise RefusedSocket(refused) from None
        return socket.socket(family, kind, protocol)

    async def resolve(self, host: str, port: int, family: int = socket.AF_UNSPEC) -> list[tuple[int, str]]:
        """Look up `host` and give the allowed addresses as `(family, address)`; connect to one of these, not to the name.

        Raises `AddressRefused` where there are only others, `OSError` where there are none.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        allowed: list[tuple[int, str]] = []
        refused: AddressRefused | None = None
        for kind, _, _, _, target in found:
            try:
                self.check_address(str(target[0]), port=port, host=host)
            except AddressRefused as error:
                refused = error
            else:
                allowed.append((int(kind), _with_scope(target)))
        if not allowed and refused is not None:
            raise refused
        return list(dict.fromkeys(allowed))


OPEN = AddressGuard(allow_private=True)
"""For what the operator wrote."""
PUBLIC_ONLY = AddressGuard()
"""For what a peer or a model named."""


@contextmanager
def connecting_to(host: str) -> Generator[None, None, None]:
    """Say which host the connections made inside are for, so that `open_socket` knows the name."""
    token = _connecting_to.set(host)
    try:
        yield
    finally:
        _connecting_to.reset(token)


def host_name(host: str) -> str:
    """Give a host as it is compared: lower case, no brackets, no final dot."""
    return host.strip("[]").rstrip(".").lower()


@functools.lru_cache(256)
def literal(host: str) -> Address | None:
    """Give the address that `host` spells, in any way that a resolver would read as one; None for a name.

    `2130706433`, `0x7f.1`, `0177.0.0.1` and `127.1` are all 127.0.0.1 to inet_aton(3); IDNA makes ASCII of other digits
    and dots first.
    """
    name = unicodedata.normalize("NFKC", host_name(host).partition("%")[0]).replace("\u3002", ".")
    with suppress(ValueError):
        return ipaddress.ip_address(name)
    if re.fullmatch(r"[0-9a-fx.]+", name) and name[:1].isdigit():
        with suppress(OSError):
            return ipaddress.ip_address(socket.inet_aton(name))
    return None


def is_loopback(host: str) -> bool:
    """Whether a URL's host is this machine: `localhost` or a loopback address."""
    name = host_name(host)
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761
        return True
    address = literal(name)
    return address is not None and any(each.is_loopback for each in (address, *embedded(address)))


def embedded(address: Address) -> tuple[Address, ...]:
    """Give the IPv4 addresses inside an IPv6 one that a gateway or the system itself would connect to."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    number = int(address)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64 or number >> 32 == 0:  # the second: IPv4-compatible, RFC 4291 2.5.5.1
        return (ipaddress.IPv4Address(number & 0xFFFF_FFFF),)
    if address in _SIX_TO_FOUR:
        return (ipaddress.IPv4Address(number >> 80 & 0xFFFF_FFFF),)
    return ()


def why_not_public(address: Address) -> str | None:
    """Say why an address is not one of the public internet; None if it is."""
    if address in _METADATA:
        return "it is a cloud metadata address"
    if isinstance(address, ipaddress.IPv6Address):
        if int(address) <= 1:
            return _why_special(address)
        for inner in embedded(address):
            reason = why_not_public(inner)
            if reason is not None:
                return f"it stands for {inner}: {reason}"
            if int(address) >> 32 != 0:  # IPv4-compatible addresses are reserved, whatever they hold
                return None
        if address in _NAT64_LOCAL or address in _TEREDO:
            return "it leads into another network (NAT64 or Teredo)"
        if address.is_site_local:
            return "it is a site-local address"
    return _why_special(address)


def _why_special(address: Address) -> str | None:
    kinds: Iterable[tuple[bool, str]] = (
        (address.is_unspecified or (address.version == 4 and int(address) >> 24 == 0), "the unspecified address"),
        (address.is_loopback, "a loopback address"),
        (address.is_link_local, "a link-local address"),
        (address.is_multicast, "a multicast address"),
        (address.version == 4 and int(address) == 0xFFFF_FFFF, "the broadcast address"),
        (address.is_reserved, "a reserved address"),
        (address.version == 4 and address in _SHARED, "a shared (carrier-grade NAT) address"),
        (address.is_private, "a private address"),
        (not address.is_global, "not a public address"),
    )
    for applies, what in kinds:
        if applies:
            return f"it is {what}"
    return None


def _parse(entry: str) -> _Allowed:
    """Read one entry of `private_hosts`. Raises `ValueError`."""
    text = entry.strip().lower()
    if "://" in text:
        raise ValueError(f"private_hosts: {entry!r} is a URL; write the host, host:port or a network")
    if "/" in text:
        try:
            return _Allowed(None, ipaddress.ip_network(text, strict=False), None)
        except ValueError:
            raise ValueError(f"private_hosts: {entry!r} is not a network") from None
    host, port = text, None
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(\d+))?", text)
    if bracketed:
        host, port = bracketed[1], bracketed[2]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    number = None
    if port is not None:
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"private_hosts: {entry!r} has no usable port")
        number = int(port)
    address = literal(host)
    if address is not None:
        return _Allowed(None, ipaddress.ip_network(address), number)
    name = host_name(host)
    if not name.isascii():
        with suppress(UnicodeError):
            name = name.encode("idna").decode()
    if not _HOST.fullmatch(name):
        raise ValueError(f"private_hosts: {entry!r} is neither a host, host:port, an address nor a network")
    return _Allowed(name, None, number)


def _with_scope(target: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> str:
    """Give the address of a `getaddrinfo` target, with the interface where a link-local one needs it."""
    address = str(target[0])
    if len(target) == 4 and target[3] and "%" not in address:
        return f"{address}%{target[3]}"
    return address
