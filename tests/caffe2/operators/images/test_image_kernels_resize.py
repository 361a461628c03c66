# SPDX-License-Identifier: Apache-2.0
"""Images resized by our own kernel, held against indices by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.caffe2.operators.images.image_kernels import resize_nearest


@pytest.mark.parametrize(
    ("height_scale", "width_scale"), [(2, 2), (3, 2), (1, 1), (0.5, 1.7), (2.3, 0.3), (2, 0.1)]
)
def test_resize_nearest_takes_the_pixels_that_numpy_indexes(height_scale, width_scale) -> None:
    x = np.arange(2 * 3 * 5 * 7, dtype=np.float32).reshape(2, 3, 5, 7)
    scales = np.array([height_scale, width_scale], np.float32)
    to = (np.array([5, 7], np.float32) * scales).astype(int)
    rows, columns = (
        np.minimum((np.arange(many, dtype=np.float32) / scale).astype(int), size - 1)
        for many, scale, size in zip(to, scales, (5, 7), strict=True)
    )
    y = np.full((2, 3, *to), -1, np.float32)
    sizes = 5, 7, *to.tolist()
    resize_nearest(torch.from_numpy(x), torch.from_numpy(y), 6, *sizes, *scales.tolist())
    np.testing.assert_array_equal(y, x[:, :, rows][..., columns])
