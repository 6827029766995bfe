"""Who may be told a secret, and which addresses an agent's card may lead to."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import urlsplit

from anykit.transports import AddressGuard, is_loopback
from anykit.transports.guard import SCHEMES, host_name, literal

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host, port."""

_LOOPBACK = ("127.0.0.0/8", "[::1]", "localhost")
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")  # RFC 1918; no metadata service lies there


def origin_of(url: str) -> Origin | None:
    """Where a URL leads, for comparison (RFC 6454); None where it is no http URL."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme not in SCHEMES or not parts.hostname:
            return None
        return scheme, host_name(parts.hostname), parts.port or SCHEMES[scheme]
    except ValueError:
        return None


def guard_for(given: Iterable[str]) -> AddressGuard:
    """The guard for what the operator gave: these hosts, whatever their address is; and other private addresses only of
    the kind that the operator wrote down as an address. Metadata services are of no kind.

    Raises `ValueError` for a host that is none.
    """
    allowed: dict[str, None] = {}
    for url in given:
        origin = origin_of(url)
        if origin is None:
            continue
        host = origin[1]
        allowed[f"[{host}]" if ":" in host else host] = None
        allowed.update(dict.fromkeys(_kind_of(host)))
    return AddressGuard(private_hosts=tuple(allowed))


def _kind_of(host: str) -> tuple[str, ...]:
    if is_loopback(host):
        return _LOOPBACK
    address = literal(host)
    if address is None:
        return ()
    if address.version == 4:
        return _PRIVATE if any(address in ipaddress.ip_network(net) for net in _PRIVATE) else ()
    unique_local = ipaddress.ip_network("fc00::/7")
    return (str(ipaddress.ip_network((address, 48), strict=False)),) if address in unique_local else ()
