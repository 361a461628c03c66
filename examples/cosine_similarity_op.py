# SPDX-License-Identifier: Apache-2.0
"""An operator in Caffe2 style, with a tensor of its own that it keeps from run to run.

`CosineSimilarity` of two matrices, row by row: X (N, D), Y (N, D) -> (N,). The scratch memory is a
`caffe2.Tensor` that `ReinitializeTensor` makes fit, so that runs of one size allocate it once. The
arithmetic is torch's, on Caffe2's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bridge import c10, caffe2
from bridge.caffe2 import core, workspace

EPSILON = 1e-12  # the square of the shortest length that is divided by


@caffe2.register_operator("NoteCosineSimilarity")
class CosineSimilarity(caffe2.Operator):
    """The cosine of the angle between each row of X and the same row of Y.

    X (N, D), Y (N, D) -> (N,), float32. A row of zeros gives 0. Fails the run where sizes differ.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lengths = caffe2.Tensor()  # (2, N): the squares of the lengths of the rows

    def RunOnDevice(self) -> bool:
        """X (N, D), Y (N, D) -> (N,). Raises ValueError: they are not of one such size."""
        x, y = self.Input(0), self.Input(1)
        if x.sizes() != y.sizes() or x.dim() != 2:
            raise ValueError(f"two matrices of one size are needed, not {x.sizes()}, {y.sizes()}")
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
    """Run it in a net, over batches of several sizes, and compare with torch."""
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
        raise AssertionError("matrices of two sizes were compared")


if __name__ == "__main__":
    main()
