"""The control API as a table, and errors as problems."""

from __future__ import annotations

import json

import pytest

from toft.daemon.problem import problem, refused
from toft.errors.lease import LeaseNotFound
from toft.errors.shape import from_json
from toft.protocol.routes import ROUTES, NoRoute, find_route


@pytest.mark.parametrize(
    ("method", "path", "name", "names"),
    [
        ("GET", "/v1/hello", "hello", {}),
        ("POST", "/v1/leases", "create_lease", {}),
        ("GET", "/v1/leases", "list_leases", {}),
        ("GET", "/v1/leases/l_1", "show_lease", {"id": "l_1"}),
        ("POST", "/v1/leases/l_1/hold", "hold_lease", {"id": "l_1"}),
        ("PUT", "/v1/projects/ab", "put_project", {"digest": "ab"}),
    ],
)
def test_find_route(method: str, path: str, name: str, names: dict[str, str]) -> None:
    """Method and path name one route; names in the path are given."""
    route, found = find_route(method, path)
    assert (route.name, found) == (name, names)


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/leases/", "/v1/leases/a/b/c", "/v2/hello", "//v1/hello"])
def test_no_route(path: str) -> None:
    """Other paths have none."""
    with pytest.raises(NoRoute) as caught:
        find_route("GET", path)
    assert caught.value.allowed == ()


def test_other_methods() -> None:
    """A path that exists tells which methods it has."""
    with pytest.raises(NoRoute) as caught:
        find_route("PATCH", "/v1/leases")
    assert caught.value.allowed == ("POST", "GET")


def test_names_are_unique() -> None:
    """Each route has a name and a place of its own."""
    assert len({route.name for route in ROUTES}) == len({(route.method, route.path) for route in ROUTES})


def test_a_problem_comes_back_as_the_same_error() -> None:
    """What the daemon tells of an error makes the same error at the client."""
    response = problem(LeaseNotFound(lease="l_1"))
    assert response.status == 404
    assert response.headers == [(b"content-type", b"application/problem+json")]
    assert isinstance(response.body, bytes)
    again = from_json(json.loads(response.body))
    assert isinstance(again, LeaseNotFound)
    assert again.facts == {"lease": "l_1"}


def test_a_refusal_without_a_code() -> None:
    """HTTP's own refusals are problems too."""
    response = refused(405, "no")
    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {"type": "about:blank", "title": "no", "status": 405}
