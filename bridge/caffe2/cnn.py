# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.cnn``: a model with the layers of image nets as methods.

The way to write models before `brew`. Follows caffe2/python/cnn.py, PyTorch 1.8.1.

>>> from bridge.caffe2.cnn import CNNModelHelper
>>> model = CNNModelHelper(order="NCHW", name="cnn_doc")
>>> y = model.Relu(model.Conv("x", "c", dim_in=3, dim_out=8, kernel=3), "y")
>>> [op.type for op in model.net.Proto().op], model.weights
(['Conv', 'Relu'], [BlobReference("c_w")])
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceValueError
from bridge.caffe2 import brew, workspace
from bridge.caffe2.core import DeviceOption
from bridge.caffe2.modeling.model_helper import ModelHelper

__all__ = ["CNNModelHelper"]


def _layer(name: str, *options: str) -> Callable[..., Any]:
    """Return the method that calls a function of brew with options of the model."""

    def add(self: CNNModelHelper, *args: Any, **kwargs: Any) -> Any:
        own = {option: getattr(self, option) for option in options}
        return getattr(brew, name)(self, *args, **own, **kwargs)

    add.__name__ = name
    add.__doc__ = f"Add layers as ``brew.{name}`` does, with the options of the model."
    return add


_CONVOLUTION = ("use_cudnn", "order", "cudnn_exhaustive_search", "ws_nbytes_limit")
_ORDERED = ("order", "use_cudnn")


class CNNModelHelper(ModelHelper):
    """A `ModelHelper` whose methods Conv, FC, MaxPool and others add layers with parameters.

    order: "NCHW" or "NHWC", of all images. use_cudnn, cudnn_exhaustive_search,
    ws_nbytes_limit: arguments of each convolution. The others go to `ModelHelper`.

    Raises EnforceNotMet, also a ValueError: another `order`.
    """

    def __init__(
        self,
        order: str = "NCHW",
        name: str | None = None,
        use_cudnn: bool = True,
        cudnn_exhaustive_search: bool = False,
        ws_nbytes_limit: int | None = None,
        init_params: bool = True,
        skip_sparse_optim: bool = False,
        param_model: ModelHelper | None = None,
    ) -> None:
        if order not in ("NCHW", "NHWC"):
            raise EnforceValueError(
                f"Cannot understand the CNN storage order {order}.",
                "CNNModelHelper",
                condition='order in ("NCHW", "NHWC")',
            )
        scope: dict[str, Any] = {
            "order": order,
            "use_cudnn": use_cudnn,
            "cudnn_exhaustive_search": cudnn_exhaustive_search,
        }
        if ws_nbytes_limit:
            scope["ws_nbytes_limit"] = ws_nbytes_limit
        super().__init__(
            name="CNN" if name is None else name,
            init_params=init_params,
            skip_sparse_optim=skip_sparse_optim,
            param_model=param_model,
            arg_scope=scope,
        )
        self.order = order
        self.use_cudnn = use_cudnn
        self.cudnn_exhaustive_search = cudnn_exhaustive_search
        self.ws_nbytes_limit = ws_nbytes_limit

    ConvNd = _layer("conv_nd", *_CONVOLUTION)
    Conv = _layer("conv", *_CONVOLUTION)
    ConvTranspose = _layer("conv_transpose", *_CONVOLUTION)
    GroupConv = _layer("group_conv", *_CONVOLUTION)
    GroupConv_Deprecated = _layer("group_conv_deprecated", *_CONVOLUTION)
    FC = _layer("fc")
    Dropout = _layer("dropout", *_ORDERED)
    LRN = _layer("lrn", *_ORDERED)
    Softmax = _layer("softmax", "use_cudnn")
    SpatialBN = _layer("spatial_bn", "order")
    SpatialGN = _layer("spatial_gn", "order")
    InstanceNorm = _layer("instance_norm", "order")
    Relu = _layer("relu", *_ORDERED)
    PRelu = _layer("prelu")
    Concat = _layer("concat", "order")
    DepthConcat = _layer("depth_concat", "order")
    Sum = _layer("sum")
    Transpose = _layer("transpose", "use_cudnn")
    Iter = _layer("iter")
    Accuracy = _layer("accuracy")
    MaxPool = _layer("max_pool", *_ORDERED)
    MaxPoolWithIndex = _layer("max_pool_with_index", "order")
    AveragePool = _layer("average_pool", *_ORDERED)
    AddWeightDecay = _layer("add_weight_decay")

    def PadImage(self, blob_in: Any, blob_out: Any, **kwargs: Any) -> None:
        """Add PadImage."""
        self.net.PadImage(blob_in, blob_out, **kwargs)

    @property
    def XavierInit(self) -> tuple[str, dict[str, Any]]:
        """A `weight_init`: XavierFill."""
        return "XavierFill", {}

    @property
    def MSRAInit(self) -> tuple[str, dict[str, Any]]:
        """A `weight_init`: MSRAFill."""
        return "MSRAFill", {}

    @property
    def ZeroInit(self) -> tuple[str, dict[str, Any]]:
        """A `weight_init` or `bias_init`: zeros."""
        return "ConstantFill", {}

    def ConstantInit(self, value: float) -> tuple[str, dict[str, Any]]:
        """Return a `weight_init` or `bias_init`: each element is `value`."""
        return "ConstantFill", {"value": value}

    @property
    def CPU(self) -> Any:
        """The DeviceOption of the CPU."""
        return DeviceOption(0)

    @property
    def GPU(self) -> Any:
        """The DeviceOption of the first GPU."""
        return DeviceOption(workspace.GpuDeviceType, 0)
