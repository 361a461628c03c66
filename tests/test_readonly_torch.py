# SPDX-License-Identifier: Apache-2.0
"""``to_torch(x, readonly=True)``: a torch tensor on read-only memory that refuses to be written."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import bridge
from bridge import c10, caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import workspace

VALUES = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def frozen() -> Iterator[Any]:
    """Return a read-only array, which has its values when the test ends."""
    array = VALUES.copy()
    array.flags.writeable = False
    yield array
    assert np.array_equal(array, VALUES)


@pytest.fixture
def x(frozen: Any) -> torch.Tensor:
    """Return a read-only tensor of the array's memory."""
    return bridge.to_torch(frozen, readonly=True)


ONES = torch.ones(2, 3)


def setitem(x: Any) -> None:
    x[0, 1] = 5


def masked_setitem(x: Any) -> None:
    x[x > 2] = 5


def iadd(x: Any) -> None:
    x += 1


def step(optimizer: type, **options: Any) -> Callable[[Any], None]:
    """Return a function that makes one step of an optimizer on a parameter."""

    def run(x: Any) -> None:
        parameter = torch.nn.Parameter(x)
        parameter.grad = torch.ones_like(parameter)
        optimizer([parameter], lr=0.1, **options).step()

    return run


def train_batch_norm(x: Any) -> None:
    functional.batch_norm(torch.randn(4, 3), x[0], x[1], training=True)


def in_backward(x: Any) -> None:
    y = torch.ones(2, 3, requires_grad=True)
    z = y * 2
    z.register_hook(lambda grad: x.add_(grad))
    z.sum().backward()


def data_of_another(x: Any) -> None:
    y = torch.nn.Parameter(torch.zeros(2, 3))
    y.data = x
    y.detach().fill_(0)


