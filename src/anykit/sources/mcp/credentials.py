"""What is shown to a server over HTTP so that it lets us in, and what is missing where it does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from anykit.capabilities import ExecutionFailed
from anykit.sources.hostile import clean_text

from .servers import McpServer

_FIELD = r'(?:^|[\s,]){}\s*=\s*(?:"([^"]*)"|([^\s,"]+))'


class Refused(ExecutionFailed):
    """The server answered 401 or 403; nothing ran. `needs` is `login`, `credentials` or `permission`."""

    def __init__(self, message: str, *, status: int, needs: str) -> None:
        code = "unauthorized" if status == 401 else "forbidden"
        super().__init__(message, code=code, detail={"status": status, "needs": needs})
        self.needs = needs


class Credentials(Protocol):
    """Where the credentials of one server come from."""

    async def headers(self) -> Mapping[str, str]:
        """What to send now. Raises `CapabilityError` where it cannot be got."""
        ...

    async def challenged(self, status: int, headers: Mapping[str, str], used: Mapping[str, str]) -> bool:
        """The server answered 401 or 403 to a request with `used`: whether there are better ones now.

        Raises `CapabilityError` where getting them failed.
        """
        ...


class Fixed:
    """A token that the operator gave, or none."""

    def __init__(self, token: str = "") -> None:
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    async def headers(self) -> Mapping[str, str]:
        """See `Credentials`."""
        return self._headers

    async def challenged(self, status: int, headers: Mapping[str, str], used: Mapping[str, str]) -> bool:
        """There are no others."""
        return False


def challenge_field(headers: Mapping[str, str], name: str) -> str:
    """A field of `WWW-Authenticate` (RFC 9110, 11.6.1), or nothing."""
    found = re.search(_FIELD.format(re.escape(name)), headers.get("www-authenticate", ""), re.IGNORECASE)
    return (found[1] or found[2] or "") if found else ""


def refusal(server: McpServer, status: int, headers: Mapping[str, str]) -> Refused:
    """What a 401 or 403 means for whoever configured the server."""
    where = f"{server.place} answered {status}"
    said = clean_text(challenge_field(headers, "error_description"), 200)
    said = f" ({said})" if said else ""
    if status == 403:
        if challenge_field(headers, "error") == "insufficient_scope":
            scope = clean_text(challenge_field(headers, "scope"), 200)
            wanted = f"the scope {scope!r}" if scope else "a wider scope"
            return Refused(
                f"{where}: it wants {wanted}{said}; log in again with it (anykit login {server.name})",
                status=status,
                needs="login",
            )
        return Refused(f"{where}: these credentials may not use it{said}", status=status, needs="permission")
    if server.oauth is not None or (server.login and not server.credentials and _wants_login(headers)):
        return Refused(
            f"{where}: it wants a login{said}; run: anykit login {server.name}", status=status, needs="login"
        )
    if server.credentials:
        return Refused(f"{where}: it does not accept the credentials given{said}", status=status, needs="credentials")
    return Refused(f"{where}: it wants credentials{said}; give a token or headers", status=status, needs="credentials")


def _wants_login(headers: Mapping[str, str]) -> bool:
    """Whether the server says where its authorization server is (RFC 9728)."""
    return bool(challenge_field(headers, "resource_metadata"))
