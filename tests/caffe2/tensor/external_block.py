# SPDX-License-Identifier: Apache-2.0
"""Memory from outside with a deleter that counts."""

import numpy as np

from bridge import caffe2


class Block:
    """Four float32 with a deleter that counts."""

    def __init__(self) -> None:
        self.array = np.array([1, 2, 3, 4], np.float32)
        self.address = self.array.ctypes.data
        self.deleted: list[int] = []

    def delete(self, address: int) -> None:
        self.deleted.append(address)

    def tensor(self) -> caffe2.Tensor:
        tensor = caffe2.Tensor((4,), "cpu")
        tensor.ShareExternalPointer(self.address, "float32", 0, self.delete)
        return tensor
