"""Whether a card was signed by a key that the operator trusts (A2A 1.0: JWS over the canonical card).

Keys come from the operator only; a signature's `jku` is never fetched.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from anykit.capabilities import Json, JsonObject
from anykit.wire.a2a import NotCanonical, signed_forms

from .agent import Keys

MAX_SIGNATURES = 16


class Unsigned(ValueError):
    """No trusted key signed it; the text says what there was."""


class BadKey(ValueError):
    """A configured key is none."""


def verified(document: JsonObject, keys: Keys) -> JsonObject:
    """The part of a card that a trusted key signed, which is all of it that may be believed.

    Raises `Unsigned`, `BadKey`.
    """
    trusted = list(_keys(keys))
    signatures = document.get("signatures")
    if not isinstance(signatures, list) or not signatures:
        raise Unsigned("it is not signed")
    try:
        forms = list(signed_forms(document))
    except NotCanonical as error:
        raise Unsigned(f"it has no canonical form ({error})") from None
    known = False
    for signature in cast("list[Any]", signatures)[:MAX_SIGNATURES]:
        if not isinstance(signature, dict):
            continue
        protected = cast(JsonObject, signature).get("protected")
        value = _decoded(cast(JsonObject, signature).get("signature"))
        header = _header(protected)
        if header is None or value is None or header.get("crit") is not None or header.get("b64") is False:
            continue
        for id, key in trusted:
            if id is not None and header.get("kid") is not None and id != header.get("kid"):
                continue
            known = True
            for form, data in forms:
                payload = base64.urlsafe_b64encode(data).rstrip(b"=")
                if _fits(key, str(header.get("alg")), f"{protected}.".encode() + payload, value):
                    return form
    raise Unsigned("its signature does not fit" if known else "no configured key has signed it")


def _header(protected: Json) -> JsonObject | None:
    data = _decoded(protected)
    try:
        header = json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
    return cast(JsonObject, header) if isinstance(header, dict) else None


def _decoded(text: Json) -> bytes | None:
    if not isinstance(text, str) or len(text) > 16_384:
        return None
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


# keys


def _keys(given: Any, id: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """(key id or None, key) of everything that was given. A key is a public one, or bytes of a shared secret."""
    if isinstance(given, str):
        text = given.strip()
        if text.startswith("{"):
            try:
                yield from _keys(json.loads(text), id)
            except ValueError:
                raise BadKey("a key that is no JSON") from None
        else:
            yield id, _pem(text)
    elif isinstance(given, Mapping):
        table = cast("Mapping[str, Any]", given)
        if isinstance(table.get("keys"), list):
            yield from _keys(table["keys"], id)
        elif "kty" in table:
            kid = table.get("kid")
            yield kid if isinstance(kid, str) else id, _jwk(table)
        else:
            for name, key in table.items():
                yield from _keys(key, name)
    elif isinstance(given, Iterable):
        for key in cast("Iterable[Any]", given):
            yield from _keys(key, id)
    else:
        raise BadKey(f"a {type(given).__name__} is no key")


def _pem(text: str) -> Any:
    from cryptography import x509  # noqa: PLC0415 - only for those who check signatures
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415 - the same

    try:
        if "BEGIN CERTIFICATE" in text:
            return x509.load_pem_x509_certificate(text.encode()).public_key()
        return load_pem_public_key(text.encode())
    except ValueError:
        raise BadKey("a key that is neither PEM of a public key nor a JWK") from None


def _jwk(jwk: Mapping[str, Any]) -> Any:
    """A key of RFC 7517, 7518, 8037."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415 - the same

    def number(name: str) -> int:
        return int.from_bytes(octets(name), "big")

    def octets(name: str) -> bytes:
        data = _decoded(jwk.get(name))
        if not data:
            raise BadKey(f"a JWK without {name!r}")
        return data

    curves: dict[object, ec.EllipticCurve] = {
        "P-256": ec.SECP256R1(),
        "P-384": ec.SECP384R1(),
        "P-521": ec.SECP521R1(),
    }
    try:
        match jwk.get("kty"):
            case "EC":
                curve = curves.get(jwk.get("crv"))
                if curve is None:
                    raise BadKey("a JWK of a curve that is not used here")
                return ec.EllipticCurvePublicNumbers(number("x"), number("y"), curve).public_key()
            case "RSA":
                return rsa.RSAPublicNumbers(number("e"), number("n")).public_key()
            case "OKP" if jwk.get("crv") == "Ed25519":
                return ed25519.Ed25519PublicKey.from_public_bytes(octets("x"))
            case "oct":
                return octets("k")
            case _:
                raise BadKey("a JWK of a kind that is not used here")
    except BadKey:
        raise
    except ValueError:
        raise BadKey("a JWK that is no key") from None


def _fits(key: Any, algorithm: str, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is this key's. The key says which algorithms may be, so that none is confused with another."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - the same
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - the same
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils  # noqa: PLC0415 - the same

    digests: dict[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
    family, digest = algorithm[:2], digests.get(algorithm[2:])
    if isinstance(key, bytes):
        return (
            family == "HS"
            and digest is not None
            and hmac.compare_digest(hmac.digest(key, message, digest.name), signature)
        )
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            curves = {"ES256": 256, "ES384": 384, "ES512": 521}
            size = (key.curve.key_size + 7) // 8
            if curves.get(algorithm) != key.curve.key_size or digest is None or len(signature) != 2 * size:
                return False
            pair = utils.encode_dss_signature(
                int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            )
            key.verify(pair, message, ec.ECDSA(digest))
            return True
        if isinstance(key, rsa.RSAPublicKey) and digest is not None and family in ("RS", "PS"):
            scheme: padding.AsymmetricPadding = padding.PKCS1v15()
            if family == "PS":
                scheme = padding.PSS(mgf=padding.MGF1(digest), salt_length=digest.digest_size)
            key.verify(signature, message, scheme, digest)
            return True
        if isinstance(key, ed25519.Ed25519PublicKey) and algorithm in ("EdDSA", "Ed25519"):
            key.verify(signature, message)
            return True
    except InvalidSignature:
        return False
    return False
