# SPDX-License-Identifier: Apache-2.0
"""CUDA and processes: begun late, of no use after a fork, and gone at the end."""

import pytest

from tests.helpers.isolate import run_python

pytestmark = pytest.mark.cuda

# CUDA's packages warn of each other, and Python of forks among threads.
QUIET = """
import warnings
warnings.simplefilter("ignore")
import os, sys
import numpy, torch
import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace

def in_child(function):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException as error:
            print(repr(error), flush=True)
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
"""

LATE = """
t = torch.arange(3.0)
x = bridge.from_dlpack(t)
assert x.to_torch() is t and x.numpy().tolist() == [0, 1, 2]
workspace.FeedBlob("x", t)
workspace.FeedBlob("y", numpy.ones(2))
workspace.FetchBlob("y")
caffe2.Tensor(x).Clone()
bridge.explain(x)
at.empty(2).fill_(3)
assert not torch.cuda.is_initialized()

def uses_cuda():
    assert x.cuda().add(1).tolist() == [1, 2, 3]
in_child(uses_cuda)     # it works there, since nobody has begun here
assert not torch.cuda.is_initialized()
assert x.cuda().tolist() == [0, 1, 2]
assert torch.cuda.is_initialized()
"""

FORKED = """
there = at.ones(2, device="cuda")
t = torch.ones(2, device="cuda")
x = bridge.from_dlpack(t)
workspace.FeedBlob("x", t)

def refused(call):
    try:
        call()
    except (c10.EnforceNotMet, BufferError) as error:
        assert not isinstance(error, MemoryError), error
        assert "fork" in str(error), error
    else:
        raise AssertionError("CUDA works after a fork")

def of_no_use():
    host = bridge.from_dlpack(torch.ones(2))
    assert host.add(1).tolist() == [2, 2]
    refused(lambda: at.empty(2, device="cuda"))
    refused(lambda: at.empty(2, device="cuda:0"))
    refused(lambda: host.cuda())
    refused(lambda: at.empty(2, c10.pinned_memory(True)))
    refused(lambda: x.clone())
    refused(lambda: caffe2.Tensor(x).Clone())
    for one in (x, caffe2.Tensor(x)):
        refused(lambda: one.__dlpack__())
        refused(lambda: one.__dlpack__(stream=1, max_version=(1, 3)))
        refused(lambda: one.__cuda_array_interface__)
        refused(lambda: one.__arrow_c_device_array__())
    for call in (x.tolist, x.cpu, x[0].item, lambda: workspace.FetchBlob("x"),
                 lambda: workspace.SerializeBlob("x"), lambda: bridge.from_dlpack(t, device="cpu")):
        try:
            call()
        except RuntimeError as error:
            assert "initialization error" in str(error) or "fork" in str(error), error
        else:
            raise AssertionError("the values can be read after a fork")
    # what needs no CUDA works
    assert bridge.from_dlpack(t)[1:].sizes() == (1,)
    assert x.to_torch() is t and workspace.FetchTorch("x") is t
    assert "cuda:0" in repr(x) and "cuda:0" in str(bridge.explain(x))
    assert bridge.shares_memory(x, t)
in_child(of_no_use)
assert (there + x.to_torch()).tolist() == [2, 2]    # and here it works as before
"""

AT_THE_END = """
made = at.ones(1 << 16, device="cuda")
held = [made, made[1:].to_torch(), made.__dlpack__(stream=-1), at.empty(4, c10.pinned_memory(True))]
held.append(held)       # a cycle, left to the end
imported = bridge.from_dlpack(torch.ones(3, device="cuda"))
workspace.FeedBlob("x", imported)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    torch.cuda._sleep(100_000_000)
    made.add(1)
"""


@pytest.mark.parametrize("code", [LATE, FORKED, AT_THE_END], ids=["late", "forked", "at the end"])
def test_processes_begin_cuda_late_and_end_quietly(code: str) -> None:
    run_python(QUIET + code)
