# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""DeviceType and Device, with the numbers of DLPack."""

from enum import IntEnum

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t

from bridge.c10.python_api cimport make_immortal
from bridge.c10.slots cimport new_function, new_of, set_new
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA_HOST, DL_EXT_DEV, DL_ROCM_HOST

from bridge.c10.errors import EnforceTypeError, EnforceValueError, shown

cdef enum:
    DL_TPU_HOST = 20    # page-locked host memory


class DeviceType(IntEnum):
    """Kinds of device, with the numbers of DLPack's DLDeviceType (TPU: after version 1.3).

    Each is equal to its number and to its name, and prints as its name; its hash is that of the
    number.

    >>> from bridge import c10
    >>> c10.DeviceType.CUDA is c10.CUDA, int(c10.CUDA), c10.CUDA == "cuda", f"{c10.CUDA}:1"
    (True, 2, True, 'cuda:1')
    """

    # pyi: def __hash__(self) -> int: ...
    CPU = 1
    CUDA = 2
    CUDAHost = 3
    OpenCL = 4
    Vulkan = 7
    Metal = 8
    VPI = 9
    ROCM = 10
    ROCMHost = 11
    ExtDev = 12
    CUDAManaged = 13
    OneAPI = 14
    WebGPU = 15
    Hexagon = 16
    MAIA = 17
    Trn = 18
    TPU = 19
    TPUHost = 20

    def __eq__(self, other: object, /) -> bool:
        if isinstance(other, str):
            return _TYPE_OF.get(other.replace("_", "")) is self
        return int.__eq__(self, other)

    def __ne__(self, other: object, /) -> bool:
        return not self == other

    __hash__ = int.__hash__

    def __str__(self):
        return _NAME_OF[self]

    def __format__(self, spec: str, /) -> str:
        return format(_NAME_OF[self], spec)


# The spelling of each type when printed; other spellings are accepted, too.
cdef dict _NAME_OF = {
    DeviceType.CPU: "cpu", DeviceType.CUDA: "cuda", DeviceType.CUDAHost: "cuda_host",
    DeviceType.OpenCL: "opencl", DeviceType.Vulkan: "vulkan", DeviceType.Metal: "metal",
    DeviceType.VPI: "vpi", DeviceType.ROCM: "rocm", DeviceType.ROCMHost: "rocm_host",
    DeviceType.ExtDev: "ext_dev", DeviceType.CUDAManaged: "cuda_managed",
    DeviceType.OneAPI: "oneapi", DeviceType.WebGPU: "webgpu",
    DeviceType.Hexagon: "hexagon", DeviceType.MAIA: "maia", DeviceType.Trn: "trn",
    DeviceType.TPU: "tpu", DeviceType.TPUHost: "tpu_host",
}
cdef dict _TYPE_OF = {name.replace("_", ""): kind for kind, name in _NAME_OF.items()}
# torch's names of types that DLPack calls otherwise.
_TYPE_OF.update(gpu=DeviceType.CUDA, mps=DeviceType.Metal, xpu=DeviceType.OneAPI)
cdef dict _known = {}


@cython.no_gc       # its only object is an enum's member
cdef class Device(str):
    """A device: its type and its index; a ``str`` that names it, as every framework takes.

    Parameters
    ----------
    spec: a name such as ``"cpu"`` or ``"cuda:1"``, a `Device`, a `DeviceType`, a
        ``torch.device``, or DLPack's pair ``(type, index)``.

    Without a number the index is 0, except for ``"cuda"``: -1, the framework's current CUDA
    device. A Device is equal to anything that names the same device. Its hash is that of its
    ``str``: in a ``dict`` or ``set``, ``"cuda:1"`` finds it and a ``torch.device`` does not.
    Calling a Device returns it, so that ``x.device`` and ``x.device()`` are the same object.

    Raises
    ------
    EnforceNotMet, also a TypeError or ValueError: `spec` does not name a device.

    Follows c10::Device, c10/core/Device.h, PyTorch 1.8.1, with DLPack's numbers.

    >>> from bridge.c10 import Device
    >>> Device("cuda:1"), Device("cuda:1") == "cuda:1", Device("cpu").index
    (Device('cuda:1'), True, 0)
    """

    # pyi: def __new__(cls, spec: DeviceLike, index: int | None = None) -> Self: ...
    # pyi: @property
    # pyi: def type(self) -> DeviceType: ...
    def __call__(self) -> Self:
        return self

    @property
    def index(self) -> int:  # type: ignore[override]
        """The number of the device among those of its type; -1: the current one."""
        return self.c_index

    def __eq__(self, other: object) -> bool:
        cdef Device that
        if not isinstance(other, Device):
            try:
                other = as_device(other)
            except (TypeError, ValueError):
                return NotImplemented
        that = <Device>other
        return self.c_type == that.c_type and self.c_index == that.c_index

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __str__(self):
        return _name(self.type, self.c_index)

    def __repr__(self):
        return f"Device({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_device, ((int(self.type), self.c_index),)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return self.__reduce__()


