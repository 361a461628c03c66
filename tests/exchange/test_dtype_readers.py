# SPDX-License-Identifier: Apache-2.0
"""`x.dtype`, as the code of a library reads it, and what libraries do with it."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from bridge.exchange.dtype_readers import reader_kind


def read_in(module: str, x: Any, expression: str = "x.dtype") -> Any:
    """Return what code of a module of this name reads."""
    names = vars(types.ModuleType(module)).copy()
    names["x"] = x
    return eval(expression, names)


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("torch", "torch"), ("torch.nn.modules.rnn", "torch"), ("kornia.enhance", "torch"),
        ("safetensors.torch", "torch"), ("safetensors.numpy", "numpy"), ("onnx.helper", "numpy"),
        ("safetensors", ""), ("torchx", ""), ("mine.torch", ""), ("__main__", ""), ("bridge", ""),
    ],
)  # fmt: skip
def test_a_reader_gets_the_dtype_of_its_library(module: str, kind: str) -> None:
    assert reader_kind(module) == kind


@pytest.mark.parametrize("make", [at.ones, lambda n: caffe2.Tensor(at.ones(n))])
def test_a_library_reads_its_own_type(make: Any) -> None:
    x = make(2)
    assert read_in("torch.nn.mine", x) is torch.float32
    assert read_in("pandas.core", x) == np.dtype("float32")
    assert type(read_in("pandas.core", x)) is type(np.dtype("float32"))
    assert read_in("mine", x) is c10.float32
    for module in ("torch.nn.mine", "pandas.core", "mine"):
        assert read_in(module, x, "x.dtype()") is c10.float32


def test_types_that_a_library_lacks_are_the_bridges() -> None:
    assert read_in("torch.nn", at.zeros(2, "float8_e3m4")) is c10.float8_e3m4
    assert read_in("numpy", at.zeros(2, "float4_e2m1fn_x2")) is c10.float4_e2m1fn_x2
    assert not read_in("torch.nn", caffe2.Tensor([2], "cpu"))


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers_run_and_differentiate(layer: Any) -> None:
    x = at.randn(5, 2, 4)
    module = layer(4, 3)
    with torch.no_grad():
        np.testing.assert_allclose(module(x)[0].numpy(), module(x.to_torch())[0].numpy())
    module(x)[0].sum().backward()
    assert module.weight_ih_l0.grad is not None


@pytest.mark.parametrize("name", ["amax", "argmin", "cumsum", "mean", "median", "prod", "sum"])
def test_masked_operations_agree_with_torch(name: str) -> None:
    x = at.randn(3, 4)
    run = getattr(torch.masked, name)
    expected = run(x.to_torch(), 1, mask=x.to_torch() > 0)
    np.testing.assert_array_equal(run(x, 1, mask=x > 0).numpy(), expected.numpy())


def test_torchmetrics_computes_the_same() -> None:
    torchmetrics = pytest.importorskip("torchmetrics")
    predictions, targets = at.rand(8), at.rand(8)
    for metric in (torchmetrics.MeanSquaredError(), torchmetrics.PearsonCorrCoef()):
        metric.update(predictions, targets)
        expected = type(metric)()
        expected.update(predictions.to_torch(), targets.to_torch())
        assert metric.compute().item() == expected.compute().item()


def test_kornia_computes_the_same() -> None:
    kornia = pytest.importorskip("kornia")
    images, numbers = at.rand(1, 3, 4, 4), torch.tensor([0.5, 0.4, 0.3])
    found = kornia.enhance.normalize(images, numbers, numbers)
    expected = kornia.enhance.normalize(images.to_torch(), numbers, numbers)
    np.testing.assert_array_equal(np.asarray(found), expected.numpy())


def test_onnx_keeps_values_and_layout() -> None:
    numpy_helper = pytest.importorskip("onnx.numpy_helper")
    x = at.randn(2, 3)
    np.testing.assert_array_equal(numpy_helper.to_array(numpy_helper.from_array(x, "x")), x.numpy())
    t = numpy_helper.to_array(numpy_helper.from_array(x.t(), "x"))
    np.testing.assert_array_equal(t, x.t().numpy())


def test_zarr_stores_the_values() -> None:
    zarr = pytest.importorskip("zarr")
    x = at.randn(2, 3)
    np.testing.assert_array_equal(zarr.array(x)[:], x.numpy())


def test_safetensors_saves_contiguous_tensors_and_refuses_others() -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    for dtype in ("float32", "int8", "complex64", "bool"):
        x = at.ones(2, 3).to(dtype)
        np.testing.assert_array_equal(safetensors.load(safetensors.save({"a": x}))["a"], x.numpy())
    with pytest.raises(BufferError, match="contiguous"):  # it goes by the address alone
        safetensors.save({"a": at.ones(2, 3).t()})


def test_pandas_takes_tensors_as_values() -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([1.0, 2.0, 3.0])
    assert column.replace(at.tensor([1.0, 2.0]), 0.0).tolist() == [0, 0, 3]
    assert column.replace(at.tensor(1.0), at.tensor(5.0)).tolist() == [5, 2, 3]
    frame = pandas.DataFrame({"a": at.arange(3)})
    assert frame.replace(at.tensor([1]), at.tensor([9]))["a"].tolist() == [0, 9, 2]
