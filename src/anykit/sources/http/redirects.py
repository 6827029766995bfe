"""Where a redirect leads, and what goes along: never a credential to another origin, never from TLS to plain text."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, replace
from http import HTTPStatus
from urllib.parse import parse_qsl, urldefrag, urljoin, urlsplit, urlunsplit

from anykit.capabilities import ExecutionFailed
from anykit.transports import AddressGuard, AddressRefused, public_url
from anykit.transports.guard import SCHEMES, literal, why_not_public
from anykit.transports.http_client import Hop

from .secrecy import Secrets

REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 5

_TELL_ANYONE = frozenset({"accept", "accept-language", "user-agent", "content-type", "content-encoding"})
"""Headers that go along to another origin; any other may be a credential."""
_ABOUT_A_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})


@dataclass(frozen=True)  # no slots: the method extends that of the base
class NeighbourGuard(AddressGuard):
    """For where a peer in a private network sends us: private addresses, but no cloud metadata and nothing link-local."""

    def check_address(self, address: str, *, port: int | None = None, host: str | None = None) -> None:
        """See `AddressGuard`. Raises `AddressRefused`."""
        ip = ipaddress.ip_address(address.partition("%")[0])
        reason = why_not_public(ip) or ""
        if "metadata" in reason or "link-local" in reason or "multicast" in reason or "unspecified" in reason:
            raise AddressRefused(f"refused to follow a redirect to {ip}: {reason}")


NEIGHBOURS = NeighbourGuard(allow_private=True)


def following(hop: Hop, status: int, location: str, secrets: Secrets) -> Hop | None:
    """The request that a redirecting answer asks for; None where it names no place.

    301 and 302 make a GET of a POST, 303 of anything but HEAD; 307 and 308 keep method and body (RFC 9110 15.4).
    Raises `ExecutionFailed` where it must not be followed.
    """
    target = location.strip().replace(" ", "%20")
    if not target:
        return None
    try:
        url = urldefrag(urljoin(hop.url, target)).url
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:  # a peer does not choose our credentials
            parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
            url = urlunsplit(parts)
        same = origin(url) == origin(hop.url)
    except ValueError:
        raise refused(hop, status, "redirects to what is not a URL") from None
    if parts.scheme not in SCHEMES:
        raise refused(
            hop, status, f"redirects to the scheme {parts.scheme[:32]!r}, and only http and https are followed"
        )
    if parts.scheme == "http" and urlsplit(hop.url).scheme == "https":
        raise refused(hop, status, f"redirects from https to plain http ({public_url(url)}), which is not followed")
    method, body, headers = hop.method, hop.body, dict(hop.headers)
    if (status == HTTPStatus.SEE_OTHER and method not in ("GET", "HEAD")) or (
        status in (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND) and method == "POST"
    ):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name not in _ABOUT_A_BODY}
    if not same:
        headers = {name: value for name, value in headers.items() if name in _TELL_ANYONE}
        if body is not None and secrets.are_in(body.decode("utf-8", "replace")):
            raise refused(
                hop,
                status,
                f"redirects a body that holds a credential to another origin ({public_url(url)}), not followed",
            )
        parts = parts._replace(query=_without(parts.query, secrets))
        url = urlunsplit(parts)
        if secrets.are_in(url):
            raise refused(hop, status, "redirects a credential to another origin, which is not followed")
    return replace(hop, method=method, url=url, headers=headers, body=body, exact=url.isascii())


async def guard_for(hop: Hop, given: AddressGuard) -> AddressGuard:
    """Which addresses a redirect from `hop` to another origin may reach: the operator named the first, a peer the next.

    From a public host only public ones (and `private_hosts`), from a private one its neighbours too.
    """
    if not given.allow_private:
        return given
    return NEIGHBOURS if await _is_private(hop.url) else AddressGuard(private_hosts=given.private_hosts)


async def _is_private(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    address = literal(host)
    if address is not None:
        return why_not_public(address) is not None
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, parts.port or SCHEMES.get(parts.scheme, 80), type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(why_not_public(ipaddress.ip_address(str(one[4][0]).partition("%")[0])) is not None for one in found)


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port. Raises `ValueError`."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or SCHEMES.get(parts.scheme)


def refused(hop: Hop, status: int, why: str) -> ExecutionFailed:
    """The failure of a redirect that is not followed."""
    return ExecutionFailed(f"{hop.method} {public_url(hop.url)} {why}", detail={"status": status, "reason": "redirect"})


def _without(query: str, secrets: Secrets) -> str:
    """The query without the parameters that hold a credential."""
    if not secrets or not secrets.are_in(query):
        return query
    kept = [
        pair
        for pair in query.split("&")
        if not secrets.are_in(pair) and not any(secrets.are_in(value) for _, value in parse_qsl(pair))
    ]
    return "&".join(kept)