WRITES: dict[str, Callable[[Any], object]] = {
    "add_": lambda x: x.add_(1),
    "unbound": lambda x: torch.Tensor.add_(x, 1),
    "op": lambda x: torch.ops.aten.add_.Tensor(x, ONES),
    "operator": iadd,
    "item": setitem,
    "mask": masked_setitem,
    "out": lambda x: torch.add(ONES, ONES, out=x),
    "out of two": lambda x: torch.max(ONES, 0, out=(x[0], torch.empty(3, dtype=torch.int64))),
    "copy_": lambda x: x.copy_(ONES),
    "index_put_": lambda x: x.index_put_((torch.tensor([0]),), torch.tensor(1.0)),
    "scatter_": lambda x: x.scatter_(0, torch.zeros(1, 3, dtype=torch.int64), ONES),
    "set_": lambda x: x.set_(torch.ones(2)),
    "set_ of another": lambda x: torch.empty(0).set_(x),
    "resize_": lambda x: x.resize_(8),
    "apply_": lambda x: x.apply_(lambda value: 0),
    "share_memory_": lambda x: x.share_memory_(),
    "function": lambda x: functional.relu(x, inplace=True),
    "dropout": lambda x: functional.dropout(x, inplace=True),
    "init": lambda x: torch.nn.init.normal_(x),
    "orthogonal": lambda x: torch.nn.init.orthogonal_(x),
    "foreach": lambda x: torch._foreach_add_([torch.zeros(1), x], 1),
    "running statistics": train_batch_norm,
    "embedding": lambda x: functional.embedding(torch.tensor([0]), x, max_norm=0.1),
    "clip_grad": lambda x: torch._foreach_mul_([x], 0.5),
    "view": lambda x: x.view(-1).fill_(0),
    "row": lambda x: x[0].zero_(),
    "transposed": lambda x: x.t().mul_(2),
    "expanded": lambda x: x[:, :1].expand(2, 5).zero_(),
    "as_strided": lambda x: x.as_strided((3,), (1,), 1).zero_(),
    "split": lambda x: x.split(1)[1].zero_(),
    "unbind": lambda x: next(iter(x)).zero_(),
    "detached": lambda x: x.detach().zero_(),
    "data": lambda x: x.data.zero_(),
    "alias": lambda x: torch.ops.aten.alias(x).zero_(),
    "unsafe view": lambda x: torch.ops.aten._unsafe_view(x, [6]).zero_(),
    "bits": lambda x: x.view(torch.int32).zero_(),
    "contiguous": lambda x: x.contiguous().zero_(),
    "to": lambda x: x.to("cpu").zero_(),
    "copied reference": lambda x: copy.copy(x).zero_(),
    "parameter": lambda x: torch.nn.Parameter(x).data.zero_(),
    "storage": lambda x: x.untyped_storage().fill_(0),
    "storage item": lambda x: x.untyped_storage().__setitem__(0, 1),
    "storage copy_": lambda x: x.untyped_storage().copy_(ONES.untyped_storage()),
    "typed storage": lambda x: x.storage().fill_(0),
    "no_grad": lambda x: torch.no_grad()(lambda: x.add_(1))(),
    "inference_mode": lambda x: torch.inference_mode()(lambda: x[0].add_(1))(),
    "vmap": lambda x: torch.vmap(lambda row: row.add_(1))(x),
    "func.grad": lambda x: torch.func.grad(lambda v: (v * x.mul_(2)).sum())(ONES),
    "compiled": lambda x: torch.compile(lambda v: v.add_(1), backend="eager")(x),
    "compiled view": lambda x: torch.compile(lambda v: v[0].add_(1), backend="aot_eager")(x),
    "in backward": in_backward,
    "SGD": step(torch.optim.SGD),
    "SGD foreach": step(torch.optim.SGD, foreach=True),
    "SGD fused": step(torch.optim.SGD, fused=True),
    "Adam": step(torch.optim.Adam),
    "Adam foreach": step(torch.optim.Adam, foreach=True),
    "AdamW fused": step(torch.optim.AdamW, fused=True),
    "RMSprop": step(torch.optim.RMSprop),
    "Adagrad": step(torch.optim.Adagrad),
    "bridge view": lambda x: bridge.from_dlpack(x).fill_(0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_refuses_to_be_written(x: torch.Tensor, write: Callable[[Any], object]) -> None:
    torch.manual_seed(0)
    with pytest.raises(EnforceNotMet, match="read-only"):
        write(x)


def methods() -> list[str]:
    """Return the names of torch.Tensor's methods that work in place."""
    return [
        name
        for name in dir(torch.Tensor)
        if name.endswith("_") and not name.endswith("__") and name != "requires_grad_"
    ]


@pytest.mark.parametrize("name", methods())
def test_refuses_every_method_that_works_in_place(x: torch.Tensor, name: str) -> None:
    with pytest.raises(EnforceNotMet):
        getattr(x[0], name)()


# What stands for an argument of each type of an operator's schema.
ARGUMENTS: dict[str, Any] = {
    "Tensor": torch.ones(2, 3),
    "List[Tensor]": [torch.ones(2, 3)],
    "List[Optional[Tensor]]": [None],
    "int": 0,
    "SymInt": 0,
    "List[int]": [0],
    "List[SymInt]": [0],
    "float": 1.0,
    "List[float]": [1.0],
    "number": 1,
    "Scalar": 1,
    "List[number]": [1],
    "bool": False,
    "List[bool]": [False],
    "str": "",
    "Device": torch.device("cpu"),
    "Storage": torch.ones(2).untyped_storage(),
}


def test_refuses_every_argument_that_an_operator_of_torch_writes(x: torch.Tensor) -> None:
    outcomes: Counter[str] = Counter()
    silent = []
    for name in sorted(set(torch._C._dispatch_get_all_op_names())):
        base, _, overload = name.removeprefix("aten::").partition(".")
        try:
            operator = getattr(getattr(torch.ops.aten, base), overload or "default")
        except (AttributeError, RuntimeError):
            continue
        schema = operator._schema.arguments
        for i, written in enumerate(schema):
            if not name.startswith("aten::") or not (
                written.alias_info and written.alias_info.is_write
            ):
                continue
            values = [ARGUMENTS.get(str(argument.type)) for argument in schema]
            values[i] = [x] if "List" in str(written.type) else x
            positional = [
                v for v, argument in zip(values, schema, strict=True) if not argument.kwarg_only
            ]
            named = {
                argument.name: v
                for v, argument in zip(values, schema, strict=True)
                if argument.kwarg_only
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    operator(*positional, **named)
                    silent.append(base)
                except EnforceNotMet:
                    outcomes["refused"] += 1
                except Exception:  # noqa: BLE001  an argument does not fit: nothing was run
                    outcomes["other"] += 1
            assert np.array_equal(x.numpy(), VALUES), name
    assert outcomes["refused"] > 10 * outcomes["other"]
    # what gives it other memory or flags, and dropout of nothing
    assert set(silent) <= {
        *("set_data", "detach_", "requires_grad_", "retain_grad", "rename_"),
        *("dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"),
    }


def test_a_read_only_tensor_shares_the_memory(x: torch.Tensor, frozen: Any) -> None:
    assert x.data_ptr() == frozen.ctypes.data
    assert x.untyped_storage().data_ptr() == frozen.ctypes.data
    assert bridge.shares_memory(x[1], frozen[1])
    assert bridge.explain(x).readonly is True
    assert bridge.to_torch(x) is x


def test_jax_arrays_are_shared_as_read_only_tensors() -> None:
    jnp = pytest.importorskip("jax.numpy")
    with bridge.no_copy():
        assert bridge.to_torch(jnp.zeros(4), readonly=True, copy=False).tolist() == [0] * 4


def test_memory_that_may_be_written_gives_a_plain_tensor() -> None:
    array = VALUES.copy()
    tensor = bridge.to_torch(array, readonly=True)
    assert type(tensor) is torch.Tensor
    tensor[0, 0] = 7
    assert array[0, 0] == 7
    assert type(bridge.to_torch(array[::-1], readonly=True)) is torch.Tensor
    frozen = array[::-1]
    frozen.flags.writeable = False
    assert type(bridge.to_torch(frozen, readonly=True)) is torch.Tensor  # torch has no such strides
    copied = bridge.to_torch(b"ab", readonly=True, copy=True)
    assert type(copied) is torch.Tensor


READS: dict[str, Callable[[Any], torch.Tensor]] = {
    "sum": lambda x: x.sum(),
    "matmul": lambda x: x @ x.T,
    "stack": lambda x: torch.stack([x, x[[1, 0]]]),
    "linear": lambda x: functional.linear(ONES, x),
    "softmax": lambda x: torch.softmax(x, -1),
    "where": lambda x: torch.where(x > 2, x, -x),
    "double": lambda x: x.double(),
    "clone": lambda x: x.clone(),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "vmap": lambda x: torch.vmap(lambda row: row * 2)(x),
    "grad": lambda x: torch.func.grad(lambda v: (v * v).sum())(x),
    "as a source": lambda x: torch.zeros(2, 3).copy_(x).add_(x),
    "fft": lambda x: torch.fft.rfft(x).abs(),
    "sparse": lambda x: x.to_sparse().to_dense(),
    "sparse values": lambda x: torch.sparse_coo_tensor([[0, 1]], x[:, 0])._values(),
    "compiled": lambda x: torch.compile(lambda v: v * 2 + 1, backend="aot_eager", fullgraph=True)(
        x
    ),
    "collated": lambda x: torch.utils.data.default_collate([x, x]),
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "from_dlpack": torch.from_dlpack,
    "tensor": torch.tensor,
    "batch_norm": lambda x: functional.batch_norm(torch.ones(4, 3), x[0], x[1]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_operations_give_plain_tensors(
    x: torch.Tensor, read: Callable[[Any], torch.Tensor]
) -> None:
    result = read(x)
    assert type(result) is torch.Tensor
    assert torch.equal(result, read(torch.tensor(VALUES)))
    result.detach().zero_()


@pytest.mark.parametrize(
    "read",
    [
        torch.linalg.pinv,
        lambda x: torch.linalg.lstsq(x, x.mT).solution,
        lambda x: torch.linalg.eigh(x @ x.mH).eigenvectors,
        lambda x: x.conj().imag.sum() + x.mH.resolve_conj().sum(),
    ],
)
def test_operations_that_conjugate_inside_give_right_values(
    read: Callable[[Any], torch.Tensor],
) -> None:
    t = torch.randn(4, 4, dtype=torch.complex128, generator=torch.Generator().manual_seed(1))
    array = t.numpy().copy()
    array.flags.writeable = False
    assert torch.allclose(read(bridge.to_torch(array, readonly=True)), read(t))
    assert torch.allclose(read(bridge.from_dlpack(array)).to_torch(), read(t))


def test_a_view_that_a_compiled_function_returns_is_read_only(x: torch.Tensor) -> None:
    view = torch.compile(lambda v: v.view(-1), backend="aot_eager", fullgraph=True)(x)
    assert view.data_ptr() == x.data_ptr()
    with pytest.raises(EnforceNotMet):
        view.zero_()


def test_autograd_differentiates_by_it(x: torch.Tensor) -> None:
    x.requires_grad_()
    (x * x).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, 2 * torch.tensor(VALUES))
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with pytest.raises(BufferError, match="detach"):
        bridge.from_dlpack(x)


def test_is_a_parameter_of_a_module(x: torch.Tensor) -> None:
    module = torch.nn.Linear(3, 2)
    module.load_state_dict({"weight": x, "bias": x[:, 0]}, assign=True)
    assert module.weight.data_ptr() == x.data_ptr()
    module(ONES).sum().backward()
    assert module.weight.grad is not None
    copied = copy.deepcopy(module)
    with torch.no_grad():
        copied.weight.zero_()
    assert type(copied.weight) is torch.nn.Parameter
    buffer = io.BytesIO()
    torch.save(module.state_dict(), buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer)["weight"], torch.tensor(VALUES))
    module.to(torch.float64)
    assert type(module.weight) is torch.nn.Parameter
    assert module.weight.grad is not None
    torch.optim.SGD(module.parameters(), lr=0.1).step()  # on memory of its own now


def test_numpy_and_dlpack_see_it_as_read_only(x: torch.Tensor, frozen: Any) -> None:
    for array in (x.numpy(), np.asarray(x), np.from_dlpack(x), bridge.to_numpy(x)):
        assert array.ctypes.data == frozen.ctypes.data
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert np.asarray(x, dtype=np.float64).flags.writeable
    tensor = bridge.from_dlpack(x)
    assert tensor.readonly
    assert bridge.to_torch(tensor) is x
    assert bridge.to_torch(tensor[0]).data_ptr() != x.data_ptr()  # a copy, which may be written
    with pytest.raises(BufferError):
        x.__dlpack__()  # the old kind of capsule cannot say read-only
    assert x.tolist() == VALUES.tolist()
    assert f"{x[0, 1]:.2f}" == "2.00"


def test_a_blob_of_it_is_read_only(x: torch.Tensor, fresh_workspace: Any) -> None:
    workspace.FeedBlob("x", x)
    assert workspace.FetchTorch("x") is x
    with pytest.raises(EnforceNotMet):
        caffe2.Tensor(bridge.from_dlpack(x)).mutable_data("float32")[0] = 1


def test_other_tensors_do_not_get_its_memory_for_writing(x: torch.Tensor) -> None:
    taken = torch.zeros(2, 3)
    taken.data = x
    assert torch.equal(taken + 0, torch.tensor(VALUES))
    with pytest.raises(RuntimeError):
        taken.zero_()
    with pytest.raises(RuntimeError):
        torch.empty(0).set_(x.untyped_storage()).zero_()
    with pytest.raises(RuntimeError):
        torch.utils.dlpack.to_dlpack(x)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float8_e4m3fn", "complex64"]
)
def test_tensors_of_all_types_refuse_to_be_written(dtype: str) -> None:
    array = np.ones((2, 4)).astype(c10.TypeMeta.Make(dtype).numpy)
    array.setflags(write=False)
    tensor = bridge.to_torch(array, readonly=True)
    with pytest.raises(EnforceNotMet):
        tensor.zero_()
    total = tensor.conj().abs().sum() if dtype == "complex64" else tensor.float().sum()
    assert total == 8


def test_tensors_of_all_sizes_refuse_to_be_written() -> None:
    for sizes in ((), (0,), (2, 0, 3), (1,) * 8):
        array = np.ones(sizes, np.float32)
        array.flags.writeable = False
        tensor = bridge.to_torch(array, readonly=True)
        assert tuple(tensor.shape) == sizes
        with pytest.raises(EnforceNotMet):
            tensor.add_(1)
        with pytest.raises(EnforceNotMet):
            tensor[...] = 5
