# SPDX-License-Identifier: Apache-2.0
"""Use one tensor through the APIs of Caffe2 and ATen: both share its data and metadata."""

from __future__ import annotations

import torch

from bridge import at, c10, caffe2


def main() -> None:
    """Convert in both directions; changes through one wrapper are visible through the other."""
    c = caffe2.Tensor([2, 3], "cpu")
    c.mutable_data("float32")[:] = range(6)
    a = at.Tensor(c)  # both share one TensorImpl

    a.mul_(2)
    print("after at.mul_:        caffe2 sees", c.data().tolist())
    c.Resize(3, 2)
    print("after caffe2.Resize:  at sees sizes", tuple(a.sizes()))
    assert a.data_ptr() == c.raw_data()

    print("torch takes it:      ", torch.sum(a, dim=0).tolist())
    print("softmax, by torch:   ", [round(p, 2) for p in at.softmax(a[0], -1).tolist()])

    # Caffe2 supports contiguous tensors only: other views raise an error and must be copied.
    transposed = a.t()
    try:
        caffe2.Tensor(transposed)
    except c10.EnforceNotMet as error:
        print("a transposed view:   ", str(error).splitlines()[0])
    copied = caffe2.Tensor(transposed.contiguous())
    print("contiguous() copies: ", tuple(copied.sizes()), copied.data().tolist())
    assert copied.raw_data() != c.raw_data()

    # An Alias shares the storage but has its own metadata.
    flat = c.Alias()
    flat.Reshape([6])
    print("an Alias reshapes:   ", tuple(flat.sizes()), "and leaves", tuple(c.sizes()))
    assert flat.raw_data() == c.raw_data()


if __name__ == "__main__":
    main()
