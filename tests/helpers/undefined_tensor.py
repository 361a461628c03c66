# SPDX-License-Identifier: Apache-2.0
"""torch tensors of which nothing is left."""

import ctypes

import torch

_NAME_TO_CLEAR = 21  # fields of a PyTypeObject from tp_name to tp_clear


def undefined_tensor() -> torch.Tensor:
    """Return a torch.Tensor as the garbage collector leaves one that was in a cycle: undefined."""
    tensor = torch.ones(3)
    word = ctypes.sizeof(ctypes.c_void_p)
    name = object.__basicsize__ + word
    function = ctypes.c_void_p.from_address(id(torch.Tensor) + name + _NAME_TO_CLEAR * word)
    assert function.value is not None
    clear = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(function.value)
    assert clear(tensor) == 0
    return tensor
