# SPDX-License-Identifier: Apache-2.0
"""A module's tape: outputs of their own, changed parameters, other inputs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import caffe2
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def drawn(seed: int, *sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def chain() -> Any:
    """Return a module of kernels, a torch call with a new result, a view, and an output twice."""
    workspace.FeedBlob("w", drawn(1, 4, 6).numpy())
    workspace.FeedBlob("b", drawn(2, 4).numpy())
    net = core.Net("chain")
    net.FC(["x", "w", "b"], "h")
    net.Relu("h", "h")
    net.Sigmoid("h", "s")
    net.Transpose("s", "t")
    net.MatMul(["s", "t"], "m")
    net.Softmax("m", "p")
    net.Dropout("p", ["p", "mask"], is_test=1)
    return caffe2.to_module(net, inputs=["x"], outputs=["h", "p"])


def by_hand(module: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    h = torch.addmm(module.get_blob("b"), x, module.get_blob("w").t()).relu()
    s = h.sigmoid()
    return h.detach(), (s @ s.t()).softmax(1).detach()


def ready(module: Any, *inputs: Any) -> Any:
    """Call the module until it plays a tape."""
    for _ in range(3):
        module(*inputs)
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):  # before torch 2.10 the functions run
        parameters = [module.get_blob(name) for name in module._keys]
        assert module._tapes._latest([*inputs, *parameters]) is not None
    return module


def check(module: Any, x: torch.Tensor) -> None:
    torch.testing.assert_close(module(x), by_hand(module, x))


def test_a_taped_module_computes_new_values_in_any_memory() -> None:
    x = drawn(0, 3, 6)
    module = ready(chain(), x)
    check(module, x)
    for seed in range(5):
        check(module, drawn(seed, 3, 6))
    x.zero_()  # the same memory, other values
    check(module, x)
    x.resize_(3, 7).resize_(3, 6)
    check(module, x.normal_(generator=torch.Generator().manual_seed(9)))


HOLDERS: list[Callable[[torch.Tensor], Any]] = [
    lambda y: y,
    lambda y: y.view(-1),
    lambda y: y.untyped_storage(),
    lambda y: y.numpy(),
    torch.utils.dlpack.to_dlpack,
    bridge.from_dlpack,
    lambda y: caffe2.Tensor(bridge.from_dlpack(y)),
    np.from_dlpack,
    lambda y: y.detach().requires_grad_().exp(),
    lambda y: y.requires_grad_().exp(),
    lambda y: memoryview(y.numpy()),
    lambda y: torch.nn.Parameter(y),
]


def bytes_of(address: int, count: int) -> bytes:
    return ctypes.string_at(address, count)


@pytest.mark.parametrize("hold", HOLDERS)
def test_outputs_that_are_held_somehow_are_never_written_again(hold: Callable[..., Any]) -> None:
    module = ready(chain(), drawn(0, 3, 6))
    outputs = module(drawn(1, 3, 6))
    places = [(y.data_ptr(), y.nbytes) for y in outputs]
    held = [hold(y) for y in outputs]
    before = [bytes_of(*place) for place in places]
    del outputs
    for seed in range(2, 6):
        check(module, drawn(seed, 3, 6))
    assert [bytes_of(*place) for place in places] == before
    del held


CHANGES: list[Callable[[torch.Tensor], Any]] = [
    lambda y: y.resize_(100, 100),
    lambda y: y.resize_(0),
    lambda y: y.share_memory_(),
    lambda y: y.untyped_storage().resize_(0),
    lambda y: y.untyped_storage().resize_(4),
    lambda y: y.set_(torch.zeros(2)),
    lambda y: y.t_(),
    lambda y: y.zero_(),
    lambda y: setattr(y, "data", torch.zeros(1)),
    lambda y: y.requires_grad_(),
]


@pytest.mark.parametrize("change", CHANGES)
def test_outputs_may_be_changed_by_whoever_has_them(change: Callable[..., Any]) -> None:
    module = ready(chain(), drawn(0, 3, 6))
    for seed in range(4):
        h, p = module(drawn(seed, 3, 6))
        change(h)
        change(p)
        if seed % 2:
            del h, p
        check(module, drawn(seed + 10, 3, 6))


def test_parameters_with_other_memory_are_noticed() -> None:
    x = drawn(0, 3, 6)
    module = ready(chain(), x)
    module.get_blob("w").data = drawn(5, 4, 6)
    check(module, x)
    module._parameters["w"] = torch.nn.Parameter(drawn(6, 4, 6))
    check(module, x)
    with torch.no_grad():
        module.get_blob("w").mul_(2)
    check(module, x)
    workspace.FeedBlob("b", drawn(7, 4).numpy())
    check(module, x)
    module.load_state_dict({"w": drawn(8, 4, 6), "b": drawn(9, 4)})
    check(module, x)
    module.get_blob("w").data = drawn(5, 6, 4).t()  # not row-major
    check(module, x)
    module.double()
    check(module, x.double())


def test_inputs_that_the_tape_cannot_take() -> None:
    x = drawn(0, 3, 6)
    module = ready(chain(), x)
    check(module, drawn(1, 6, 3).t())
    check(module, drawn(1, 5, 6))
    check(module, drawn(1, 3, 12)[:, ::2])
    check(module, torch._neg_view(x))
    torch.testing.assert_close(module(x.numpy()), by_hand(module, x))
    torch.testing.assert_close(module(x=x), by_hand(module, x))
    wanted = drawn(2, 3, 6).requires_grad_()
    module(wanted)[1].square().sum().backward()
    assert wanted.grad is not None
    assert bool(wanted.grad.abs().sum() > 0)
    subclass = x.as_subclass(type("Mine", (torch.Tensor,), {}))
    torch.testing.assert_close(module(subclass), by_hand(module, x), check_device=False)
    batched = torch.vmap(lambda one: module(one)[0])(drawn(3, 2, 3, 6))
    torch.testing.assert_close(batched[1], by_hand(module, drawn(3, 2, 3, 6)[1])[0])
    check(module, x)


def test_two_sizes_in_turn_and_more() -> None:
    module = chain()
    for turn in range(40):
        check(module, drawn(turn, (3, 5)[turn // 8 % 2], 6))
    for turn in range(40):
        check(module, drawn(turn, 1 + turn % 6, 6))
        check(module, drawn(turn, 1 + turn // 6, 6))


def test_threads_have_outputs_of_their_own() -> None:
    module = ready(chain(), drawn(0, 3, 6))
    failed: list[BaseException] = []

    def call(seed: int) -> None:
        try:
            for turn in range(50):
                check(module, drawn(seed * 100 + turn, 3, 6))
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_taped_module_computes_the_same_in_modes_of_torch() -> None:
    x = drawn(0, 3, 6)
    module = ready(chain(), x)
    with torch.inference_mode():
        found = module(x)
        torch.testing.assert_close(found, by_hand(module, x))
    with torch.device("meta"):
        found = module(x)
    torch.testing.assert_close(found, by_hand(module, x))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        module(x)
    check(module, x)


def test_a_blob_that_several_operators_write() -> None:
    net = core.Net("rewritten")
    net.Relu("x", "a")
    net.Negative("a", "b")
    net.Sigmoid("x", "a")
    net.Add(["a", "b"], "a")
    net.Sub(["a", "x"], "c")
    module = caffe2.to_module(net, inputs=["x"], outputs=["a", "b", "c"])
    x = drawn(0, 4, 4)
    ready(module, x)
    for seed in range(4):
        x = drawn(seed, 4, 4)
        a = x.sigmoid() - x.relu()
        torch.testing.assert_close(module(x), (a, -x.relu(), a - x))


def test_one_result_is_two_outputs() -> None:
    net = core.Net("twice")
    net.GatherPadding(["x", "lengths"], ["before", "after"], padding_width=0)
    module = caffe2.to_module(net, inputs=["x", "lengths"], outputs=["before", "after"])
    for _ in range(4):
        found = module(torch.ones(4, 2), torch.tensor([1, 3], dtype=torch.int32))
        assert [one.tolist() for one in found] == [0, 0]


def test_it_is_random_where_the_operators_are() -> None:
    net = core.Net("random")
    net.Dropout("x", ["y", "mask"], ratio=0.5, is_test=0)
    module = ready(caffe2.to_module(net, inputs=["x"], outputs=["y", "mask"]), torch.ones(8, 8))
    torch.manual_seed(3)
    first = [module(torch.ones(8, 8)) for _ in range(3)]
    torch.manual_seed(3)
    workspace.FeedBlob("x", torch.ones(8, 8))
    for y, mask in first:
        workspace.RunNetOnce(net)
        torch.testing.assert_close(workspace.FetchTorch("y"), y)
        torch.testing.assert_close(workspace.FetchTorch("mask"), mask)
    assert not torch.equal(first[0][0], first[1][0])
