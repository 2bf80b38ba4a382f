"""Debian's name for what holds a shared library."""

from __future__ import annotations

import pytest

from toft.host.probe import package_for


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("libxml2.so.2", "libxml2"),
        ("libossp-uuid.so.16", "libossp-uuid16"),
        ("liblz4.so.1", "liblz4-1"),
        ("libzstd.so.1", "libzstd1"),
        ("libssl.so.3", "libssl3"),
        ("libcrypto.so.3", "libssl3"),
        ("libgssapi_krb5.so.2", "libgssapi-krb5-2"),
        ("libkrb5.so.3", "libkrb5-3"),
        ("libicuuc.so.72", "libicu72"),
        ("libicui18n.so.76", "libicu76"),
        ("libpython3.11.so.1.0", "libpython3.11"),
        ("libpq.so.5", "libpq5"),
        ("libz.so.1", "zlib1g"),
    ],
)
def test_package_of_a_library(library: str, package: str) -> None:
    """By Debian's rule, and by a short list where that does not hold."""
    assert package_for(library) == package
