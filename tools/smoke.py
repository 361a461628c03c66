# SPDX-License-Identifier: Apache-2.0
"""Check an installed wheel: `python tools/smoke.py [--torch]`, away from the sources.

Without `--torch` torch must not be there, and is not needed; with it, it must be.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile


def main(with_torch: bool) -> None:
    """Exchange tensors, write and read a file, and say what was checked."""
    sys.path[:] = [path for path in sys.path if os.path.basename(path) != "tools"]
    import bridge

    assert "numpy" not in sys.modules
    assert "torch" not in sys.modules
    assert (importlib.util.find_spec("torch") is not None) is with_torch

    import numpy as np

    from bridge.caffe2 import workspace

    array = np.arange(6.0).reshape(2, 3)
    tensor = bridge.from_dlpack(array)
    assert tensor.data_ptr() == array.ctypes.data
    assert np.from_dlpack(tensor).ctypes.data == array.ctypes.data
    assert bridge.to_numpy(bridge.caffe2.Tensor(tensor)).ctypes.data == array.ctypes.data
    frozen = bridge.from_dlpack(b"abcd")
    assert frozen.readonly
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.minidb")
        workspace.FeedBlob("x", array)
        bridge.caffe2.save_checkpoint(path, ["x"])
        workspace.ResetWorkspace()
        assert bridge.caffe2.load_checkpoint(path) == ["x"]
    assert (workspace.FetchBlob("x") == array).all()
    checked = f"NumPy {np.__version__}"
    if with_torch:
        import torch

        t = torch.arange(6.0)
        x = bridge.from_dlpack(t)
        assert x.data_ptr() == t.data_ptr()
        assert bridge.to_torch(x) is t
        x.mul_(2)
        assert t.tolist() == [0, 2, 4, 6, 8, 10]
        workspace.FeedBlob("t", t)
        net = bridge.caffe2.core.Net("smoke")
        net.Relu("t", "y")
        workspace.RunNetOnce(net)
        assert workspace.FetchBlob("y").tolist() == t.tolist()
        checked += f", torch {torch.__version__}"
    else:
        assert "torch" not in sys.modules
    version = sys.version.partition(" (")[0]
    print(f"bridge {bridge.__version__} works with Python {version}, {checked}")


if __name__ == "__main__":
    main("--torch" in sys.argv[1:])
