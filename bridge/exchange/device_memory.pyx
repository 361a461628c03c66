# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Memory of devices, which torch allocates; the current device; copies to a device."""

from bridge.c10.copy cimport copy_elements, require_copy
from bridge.c10.device cimport Device
from bridge.c10.storage cimport share_buffer
from bridge.c10.tensor_impl cimport TensorImpl, allocated, device_index_of, new_pair, seen
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_ROCM_HOST

from bridge.c10.allocator import Allocator, GetAllocator, register_default_allocator
from bridge.c10.device import DeviceType
from bridge.c10.errors import EnforceBufferError, EnforceNotMet
from bridge.exchange.torch_devices import lacks_memory


def current_index(device: Device) -> int:
    """Return the index of `device`; that of torch's current device if it specifies none."""
    if device.index >= 0:
        return device.index
    return _cuda_of_torch("CUDA device").current_device()


def _cuda_of_torch(what):
    """Return torch.cuda, initialised. Raises EnforceBufferError: CUDA is not available."""
    import torch
    if torch.cuda.is_initialized():
        return torch.cuda
    if not torch.cuda.is_available():
        raise EnforceBufferError(
            f"There is no {what}: torch.cuda.is_available() is False.", "GetAllocator")
    try:
        torch.cuda.init()
    except RuntimeError as error:       # in a forked child, where CUDA does not work
        raise EnforceBufferError(f"There is no {what}: {error}", "GetAllocator") from error
    return torch.cuda


cpdef TensorImpl to_device(TensorImpl impl, Device device, object copy: bool | None = None):
    """Return `impl` if it is on `device`, otherwise a copy there.

    Page-locked memory is the CPU's as well, so for "cpu" it is shared and not copied.
    Raises BufferError: a copy is needed and `copy` is False.
    """
    cdef Device here = impl.device()
    cdef int index = current_index(device)
    if here.c_type == device.c_type and here.c_index == index:
        return impl
    if device.c_type == DL_CPU and impl.dtype().is_pod and (
            here.c_type == DL_CUDA_HOST or here.c_type == DL_ROCM_HOST):
        return as_cpu_memory(impl)
    require_copy(copy, impl.numel() * impl.dtype().itemsize,
                 f"it is on {here} and goes to {device}, which needs a copy")
    return copied_to(impl, device.c_type, index)


def copied_to(TensorImpl impl, device_type: int, index: int) -> TensorImpl:
    """Return a row-major copy of `impl` on a device."""
    cdef TensorImpl out
    impl = seen(impl)
    impl.data("to")
    out = allocated(impl.c_sizes, impl.ndim, impl.c_dtype, device_type, index, "to")
    copy_elements(out, impl, "to")
    return out


cpdef TensorImpl as_cpu_memory(TensorImpl impl):
    """Return a TensorImpl of the same page-locked memory as memory of the CPU."""
    return _on_device(impl, DL_CPU, 0)


cdef TensorImpl as_cuda_memory(TensorImpl impl):
    """Return a TensorImpl of the same managed memory as memory of its CUDA device."""
    return _on_device(impl, DL_CUDA, device_index_of(impl))


cdef TensorImpl _on_device(TensorImpl impl, int device_type, int index):
    """Return a TensorImpl of the same memory, described as memory of another device."""
    cdef TensorImpl out
    impl = seen(impl)
    impl.data("to")
    impl.storage.retain()
    out = new_pair(device_type, index, impl.c_dtype)
    share_buffer(out.storage, impl.storage, 0)
    out.offset = impl.offset
    out.set_strided(impl.c_sizes, impl.c_strides(), impl.ndim, impl.c_numel)
    return out


class TorchAllocator(Allocator):
    """Memory of torch's own allocator: CUDA memory, or page-locked host memory.

    A buffer is a torch tensor of bytes, so torch's stream order and caching hold: memory that
    is given back serves again on the stream that was current when it was allocated, and on
    others after what ``record_stream`` was told of.
    """

    def __init__(self, device: str, pinned: bool = False) -> None:
        self._device = device
        self._pinned = pinned
        self._tensors = {}

    def raw_allocate(self, nbytes: int) -> int:
        """Return the address of `nbytes` new bytes, 0 for none.

        Raises MemoryError: torch is out of memory. EnforceNotMet: torch cannot allocate at all.
        """
        if nbytes == 0:
            return 0
        import torch
        try:
            tensor = torch.empty(
                nbytes, dtype=torch.uint8, device=self._device, pin_memory=self._pinned)
            if self._pinned:
                tensor.numpy()      # torch marks the storage: resize_ raises from now on
        except RuntimeError as error:
            what = f"{nbytes} bytes of page-locked memory" if self._pinned else \
                f"{nbytes} bytes on {self._device}"
            if lacks_memory(error):
                raise MemoryError(f"{what}: {error}") from error
            raise EnforceBufferError(
                f"torch does not allocate {what}: {error}", "Allocator.raw_allocate") from error
        address = tensor.data_ptr()
        self._tensors[address] = tensor
        return address

    def raw_deallocate(self, address: int) -> None:
        """Return the buffer to torch. Raises EnforceNotMet: it is not of this allocator."""
        if address and self._tensors.pop(address, None) is None:
            raise EnforceNotMet(
                f"{address:#x} is not a live address of this allocator.",
                "Allocator.raw_deallocate")

    def _memory_at(self, address):
        # The DataPtr owns the tensor; it is not looked up by address, since torch may resize the
        # storage and then allocate at the same address again.
        return self._tensors.pop(address)


def _cuda(index):
    cuda = _cuda_of_torch(f"memory on cuda:{index}" if index >= 0 else "memory on cuda")
    if index < 0:
        return GetAllocator(f"cuda:{cuda.current_device()}")
    if index >= cuda.device_count():
        raise EnforceBufferError(
            f"There is no cuda:{index}; torch sees {cuda.device_count()} CUDA devices, numbered "
            "from 0.", "GetAllocator", condition="index < torch.cuda.device_count()")
    return TorchAllocator(f"cuda:{index}")


def _pinned(index):
    _cuda_of_torch("page-locked memory")
    return TorchAllocator("cpu", True)


register_default_allocator(DeviceType.CUDA, _cuda)
register_default_allocator(DeviceType.CUDAHost, _pinned)
