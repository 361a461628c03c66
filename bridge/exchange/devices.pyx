# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""What devices need from a framework: allocators, the current index, copies there."""


from bridge.c10.copy cimport copy_elements
from bridge.c10.tensor_impl cimport TensorImpl, allocated

from bridge.c10.allocator import Allocator, set_provider
from bridge.c10.device import DeviceType
from bridge.c10.errors import EnforceBufferError, EnforceNotMet


def current_index(device):
    """The index of `device`; of the framework's current device where it names none."""
    if device.index >= 0:
        return device.index
    import torch
    if not torch.cuda.is_available():
        raise EnforceBufferError(
            "There is no CUDA device here: torch.cuda.is_available() is False.", "", "Device")
    return torch.cuda.current_device()


def copied_to(TensorImpl impl, device_type, index):
    """A row-major copy of `impl` on a device."""
    cdef TensorImpl out
    impl.data("to")
    out = allocated(impl.c_sizes, impl.ndim, impl.c_dtype, device_type, index, "to")
    copy_elements(out, impl, "to")
    return out


class TorchAllocator(Allocator):
    """Memory of torch's own allocator: CUDA memory, or page-locked host memory.

    A buffer is a torch tensor of bytes, so torch's stream order and caching hold.
    """

    def __init__(self, device, pinned=False):
        self._device = device
        self._pinned = pinned
        self._tensors = {}

    def raw_allocate(self, nbytes):
        """The address of `nbytes` new bytes; MemoryError where torch has none."""
        import torch
        try:
            tensor = torch.empty(
                nbytes, dtype=torch.uint8, device=self._device, pin_memory=self._pinned)
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(f"{nbytes} bytes on {self._device}: {error}") from error
        except RuntimeError as error:
            raise MemoryError(f"{nbytes} bytes on {self._device}: {error}") from error
        address = tensor.data_ptr()
        self._tensors[address] = tensor
        return address

    def raw_deallocate(self, address):
        """Give the buffer back to torch. EnforceNotMet: it did not come from here."""
        if address and self._tensors.pop(address, None) is None:
            raise EnforceNotMet(
                f"{address:#x} is not a live address of this allocator.", "",
                "Allocator.raw_deallocate")


def _cuda(index):
    return _available(f"cuda:{index}" if index >= 0 else "cuda", False)


def _pinned(index):
    return _available("cpu", True)


def _available(device, pinned):
    # asked here, so that tensors without elements, which allocate nothing, are refused as well
    import torch
    if not torch.cuda.is_available():
        what = "page-locked memory" if pinned else f"memory on {device}"
        raise EnforceBufferError(
            f"There is no {what}: torch.cuda.is_available() is False.", "", "GetAllocator")
    return TorchAllocator(device, pinned)


set_provider(DeviceType.CUDA, _cuda)
set_provider(DeviceType.CUDAHost, _pinned)
