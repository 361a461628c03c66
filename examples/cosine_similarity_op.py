# SPDX-License-Identifier: Apache-2.0
"""A Caffe2-style operator with a scratch tensor that is kept between runs.

`CosineSimilarity` of the rows of two matrices: X (N, D), Y (N, D) -> (N,). The scratch memory is a
`caffe2.Tensor`, resized by `ReinitializeTensor`: repeated runs of one size allocate it once. torch
computes on Caffe2's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bridge import c10, caffe2
from bridge.caffe2 import core, workspace

EPSILON = 1e-12  # the smallest squared length that is divided by


@caffe2.register_operator("NoteCosineSimilarity")
class CosineSimilarity(caffe2.Operator):
    """The cosine of the angle between each row of X and the same row of Y.

    X (N, D), Y (N, D) -> (N,), float32. The result for a row of zeros is 0. The run fails if the
    sizes differ.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lengths = caffe2.Tensor()  # (2, N): the squared lengths of the rows

    def RunOnDevice(self) -> bool:
        """Compute the output. Raises ValueError: X and Y are not matrices of the same sizes."""
        x, y = self.Input(0), self.Input(1)
        if x.sizes() != y.sizes() or x.dim() != 2:
            raise ValueError(f"X and Y must be matrices of one size, not {x.sizes()}, {y.sizes()}")
        n = x.size(0)
        options = c10.dtype("float32").device(self.device)
        caffe2.ReinitializeTensor(self.lengths, [2, n], options)
        result = self.Output(0, [n], options)

        x_rows, y_rows = x.to_torch(), y.to_torch()
        lengths, cosines = self.lengths.to_torch(), result.to_torch()
        torch.linalg.vecdot(x_rows, x_rows, out=lengths[0])
        torch.linalg.vecdot(y_rows, y_rows, out=lengths[1])
        lengths.clamp_(min=EPSILON).rsqrt_()
        torch.linalg.vecdot(x_rows, y_rows, out=cosines)
        cosines.mul_(lengths[0]).mul_(lengths[1])
        return True


def main() -> None:
    """Run the operator in a net on batches of several sizes, and compare with torch."""
    net = core.Net("similarity")
    net.NoteCosineSimilarity(["X", "Y"], ["cosines"])
    generator = np.random.default_rng(0)
    created = False
    for n in (4, 4, 3, 5):
        x, y = generator.normal(size=(2, n, 8)).astype(np.float32)
        x[0] = 0
        workspace.FeedBlob("X", x)
        workspace.FeedBlob("Y", y)
        if not created:
            created = workspace.CreateNet(net)
        workspace.RunNet(net)
        cosines = workspace.FetchBlob("cosines")
        expected = torch.cosine_similarity(torch.from_numpy(x), torch.from_numpy(y)).numpy()
        np.testing.assert_allclose(cosines, expected, rtol=1e-5, atol=1e-6)
        print(f"{n} rows:", np.round(cosines, 3))

    workspace.FeedBlob("Y", y[:2])
    try:
        workspace.RunNet(net)
    except c10.EnforceNotMet as error:
        print("refused:", str(error).splitlines()[0])
    else:
        raise AssertionError("matrices of different sizes were accepted")


if __name__ == "__main__":
    main()
