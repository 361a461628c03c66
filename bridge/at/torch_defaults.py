# SPDX-License-Identifier: Apache-2.0
"""torch's functions that create tensors, without torch's defaults.

``torch.set_default_dtype`` and ``torch.set_default_device`` are for a program's own torch code: an
at.Tensor is float32 (complex64 of complex numbers) on the CPU unless the call says otherwise.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.device import DeviceType
from bridge.c10.type_meta import as_type

# Those whose elements have torch's default type, and those with a type of their own.
_FLOATS = frozenset(
    {
        "bartlett_window", "blackman_window", "empty_permuted", "from_file", "hamming_window",
        "hann_window", "kaiser_window", "linspace", "logspace", "normal", "range",
        # of at.fft and at.signal.windows
        "fftfreq", "rfftfreq", "fft_fftfreq", "fft_rfftfreq",
        "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
        "general_hamming", "hamming", "hann", "kaiser", "nuttall",
    }
)  # fmt: skip
_INTS = frozenset({"randint", "randperm", "tril_indices", "triu_indices"})
_OF_DATA = frozenset({"as_tensor", "asarray", "scalar_tensor"})
CREATING = _FLOATS | _INTS | _OF_DATA


def with_own_defaults(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call of ``torch.<name>``, with the type and device if not given."""
    if name == "normal" and len(args) < 3 and "size" not in named:
        return named  # computed from tensors
    if hasattr(named.get("out"), "__dlpack_device__"):
        return {"device": _device_of(named["out"]), **named}
    data: Any = args[0] if args else None
    dtype = None
    if name in _FLOATS:
        import torch

        dtype = torch.complex64 if any(map(_is_complex, args)) else torch.float32
    elif name in _OF_DATA:
        if hasattr(data, "__dlpack_device__"):
            return {"device": _device_of(data), **named}  # of its own type, where it is
        dtype = default_type(data)
        if name == "scalar_tensor" and dtype is None:
            import torch

            dtype = torch.float32
    own: dict[str, Any] = {"device": "cpu"}
    own.update((key, value) for key, value in named.items() if value is not None)
    if "dtype" in own:
        own["dtype"] = as_type(own["dtype"])
    elif dtype is not None:
        own["dtype"] = dtype
    return own


def _device_of(tensor: Any) -> str:
    kind, index = tensor.__dlpack_device__()
    return f"cuda:{index}" if kind in (DeviceType.CUDA, DeviceType.CUDAManaged) else "cpu"


def _is_complex(value: Any) -> bool:
    if isinstance(value, complex):
        return True
    dtype = getattr(value, "dtype", None)
    return dtype is not None and "complex" in str(dtype)


def default_type(data: Any) -> Any:
    """Return the ``torch.dtype`` of numbers of Python; None if their own types say it.

    `data` is a number or nested lists of them. Floats make float32, complex numbers complex64.
    """
    import torch

    kinds = set(map(type, _leaves(data)))
    if not kinds <= {bool, int, float, complex}:
        return None
    if complex in kinds:
        return torch.complex64
    return torch.float32 if float in kinds or not kinds else None


def _leaves(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        for one in data:
            yield from _leaves(one)
    else:
        yield data
