# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Advanced indexing: by tensors, lists and masks, which torch evaluates."""

from bridge.at.conversion cimport as_source
from bridge.at.element_writes cimport write_back
from bridge.at.storage_ops cimport import_result
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.torch_export cimport torch_operand

from bridge.c10.errors import EnforceIndexError, EnforceNotMet, EnforceTypeError


cdef TensorImpl advanced_index(TensorImpl impl, object key):
    """Return ``x[key]`` for a key that basic indexing does not support; a copy."""
    if isinstance(key, (str, float, complex, dict, bytes)):
        raise EnforceTypeError(
            f"{key!r} is not an index. An index consists of ints, slices, None, ..., or tensors of "
            "ints or bools.", "Tensor.__getitem__")
    source = torch_operand(impl)
    try:
        found = source[_torch_key(key)]
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise EnforceTypeError(f"{key!r} is not a valid index: {error}",
                               "Tensor.__getitem__") from error
    if found.data_ptr() and found.untyped_storage().data_ptr() == \
            source.untyped_storage().data_ptr():
        found = found.clone()
    return import_result(found)


cdef int advanced_assign(TensorImpl impl, object key, object value) except -1:
    """Set ``x[key]`` to `value` for a key that basic indexing does not support."""
    if not isinstance(value, (bool, int, float, complex)):
        value = torch_operand(as_source(value, impl, "Tensor.__setitem__"))
    try:
        target = torch_operand(impl)
        target[_torch_key(key)] = value
        write_back(impl, target)
    except IndexError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, EnforceNotMet):
            raise
        raise EnforceTypeError(f"{key!r} is not a valid index: {error}",
                               "Tensor.__setitem__") from error
    return 0


def _torch_key(key):
    """Return an index for torch; tensors of all frameworks become torch tensors."""
    if isinstance(key, tuple):
        return tuple([_torch_key(one) for one in key])
    if isinstance(key, range):
        return list(key)
    if isinstance(key, (list, int, slice)) or key is None or key is Ellipsis:
        return key
    tensor = torch_operand(import_tensor(key))
    if tensor.dtype.is_signed or tensor.dtype.itemsize == 1:
        return tensor
    # Of unsigned integers torch supports only bytes, as masks.
    signed = tensor.long()
    if (signed < 0).any():
        raise EnforceIndexError(
            f"An index in {key!r} is out of range.", "Tensor.__getitem__")
    return signed
