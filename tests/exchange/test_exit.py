# SPDX-License-Identifier: Apache-2.0
"""An interpreter that ends while imports and exports are alive: quietly, with status 0."""

import pytest

from tests.helpers.isolate import run_python

START = """
import gc, sys, threading
import numpy as np
import torch
import bridge
from bridge import at, caffe2
from tests.helpers.dlpack_producer import ManagedTensor, Producer, TensorSpec

array = np.arange(6, dtype=np.float32)
tensor = torch.arange(6.0)
ours = at.arange(6, dtype="float32")
"""

SCENES = {
    "imports": """
kept = [bridge.from_dlpack(array), bridge.from_dlpack(tensor), bridge.from_dlpack(b"abc")]
kept.append(bridge.from_dlpack(Producer(TensorSpec.of_array(array))))
""",
    "exports": """
kept = [ours.numpy(), ours.to_torch(), memoryview(ours), np.from_dlpack(ours)]
kept += [torch.from_dlpack(ours), ours.__dlpack__(), ours.__dlpack__(max_version=(1, 3))]
""",
    "exports of imports": """
x = bridge.from_dlpack(Producer(TensorSpec.of_array(array)))
kept = [x.numpy(), x.to_torch(), memoryview(x), x.__dlpack__(), caffe2.Tensor(x).data()]
del x
""",
    "in modules that go late": """
sys.kept = [bridge.from_dlpack(tensor), bridge.from_dlpack(array), ours.to_torch(), ours.numpy()]
torch.kept = bridge.from_dlpack(array).to_torch()
np.kept = bridge.from_dlpack(tensor).numpy()
import builtins
builtins.kept = [bridge.from_dlpack(tensor)[1:], ours.__dlpack__()]
""",
    "in a cycle": """
tensor.partner = bridge.from_dlpack(tensor)
loop = [bridge.from_dlpack(array), caffe2.Tensor(ours)]
loop.append(loop)
""",
    "in a thread": """
ready = threading.Event()
def wait(never=threading.Event()):
    held = [bridge.from_dlpack(tensor), ours.to_torch()]
    ready.set()
    never.wait()
threading.Thread(target=wait, daemon=True).start()
ready.wait()
""",
    "in the graph of autograd": """
leaf = torch.ones(6, requires_grad=True)
loss = (leaf * ours.to_torch()).sum()
del ours
""",
    "in the workspace": """
from bridge.caffe2 import workspace
workspace.FeedBlob("t", tensor)
workspace.FeedBlob("a", array)
workspace.FeedBlob("x", ours)
kept = workspace.FetchTorch("t")
""",
    "never collected": """
gc.disable()
tensor.partner = bridge.from_dlpack(tensor)
del tensor
""",
}


@pytest.mark.parametrize("scene", SCENES)
def test_an_interpreter_ends_quietly_while_tensors_live(scene: str) -> None:
    assert run_python(f"{START}{SCENES[scene]}\nprint('done')") == "done\n"


def test_conversions_work_at_exit() -> None:
    code = """
import atexit
def last():
    assert bridge.from_dlpack(array).tolist() == [0, 1, 2, 3, 4, 5]
    assert bridge.to_torch(array).sum().item() == 15
    print("last")
atexit.register(last)
"""
    assert run_python(START + code) == "last\n"


def test_an_interpreter_ends_quietly_while_a_daemon_thread_converts() -> None:
    # Without torch in the thread: its C++ does not survive the way in which Python ends threads.
    code = """
def work():
    while True:
        bridge.from_dlpack(array)[1:].numpy()
        bridge.from_dlpack(memoryview(array)).__dlpack__()
threading.Thread(target=work, daemon=True).start()
import time
time.sleep(0.2)
print("done")
"""
    assert run_python(START + code) == "done\n"
