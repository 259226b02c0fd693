"""What to do when a line does not open because of TLS, from what `ssl` says about it."""

from __future__ import annotations

import re
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
            return f"{failure}; {hint}"
    return failure
