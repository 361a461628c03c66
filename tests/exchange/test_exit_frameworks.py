# SPDX-License-Identifier: Apache-2.0
"""An interpreter that ends while frameworks hold our memory, and we theirs: quietly, status 0.

Also in Python's development mode, which fills freed memory and reports unraisable errors.
"""

import pytest

from tests.helpers.isolate import run_python
from tests.helpers.routes import is_here

START = """
import os
import warnings
warnings.simplefilter("ignore")           # of the frameworks; ours are errors elsewhere
import atexit, builtins, gc, sys, threading
import numpy as np
import torch
import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace
from tests.helpers.dlpack_producer import ManagedTensor, TensorSpec

array = np.arange(6, dtype=np.float32)
tensor = torch.arange(6.0)
ours = at.arange(6, dtype="float32")

def lent():
    return bridge.from_dlpack(ManagedTensor(TensorSpec.of_array(array), versioned=True).capsule())
"""
IMPORTS = {
    "jax": "import jax.numpy as jnp; theirs = jnp.arange(6.0); to = bridge.to_jax",
    # Its C++ tells its life on standard error when it wakes up, whatever it is told.
    "tensorflow": """
aside, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
os.dup2(nowhere, 2)
import tensorflow as tf
theirs, to = tf.range(6.0), bridge.to_tensorflow
to(ours)
os.dup2(aside, 2)
""",
    "tvm_ffi": "import tvm_ffi; theirs = tvm_ffi.from_dlpack(np.arange(6.0)); "
    "to = tvm_ffi.from_dlpack",
    "torch": "theirs = torch.arange(6.0); to = bridge.to_torch",
}
SCENES = {
    "globals": "kept = [to(ours), bridge.from_dlpack(theirs), to(lent()), to(at.ones(6))]",
    "modules that go late": """
sys.kept = [to(ours), bridge.from_dlpack(theirs)]
builtins.kept = [to(lent()), bridge.from_dlpack(theirs)[1:]]
np.kept = bridge.to_numpy(theirs)
""",
    "a cycle, uncollected": """
gc.disable()
loop = [to(lent()), bridge.from_dlpack(theirs)]
loop.append(loop)
del loop
""",
    "a thread": """
ready = threading.Event()
def wait(never=threading.Event()):
    held = [to(ours), bridge.from_dlpack(theirs), to(lent())]
    ready.set()
    never.wait()
threading.Thread(target=wait, daemon=True).start()
ready.wait()
""",
    "the last handler": """
def last(kept=[to(ours), bridge.from_dlpack(theirs)]):
    assert bridge.from_dlpack(theirs).numel() == 6
    kept.append(to(lent()))
    workspace.FeedBlob("late", kept[1])
atexit.register(last)
""",
    "the workspace": """
workspace.FeedBlob("theirs", bridge.from_dlpack(theirs))
workspace.FeedBlob("ours", ours)
kept = to(workspace.blobs["ours"])
""",
}


@pytest.mark.parametrize("mode", ["", "dev"])
@pytest.mark.parametrize("framework", IMPORTS)
def test_an_interpreter_ends_quietly_while_frameworks_hold_memory(
    framework: str, mode: str
) -> None:
    if framework != "torch" and not is_here(framework):
        pytest.skip(f"{framework} is not installed")
    # All scenes in one interpreter, since a start of TensorFlow takes seconds.
    options = ("-X", mode) if mode else ()
    together = "".join(SCENES.values())
    start = f"{START}\n{IMPORTS[framework]}\n"
    assert run_python(f"{start}{together}\nprint('done')", options=options) == "done\n"
