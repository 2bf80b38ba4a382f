"""Pure: Amazon's XML: small documents written from values, and read without trusting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element, ParseError
from xml.sax.saxutils import escape

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from toft.http.message import Response

type Value = str | int | bool | Mapping[str, Value] | Sequence[Value] | None

XML_TYPE: Final = (b"content-type", b"application/xml; charset=utf-8")
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_ESCAPES: Final = {"\r": "&#13;", '"': "&quot;"}


def xml_response(root: str, content: Mapping[str, Value], status: int = 200) -> Response:
    """An answer. A list becomes as many elements, None becomes none."""
    text = f'{_HEAD}<{root} xmlns="{_NAMESPACE}">{_write_members(content)}</{root}>'
    return Response(status, [XML_TYPE], text.encode())


def write_error(code: str, message: str, resource: str) -> bytes:
    """The document that names a refusal."""
    members = _write_members({"Resource": resource, "Code": code, "Message": message})
    return f"{_HEAD}<Error>{members}</Error>".encode()


def _write_members(members: Mapping[str, Value]) -> str:
    return "".join(_write(name, value) for name, value in members.items())


def _write(name: str, value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return f"<{name}>{_write_members(value)}</{name}>"
    if isinstance(value, bool):
        return f"<{name}>{'true' if value else 'false'}</{name}>"
    if isinstance(value, str | int):
        return f"<{name}>{escape(str(value), _ESCAPES)}</{name}>"
    return "".join(_write(name, item) for item in value)


def read_xml(raw: bytes, root: str) -> Element | None:
    """The root element of a request's body, if that is what it is. Refuses document types and entities."""
    try:
        element = fromstring(raw, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError):
        return None
    return element if _local(element.tag) == root else None


def children(element: Element, name: str) -> list[Element]:
    """The direct children of that name, whatever their namespace."""
    return [child for child in element if _local(child.tag) == name]


def text_of(element: Element, name: str) -> str | None:
    """The text of the first child of that name, spaces and all; None without one."""
    found = children(element, name)
    return (found[0].text or "") if found else None


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
