# SPDX-License-Identifier: Apache-2.0
"""A producer of the kit whose type has a C exchange table."""

from __future__ import annotations

import ctypes

from bridge.annotation import Any
from bridge.conform.kit.source import KEPT, Source
from bridge.conform.kit.structures import DLTensor, capsule_new
from bridge.conform.kit.table import ALLOCATOR, FROM_OBJECT, STREAM, TO_OBJECT, VIEW, ExchangeAPI

TABLE_NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")


def table_source(values: Any, **fields: Any) -> tuple[Source, list[str]]:
    """Return a source whose type has a table, and the list of the functions that are called.

    fields: of the table, to replace those that work.
    """
    called: list[str] = []

    class TableSource(Source):
        __dlpack_c_exchange_api__: Any = None

    def from_object(source: Any, out: Any) -> int:
        called.append("managed_tensor_from_py_object_no_sync")
        out[0] = source.export(True).address
        source.exports[-1].table = True
        return 0

    def view(source: Any, out: Any) -> int:
        called.append("dltensor_from_py_object_no_sync")
        managed = source.export(True).managed
        source.exports.pop()
        for name, _ in DLTensor._fields_:
            setattr(out[0], name, getattr(managed, name))
        return 0

    def stream(kind: int, number: int, out: Any) -> int:
        called.append("current_work_stream")
        out[0] = None
        return 0

    functions = [
        ALLOCATOR(lambda *arguments: -1),
        FROM_OBJECT(from_object),
        TO_OBJECT(lambda *arguments: -1),
        VIEW(view),
        STREAM(stream),
    ]
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    table = ExchangeAPI(1, 3, None, *addresses)
    for name, value in fields.items():
        setattr(table, name, value)
    capsule = capsule_new(ctypes.addressof(table), ctypes.addressof(TABLE_NAME), None)
    TableSource.__dlpack_c_exchange_api__ = capsule
    KEPT.append((functions, table))
    return TableSource(values), called