cdef new_function _new_str = new_of(Device)


cdef PyObject* _new_device(PyObject* cls, PyObject* args, PyObject* kwargs) except NULL:
    """tp_new of Device: it takes other arguments than that of `str`."""
    cdef Device device
    named = {} if kwargs == NULL else <dict>kwargs
    kind, index = _checked(*<tuple>args, **named)
    device = <Device>_new_str(<object>cls, (_name(kind, index),), NULL)
    device.type = kind
    device.c_type = kind
    device.c_index = index
    Py_INCREF(device)
    return <PyObject*>device


set_new(Device, _new_device)


def _checked(spec, index=None):
    """Return (DeviceType, index) of the arguments of `Device`."""
    if index is not None:
        if isinstance(index, bool) or not isinstance(index, int):
            raise EnforceTypeError(
                f"A device index is an int, not {index!r}.", "Device")
        kind, found = _parse(spec)
        if found not in (-1, index) and not (found == 0 and kind != DeviceType.CUDA):
            raise EnforceValueError(
                f"{spec!r} has another index than {index}.", "Device")
    else:
        kind, index = _parse(spec)
    _check_index(kind, index)
    return kind, index


def _name(kind, index):
    name = _NAME_OF[kind]
    if index == -1 or (index == 0 and kind != DeviceType.CUDA):
        return name
    return f"{name}:{index}"


def _check_index(kind, index):
    if index < -1 or index > 0x7FFFFFFF:
        raise EnforceValueError(
            f"A device index must be in [0, 2**31): {index}.", "Device",
            condition="0 <= index < 2**31")
    if kind == DeviceType.CPU and index > 0:
        raise EnforceValueError(
            f"The only CPU device has index 0, not {index}.", "Device")


def _default_index(kind):
    return -1 if kind == DeviceType.CUDA else 0


def _parse(spec):
    """Return (DeviceType, index) of anything that names a device. Raises as `Device`."""
    if isinstance(spec, Device):
        return spec.type, spec.index
    if isinstance(spec, DeviceType):
        return spec, _default_index(spec)
    if isinstance(spec, str):
        name, colon, number = spec.partition(":")
        kind = _TYPE_OF.get(name.strip().lower().replace("_", ""))
        if kind is None:
            raise EnforceValueError(
                f"{spec!r} does not name a device; the names are {', '.join(_NAME_OF.values())}, "
                "with an index as in 'cuda:1'.", "Device")
        if not colon:
            return kind, _default_index(kind)
        if not (number.isascii() and number.isdigit() and len(number) <= 20):
            raise EnforceValueError(
                f"{spec!r} does not name a device: the index after ':' is a number such as "
                "'cuda:1'.", "Device")
        return kind, int(number)
    if isinstance(spec, tuple) and len(spec) == 2:
        number, index = spec
        if isinstance(number, int) and isinstance(index, int):
            try:
                return DeviceType(number), index
            except ValueError:
                raise EnforceValueError(
                    f"{number} is not a device type of DLPack.", "Device") from None
    # A torch.device, recognised without importing torch.
    kind = getattr(spec, "type", None)
    if type(spec).__name__ == "device" and isinstance(kind, str):
        index = spec.index
        return _parse(kind if index is None else f"{kind}:{index}")
    raise EnforceTypeError(
        f"{shown(spec)} does not name a device. Give a string such as 'cpu' or 'cuda:1', a "
        "c10.Device, a c10.DeviceType or a torch.device.", "Device")


cdef Device _cached(object key):
    """Return the Device of a name, or of a pair of numbers, that was asked for before or is new."""
    found = _known.get(key)
    if found is None:
        found = Device(key)
        if len(_known) < 4096:
            make_immortal(found)
            found = _known.setdefault(key, found)       # another thread may have been faster
    return <Device>found


cdef Device _cpu = _cached((int(DL_CPU), 0))


cdef Device device_of(int32_t device_type, int32_t index):
    """Return the Device with these numbers. Raises EnforceValueError: an unknown type."""
    if device_type == DL_CPU and index == 0:
        return _cpu
    return _cached((device_type, index))


cpdef Device as_device(object spec: DeviceLike):
    """Return `spec` if it is a Device, otherwise the Device that it names. Raises as `Device`."""
    if isinstance(spec, Device):
        return <Device>spec
    if type(spec) is str:
        return _cached(spec)
    kind, index = _parse(spec)
    return device_of(kind, index)


cdef bint host_accessible(int32_t device_type) noexcept nogil:
    """Return whether the CPU can read and write memory of this device type by its address.

    So for kDLExtDev, which DLPack reserves for testing: here it is host memory, on which the rules
    for devices are tested without a GPU.
    """
    return (device_type == DL_CPU or device_type == DL_CUDA_HOST
            or device_type == DL_ROCM_HOST or device_type == DL_EXT_DEV
            or device_type == DL_TPU_HOST)
