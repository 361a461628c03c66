# SPDX-License-Identifier: Apache-2.0
"""Read-only tensors refuse every write, by whatever way, and keep their bytes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import bridge
from bridge import at, c10

from .comparing import read_only

WRITES: dict[str, Callable[[at.Tensor], Any]] = {
    "fill_": lambda x: x.fill_(9),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(at.ones((2, 3))),
    "setitem": lambda x: x.__setitem__(0, 9),
    "setitem all": lambda x: x.__setitem__(..., at.ones((2, 3))),
    "view": lambda x: x.view(6).fill_(9),
    "part": lambda x: x[1, 1:].zero_(),
    "alias": lambda x: x.alias().fill_(9),
    "detach": lambda x: x.detach().fill_(9),
    "wrapper": lambda x: at.Tensor(x).fill_(9),
    "add_": lambda x: x.add_(1),
    "iadd": lambda x: x.__iadd__(1),
    "exp_": lambda x: x.exp_(),
    "uniform_": lambda x: x.uniform_(),
    "scatter_": lambda x: x.scatter_(0, at.zeros((1, 3), "int64"), 9.0),
    "out": lambda x: at.add(at.ones((2, 3)), 1, out=x),
    "torch out": lambda x: torch.add(at.ones((2, 3)), 1, out=x),
    "torch in place": lambda x: torch.relu_(x),
    "masked": lambda x: x.masked_fill_(x > 1, 9.0),
}


# These write without an underscore at the end of their name, or deep inside.
functional = torch.nn.functional
HIDDEN_WRITES: dict[str, Callable[[at.Tensor], Any]] = {
    "relu": lambda x: functional.relu(x, inplace=True),
    "relu positional": lambda x: functional.relu(x, True),
    "elu": lambda x: functional.elu(x, inplace=True),
    "threshold": lambda x: functional.threshold(x, 4.0, 9.0, inplace=True),
    "dropout": lambda x: functional.dropout(x, 0.9, inplace=True),
    "ReLU": lambda x: torch.nn.ReLU(inplace=True)(x),
    "init": lambda x: torch.nn.init.constant_(x, 9.0),
    "batch_norm": lambda x: functional.batch_norm(torch.rand(4, 3), x[0], x[1], training=True),
    "at.batch_norm": lambda x: at.batch_norm(
        at.rand((4, 3)), None, None, x[0], x[1], True, 0.1, 1e-5, False
    ),
    "embedding": lambda x: functional.embedding(torch.tensor([0, 1]), x, max_norm=0.5),
    "foreach": lambda x: torch._foreach_add_([x], 1.0),
    "index_put_": lambda x: torch.index_put_(x, (torch.tensor([0]),), torch.tensor(9.0)),
    "sort": lambda x: torch.sort(-x, out=(x, torch.zeros(2, 3, dtype=torch.int64))),
    "rand": lambda x: torch.rand(2, 3, out=x),
    "movedim": lambda x: x.movedim(0, 1).fill_(9),
    "chunk": lambda x: x.chunk(2)[1].zero_(),
    "unbind": lambda x: x.unbind()[1].zero_(),
    "swapaxes": lambda x: torch.swapaxes(x, 0, 1).zero_(),
    "real": lambda x: at.real(x).fill_(9),
    "set_": lambda x: at.zeros((1,)).set_(x).fill_(9),
    "resize_": lambda x: x.resize_(3).fill_(9),
}


@pytest.mark.parametrize("write", HIDDEN_WRITES.values(), ids=HIDDEN_WRITES)
def test_read_only_tensors_refuse_hidden_writes(write: Callable[[at.Tensor], Any]) -> None:
    tensor, array = read_only()
    before = array.copy()
    with pytest.raises(c10.EnforceNotMet):
        write(tensor)
    assert array.tolist() == before.tolist()


@pytest.mark.parametrize("name", ["batch_norm", "elu", "relu"])
def test_operations_that_do_not_write_take_read_only_tensors(name: str) -> None:
    tensor, array = read_only()
    theirs = torch.from_numpy(array.copy())
    run: Callable[[Any], Any] = {
        "batch_norm": lambda x: functional.batch_norm(torch.ones(4, 3), x[0], x[1]),
        "elu": functional.elu,
        "relu": functional.relu,
    }[name]
    assert run(tensor).tolist() == run(theirs).tolist()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_read_only_tensors_refuse_writes(write: Callable[[at.Tensor], Any]) -> None:
    tensor, array = read_only()
    with pytest.raises(c10.EnforceNotMet):
        write(tensor)
    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert tensor.readonly


def test_read_only_tensors_can_be_read() -> None:
    tensor, array = read_only()
    assert tensor.tolist() == array.tolist()
    assert tensor.data_ptr() == array.ctypes.data
    assert not tensor.numpy().flags.writeable
    assert memoryview(tensor).readonly
    assert (tensor + 1).tolist() == (array + 1).tolist()
    assert tensor.sum().item() == 15
    assert torch.add(tensor, torch.ones(2, 3)).tolist() == (array + 1).tolist()
    writable = tensor.clone()
    writable.fill_(9)
    assert writable.tolist() == [[9.0] * 3] * 2
    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_bytes_are_never_written() -> None:
    data = bytes(range(8))
    tensor = bridge.from_dlpack(data)
    for write in [tensor.zero_, lambda: tensor.add_(1), lambda: tensor.__setitem__(0, 5)]:
        with pytest.raises(c10.EnforceNotMet):
            write()
    assert data == bytes([0, 1, 2, 3, 4, 5, 6, 7])
