# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from bridge.caffe2.tensor.tensor import Tensor
from bridge.typing import DeviceLike, Dims, OptionsLike, TypeLike

def empty(
    dims: Dims,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor: ...
