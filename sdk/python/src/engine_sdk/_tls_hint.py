"""What to do when a line does not open because of TLS, from what `ssl` says about it."""

from __future__ import annotations

import os
import re
import ssl
from typing import Final

_HINTS: Final = (
    (r"WRONG_VERSION_NUMBER", "no TLS is spoken there; dial ws:// instead of wss://"),
    (r"HTTP 426|valid HTTP response", "TLS may be spoken there; dial wss:// instead of ws://"),
    (
        r"Hostname mismatch|IP address mismatch",
        "the certificate there is for another name; dial one that it has",
    ),
    (r"expired|not yet valid", "the certificate there does not hold at this time"),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "the certificate there is not trusted here; name the PEM file of its CA in SSL_CERT_FILE",
    ),
)


def with_tls_hint(failure: str) -> str:
    """Return a failure, and behind it what to do if it has to do with TLS."""
    for pattern, hint in _HINTS:
        if re.search(pattern, failure):
            missing = _missing_file() if pattern == "CERTIFICATE_VERIFY_FAILED" else None
            return f"{failure}; {missing or hint}"
    return failure


def _missing_file() -> str | None:
    """Name the file of certificates that was asked for and cannot be read: `ssl` says nothing."""
    variable = ssl.get_default_verify_paths().openssl_cafile_env
    path = os.environ.get(variable)
    if not path or os.access(path, os.R_OK):
        return None
    return f"{variable} names {path}, which cannot be read"
