"""The examples in the docstrings of the pure rooms hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import toft.rest

MODULES = [info.name for info in pkgutil.walk_packages(toft.rest.__path__, "toft.rest.") if not info.ispkg]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    """What a docstring shows is what happens."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
