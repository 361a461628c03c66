# SPDX-License-Identifier: Apache-2.0
"""C exchange tables: imports by the consumer's own, and how it uses a producer's."""

from __future__ import annotations

import ctypes

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import given, settle, values_of
from bridge.conform.kit.source import Source, imported, required
from bridge.conform.kit.table import TO_OBJECT, ExchangeAPI, table_of
from bridge.conform.kit.table_source import table_source
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def type_of(make: Any, from_dlpack: Any) -> type:
    """Return the type of the subject's tensors, by whichever part there is."""
    if make is None and from_dlpack is None:
        skip("the subject has neither make nor from_dlpack")
    try:
        return type(make(given(np.arange(6.0))[0]) if make else from_dlpack(Source(np.arange(6.0))))
    except Exception as error:
        skip(f"it gives no tensor: {type(error).__name__}: {error}")


def object_of(kind: type, source: Source) -> tuple[int, Any, Any]:
    """Return the status of the table's import of a source, the object, and the exception."""
    table = table_of(kind)
    if not table.managed_tensor_to_py_object_no_sync:
        skip("managed_tensor_to_py_object_no_sync is NULL")
    export = source.export(True)
    out = ctypes.c_void_p()
    try:
        status = TO_OBJECT(table.managed_tensor_to_py_object_no_sync)(export.address, out)
    except Exception as error:
        return -1, None, error
    if not out.value:
        return status, None, None
    result = ctypes.cast(out, ctypes.py_object).value
    ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))(result)
    return status, result, None


def consumer_table_import(make: Any = None, from_dlpack: Any = None, to_numpy: Any = None) -> None:
    kind = type_of(make, from_dlpack)
    for values in (np.arange(6.0), np.arange(24).reshape(2, 3, 4)):
        status, result, error = object_of(kind, Source(values))
        if status != 0 or result is None:
            broken(
                f"managed_tensor_to_py_object_no_sync returned {status}, an object: "
                f"{result is not None}, an exception: {error!r}"
            )
        if type(result) is not kind:
            broken(f"the table of {kind.__name__} imported a {type(result).__name__}")
        if to_numpy and values_of(to_numpy, result).tolist() != values.tolist():
            broken("the table imported other values")


def consumer_table_import_layouts(
    make: Any = None, from_dlpack: Any = None, to_numpy: Any = None
) -> None:
    kind = type_of(make, from_dlpack)
    if to_numpy is None:
        skip("there is no to_numpy")
    for view in (lambda x: x.T, lambda x: x[1:, ::2], lambda x: x[1, 1:2].reshape(())):
        source = Source(np.arange(12.0).reshape(3, 4), view=view)
        _, result, error = object_of(kind, source)
        if error is None and values_of(to_numpy, result).tolist() != source.wanted.tolist():
            broken("the table imported other values of a strided tensor")


def consumer_table_import_deletes(make: Any = None, from_dlpack: Any = None) -> None:
    kind = type_of(make, from_dlpack)
    source = Source(np.arange(6.0))
    status, result, _ = object_of(kind, source)
    if status != 0:
        skip("the table refused to import")
    del result
    settle()
    if len(source.exports[-1].deleted) != 1:
        broken(
            f"what the table imported was collected; the deleter was called "
            f"{len(source.exports[-1].deleted)} times"
        )
    if not all(source.exports[-1].deleted):
        broken("the deleter was called with something else than its structure")


def consumer_table_import_holds(
    make: Any = None, from_dlpack: Any = None, to_numpy: Any = None
) -> None:
    kind = type_of(make, from_dlpack)
    source = Source(np.arange(6.0))
    status, result, _ = object_of(kind, source)
    if status != 0:
        skip("the table refused to import")
    settle()
    if to_numpy is not None:
        if values_of(to_numpy, result).tolist() != np.arange(6.0).tolist():
            broken("the deleter was called while what the table imported was alive")
        shown = np.asarray(to_numpy(result)).ctypes.data
        if source.exports[-1].deleted and source.watch.holds(shown):
            broken("the deleter was called while what the table imported used the memory")


def consumer_table_import_fails(make: Any = None, from_dlpack: Any = None) -> None:
    kind = type_of(make, from_dlpack)
    source = Source(np.arange(6.0), code=99)
    status, result, error = object_of(kind, source)
    if status == 0 and result is None:
        broken("managed_tensor_to_py_object_no_sync returned 0 and gave no object")
    if status == 0:
        broken("managed_tensor_to_py_object_no_sync took elements of the unknown code 99")
    settle()
    if len(source.exports[-1].deleted) > 1:
        broken("managed_tensor_to_py_object_no_sync failed, and called the deleter twice")
    if result is not None and error is not None:
        broken("managed_tensor_to_py_object_no_sync failed, and gave an object")


def consumer_table_of_producer(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    imported(from_dlpack, Source(np.arange(6.0)))
    source, _called = table_source(np.arange(6.0).reshape(2, 3))
    tensor = required(from_dlpack, source, "a producer whose type has a C exchange table")
    if values_of(to_numpy, tensor).tolist() != [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]:
        broken("a tensor whose type has a C exchange table was read wrongly")


def consumer_table_of_producer_deletes(from_dlpack: FromDLPack) -> None:
    source, called = table_source(np.arange(6.0))
    tensor = imported(from_dlpack, source)
    del tensor
    settle()
    if "managed_tensor_from_py_object_no_sync" not in called:
        skip("the consumer does not use the table for this")
    if [len(one.deleted) for one in source.exports] != [1]:
        broken(
            f"the table exported; the deleters were called "
            f"{[len(one.deleted) for one in source.exports]} times"
        )


def consumer_table_major(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    imported(from_dlpack, Source(np.arange(6.0)))
    wrong = {name: 8 for name, *_ in ExchangeAPI._fields_[3:]}
    source, _ = table_source(np.arange(6.0), major=2, **wrong)
    try:
        tensor = from_dlpack(source)
    except Exception as error:
        skip(f"it refuses the producer: {type(error).__name__}: {error}")
    if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
        broken("a tensor whose type has a table of version 2.3 was read wrongly")


def consumer_table_without_view(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    imported(from_dlpack, Source(np.arange(6.0)))
    source, _ = table_source(np.arange(6.0), dltensor_from_py_object_no_sync=None)
    tensor = required(from_dlpack, source, "a table without dltensor_from_py_object_no_sync")
    if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
        broken("a table without dltensor_from_py_object_no_sync: the values are others")
