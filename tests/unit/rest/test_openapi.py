"""The description of the Data API."""

from __future__ import annotations

from tests.kit.rest_schema import sample
from toft.rest.openapi import Place, describe
from toft.rest.schema.model import Name


def test_the_document() -> None:
    """Relations, columns with their keys, functions with their arguments, and where it all is."""
    schema = sample()
    tables = [schema.tables[Name("public", name)] for name in ("clients", "projects", "project_names")]
    routines = [routine for found in schema.routines.values() for routine in found]
    place = Place.of_url("https://example.org/rest/v1")
    document = describe(schema, tables, routines, "Title\n\nAbout it", place, has_security=True)
    assert document["info"]["title"] == "Title"
    assert document["info"]["description"] == "About it"
    assert (document["host"], document["basePath"]) == ("example.org:443", "/rest/v1")
    assert document["schemes"] == ["https"]
    assert document["security"] == [{"JWT": []}]
    projects = document["definitions"]["projects"]["properties"]
    assert projects["id"] == {
        "description": "Note:\nThis is a Primary Key.<pk/>",
        "format": "int32",
        "type": "integer",
    }
    assert projects["client_id"]["description"] == (
        "Note:\nThis is a Foreign Key to `clients.id`.<fk table='clients' column='id'/>"
    )
    assert "type" not in projects["data"]
    assert set(document["paths"]["/projects"]) == {"get", "post", "patch", "delete"}
    assert set(document["paths"]["/rpc/add"]) == {"get", "post"}
    assert set(document["paths"]["/rpc/nothing"]) == {"post"}
    assert document["paths"]["/rpc/sum_of"]["post"]["parameters"][0]["schema"]["properties"]["v"] == {
        "type": "array",
        "format": "integer[]",
        "items": {"type": "integer"},
    }
    assert document["parameters"]["rowFilter.clients.name"]["in"] == "query"
