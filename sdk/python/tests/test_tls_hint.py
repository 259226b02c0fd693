"""What a worker says when a line does not open because of TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_sdk._tls_hint import with_tls_hint

VERIFY = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "no TLS is spoken"),
        ("HTTP 426", "TLS may be spoken there"),
        ("did not receive a valid HTTP response", "TLS may be spoken there"),
        (VERIFY + "Hostname mismatch, certificate is not valid for 'localhost'.", "another name"),
        (VERIFY + "certificate has expired (_ssl.c:1006)", "does not hold at this time"),
        (VERIFY + "unable to get local issuer certificate", "name the PEM file of its CA"),
    ],
)
def test_what_the_ssl_module_says_comes_with_what_to_do(reason: str, hint: str) -> None:
    said = with_tls_hint(reason)

    assert said.startswith(f"{reason}; ")
    assert hint in said


@pytest.mark.parametrize("reason", ["HTTP 401", "[Errno 111] Connect call failed", ""])
def test_other_failures_are_left_as_they_are(reason: str) -> None:
    assert with_tls_hint(reason) == reason


def test_a_file_of_certificates_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reason = VERIFY + "unable to get local issuer certificate"

    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    assert with_tls_hint(reason) == (
        f"{reason}; SSL_CERT_FILE names /nowhere/ca.pem, which cannot be read"
    )
    assert "another name" in with_tls_hint(VERIFY + "Hostname mismatch")

    there = tmp_path / "ca.pem"
    there.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(there))
    assert "name the PEM file of its CA" in with_tls_hint(reason)
