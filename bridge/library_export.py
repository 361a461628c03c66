# SPDX-License-Identifier: Apache-2.0
"""Export to registered libraries, by the exporters of `bridge.exchange.registry`."""

from __future__ import annotations

import threading

from bridge.annotation import Any
from bridge.at.tensor import Tensor
from bridge.c10.copy import reported_copy
from bridge.c10.reports import ASKED, report_copy
from bridge.exchange.conversion import export_source, remaining_copy
from bridge.exchange.fresh_memory import FreshMemoryError, is_same, must_prove
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.refusal import reason_of
from bridge.exchange.registry import missing_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.c10.tensor_impl import TensorImpl
    from bridge.exchange.registry import Adapter


# Exporters may call others, of the same library for parts of a tensor.
_MAX_NESTED = 32


class _Running(threading.local):
    """The exporters that run in this thread, the outermost first, each with its tensor."""

    def __init__(self) -> None:
        self.exports: list[tuple[Adapter, TensorImpl]] = []


_running = _Running()


def export_to(adapter: Adapter, x: Any, copy: bool | None) -> Any:
    """Return the library's object of the memory of `x`; see bridge.convert.

    An object of the library itself is returned unchanged. Raises BufferError: the library does not
    take it, or takes a copy only and `copy` is False.
    """
    if adapter.exporter is None:
        raise ValueError(f"No exporter is registered for {adapter.name}.")
    if copy is not True and adapter.includes(x):
        return x
    impl = export_source(x, copy)
    copy = remaining_copy(x, impl, copy)
    if copy is True:
        impl = reported_copy(impl, ASKED, "convert")
    _refuse_endless(adapter, impl)
    _running.exports.append((adapter, impl))
    try:
        exported = adapter.exporter(Tensor._wrap(impl))
    except (BufferError, MemoryError):
        raise
    except ImportError as error:
        raise missing_library(adapter.name, error) from error
    except Exception as error:
        reason = reason_of(error)
        raise BufferError(
            f"{adapter.name} does not take a tensor of {impl.dtype()} on {impl.device()}: "
            f"{type(error).__name__}: {reason}. Convert it first, as with "
            "bridge.asarray(x, dtype='float32')."
        ) from error
    finally:
        _running.exports.pop()
    if copy is not True and must_prove(copy) and not _is_shared(impl, exported):
        _report(adapter.name, impl, copy)
    return exported


def _refuse_endless(adapter: Adapter, impl: TensorImpl) -> None:
    """Raise BufferError if the exporter is at work on `impl`, or too many exporters are at work."""
    exports = _running.exports
    again = any(other is adapter and memory is impl for other, memory in exports)
    if not again and len(exports) < _MAX_NESTED:
        return
    names = " and ".join(dict.fromkeys(other.name for other, _ in exports))
    raise BufferError(
        f"The exporter of {names} called convert(x, {adapter.name!r}) for the tensor that it was "
        f"given{'' if again else f', {_MAX_NESTED} times in a row'}. An exporter makes the "
        "library's object itself."
    )


def _is_shared(impl: TensorImpl, exported: Any) -> bool:
    """Return whether the library's object has the memory of `impl`; True if it has no door."""
    try:
        return impl.numel() == 0 or is_same(impl, import_tensor(exported, None, False))
    except BufferError:
        return False
    except TypeError:
        return True


def _report(name: str, impl: TensorImpl, copy: bool | None) -> None:
    reason = f"{name} copied it: it cannot share this memory"
    if copy is False:
        raise FreshMemoryError(
            f"{name} cannot share memory of {impl.dtype()} with strides {list(impl.strides())}"
            f"{', which is read-only' if impl.get_storage().readonly else ''}. Allow a copy with "
            "copy=None."
        )
    report_copy(impl.numel() * impl.dtype().itemsize, reason)
