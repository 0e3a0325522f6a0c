"""Reads the published summary.proto and makes protobuf's own message class of it.

Only what that file uses is understood; the protoc compiler is not needed for the tests.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = re.compile(r"(optional|repeated) (\w+) (\w+) = (\d+)( \[packed = true\])?;")
_BLOCK = re.compile(r"^(message|enum) (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_Field = descriptor_pb2.FieldDescriptorProto


def summary_file_class(text: str) -> Any:
    """The class `SummaryFile` of the text of a .proto file."""
    bare = re.sub(r"//[^\n]*", "", text)
    package = re.search(r"^package (\w+);", bare, re.MULTILINE)
    assert package
    file = descriptor_pb2.FileDescriptorProto(
        name="summary.proto", package=package[1], syntax="proto3"
    )
    blocks = _BLOCK.findall(bare)
    enums = {name for kind, name, _ in blocks if kind == "enum"}
    for kind, name, body in blocks:
        if kind == "enum":
            enum = file.enum_type.add(name=name)
            for label, number in re.findall(r"(\w+) = (\d+);", body):
                enum.value.add(name=label, number=int(number))
        else:
            _add_fields(file.message_type.add(name=name), body, package[1], enums)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package[1]}.SummaryFile"))


def _add_fields(
    message: descriptor_pb2.DescriptorProto, body: str, package: str, enums: set[str]
) -> None:
    for label, kind, name, number, packed in _FIELD.findall(body):
        field = message.field.add(name=name, number=int(number))
        field.label = _Field.LABEL_REPEATED if label == "repeated" else _Field.LABEL_OPTIONAL
        scalar = getattr(_Field, f"TYPE_{kind.upper()}", None)
        if scalar is None:
            field.type = _Field.TYPE_ENUM if kind in enums else _Field.TYPE_MESSAGE
            field.type_name = f".{package}.{kind}"
        else:
            field.type = scalar
        if packed:
            field.options.packed = True
        if label == "optional":
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
