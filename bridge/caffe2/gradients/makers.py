# SPDX-License-Identifier: Apache-2.0
"""Gradients that depend on arguments or on the number of inputs; the others are in `table`.

Follows the gradient makers of caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.caffe2.base.data_types import number_of_argument
from bridge.caffe2.definitions.arguments import MakeArgument
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAKERS", "gradient_of"]

MAKERS: dict[str, Callable[[GradientMaker], None]] = {}


def gradient_of(*types: str) -> Callable[[Callable[[GradientMaker], None]], None]:
    """Return a decorator that registers a function as the gradient of these operator types."""

    def register(function: Callable[[GradientMaker], None]) -> None:
        MAKERS.update(dict.fromkeys(types, function))

    return register


# Types whose gradient depends on one argument: its name, its default, and the patterns for a true
# and a false value.
_BY_ARGUMENT: dict[str, tuple[str, int, str, str]] = {
    "AffineChannel": ("is_learnable", 0, "$Gradient g0 i0 i1 > 0 1 2", "$Gradient g0 i1 > 0"),
    "LayerNorm": (
        "elementwise_affine",
        0,
        "$Gradient g0 o0 o1 o2 i0 i1 > 0 1 2",
        "$Gradient g0 o0 o1 o2 i0 > 0",
    ),
    "LSTMUnit": (
        "sequence_lengths",
        1,
        "$Gradient i0 i1 i2 i3 i4 o0 o1 g0 g1 > 0 1 2",
        "$Gradient i0 i1 i2 i3 o0 o1 g0 g1 > 0 1 2",
    ),
    "GRUUnit": (
        "sequence_lengths",
        1,
        "$Gradient i0 i1 i2 i3 o0 g0 > 0 1",
        "$Gradient i0 i1 i2 o0 g0 > 0 1",
    ),
    "LengthsWeightedSum": (
        "grad_on_weights",
        0,
        "$WithMainInputGradient i1 g0 i2 i0 > 0 1",
        "$Gradient i1 g0 i2 > 0",
    ),
    "SparseLengthsWeightedSum": (
        "grad_on_weights",
        0,
        "SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient i1 g0 i3 i0 i2 > 0@2 1",
        "SparseLengthsIndicesInGradientWeightedSumGradient i1 g0 i3 i2 > 0@2",
    ),
}


@gradient_of(*_BY_ARGUMENT)
def _by_argument(maker: GradientMaker) -> None:
    name, default, if_true, if_false = _BY_ARGUMENT[maker.op.type]
    add_pattern(if_true if maker.argument(name, default) else if_false, maker)


@gradient_of("Alias", "Sum")
def _passed_on(maker: GradientMaker) -> None:
    for i in range(len(maker.op.input)):
        maker.set_gradient(i, maker.GO(0))


@gradient_of("EnsureDense")
def _dense(maker: GradientMaker) -> None:
    given = maker.given[0]
    if isinstance(given, GradientSlice):
        maker.add("SparseToDense", [*map(str, given), maker.I(0)], [maker.GI(0)])
    else:
        maker.set_gradient(0, maker.GO(0))


@gradient_of("CopyCPUToGPU", "CopyGPUToCPU")
def _copied_back(maker: GradientMaker) -> None:
    back = {"CopyCPUToGPU": "CopyGPUToCPU", "CopyGPUToCPU": "CopyCPUToGPU"}[maker.op.type]
    given = maker.given[0]
    if isinstance(given, GradientSlice):
        gradient = maker.GI_slice(0)
        maker.add(back, [str(given.indices)], [gradient.indices])
        maker.add(back, [str(given.values)], [gradient.values])
    else:
        maker.add(back, [maker.GO(0)], [maker.GI(0)])


@gradient_of("Cast")
def _cast(maker: GradientMaker) -> None:
    maker.enforce(maker.has_argument("from_type"), "needs argument 'from_type', to cast back")
    to = number_of_argument(maker.argument("to", None), "to")
    back = number_of_argument(maker.argument("from_type", None), "from_type")
    arguments = {"to": back, "from_type": to}
    maker.add("Cast", [maker.GO(0)], [maker.GI(0)], arguments, copied=False)


@gradient_of("Transpose")
def _transpose(maker: GradientMaker) -> None:
    axes = maker.ints("axes")
    operator = maker.add("Transpose", [maker.GO(0)], [maker.GI(0)])
    for argument in operator.arg:
        if argument.name == "axes":
            argument.ints[:] = sorted(range(len(axes)), key=axes.__getitem__)


@gradient_of("Reshape")
def _reshape(maker: GradientMaker) -> None:
    outputs = [maker.GI(0), f"_{maker.I(0)}_grad_dims"]
    maker.add("Reshape", [maker.GO(0), maker.O(1)], outputs, copied=False)


@gradient_of("PrependDim")
def _prepend_dim(maker: GradientMaker) -> None:
    maker.add("MergeDim", [maker.GO(0)], [maker.GI(0)], copied=False)


@gradient_of("Concat", "DepthConcat")
def _concat(maker: GradientMaker) -> None:
    if maker.given[0] is not None:
        add_pattern("Split g0 o1 > *", maker)


@gradient_of("Split", "DepthSplit", "SplitByLengths")
def _split(maker: GradientMaker) -> None:
    parts = [maker.GO(i) for i, given in enumerate(maker.given) if given is not None]
    maker.add("Concat", parts, [maker.GI(0), f"_{maker.I(0)}_grad_dims"])


@gradient_of(*("Conv", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose", "LC", "LC1D", "LC2D", "LC3D"))
def _convolution(maker: GradientMaker) -> None:
    no_bias = len(maker.op.input) == 2
    add_pattern(
        "$Gradient{no_bias=1} i0 i1 g0 > 1 0" if no_bias else "$Gradient i0 i1 g0 > 1 2 0", maker
    )


@gradient_of("DeformConv")
def _deformable(maker: GradientMaker) -> None:
    no_bias = len(maker.op.input) == 3
    add_pattern(
        "$Gradient{no_bias=1} i0 i1 i2 g0 > 1 2 0"
        if no_bias
        else "$Gradient i0 i1 i2 g0 > 1 2 3 0",
        maker,
    )


@gradient_of("Dropout")
def _dropout(maker: GradientMaker) -> None:
    maker.enforce(maker.has_argument("is_test"), "needs argument 'is_test'")
    is_test = maker.argument("is_test", 0)
    add_pattern("DropoutGrad g0 > 0" if is_test else "DropoutGrad g0 o1 > 0", maker)


@gradient_of("SpatialBN")
def _spatial_bn(maker: GradientMaker) -> None:
    maker.enforce(maker.has_argument("is_test"), "needs argument 'is_test'")
    is_test = maker.argument("is_test", 0)
    expected = 1 if is_test else 5
    maker.enforce(len(maker.op.input) == 5, "needs 5 inputs")
    maker.enforce(len(maker.op.output) == expected, f"needs {expected} outputs")
    add_pattern(f"$Gradient i0 i1 g0 {'i3 i4' if is_test else 'o3 o4'} > 0 1 2", maker)


@gradient_of("SequenceMask")
def _sequence_mask(maker: GradientMaker) -> None:
    inputs = [maker.GO(0), *maker.op.input[1:2]]
    operator = maker.add("SequenceMask", inputs, [maker.GI(0)])
    operator.arg.append(MakeArgument("grad", 1))


@gradient_of("AddPadding", "RemovePadding")
def _padding(maker: GradientMaker) -> None:
    inputs = [maker.GO(0)]
    if len(maker.op.input) > 1:
        inputs.append(maker.O(1))
    back = "AddPadding" if maker.op.type == "RemovePadding" else "RemovePadding"
    maker.add(back, inputs, [maker.GI(0)])
    if maker.op.type == "AddPadding" and len(maker.op.input) > 2:
        paddings = [maker.GI(i) for i in range(2, len(maker.op.input))]
        maker.add("GatherPadding", inputs, paddings)


@gradient_of("DotProductWithPadding")
def _dot_product_with_padding(maker: GradientMaker) -> None:
    arguments = {
        "pad_value": maker.argument("pad_value", 0.0),
        "replicate": bool(maker.argument("replicate", 0)),
    }
    inputs = [maker.I(0), maker.I(1), maker.GO(0)]
    maker.add("DotProductWithPaddingGradient", inputs, [maker.GI(0), maker.GI(1)], arguments)


@gradient_of("WeightedSum")
def _weighted_sum(maker: GradientMaker) -> None:
    count = len(maker.op.input)
    wanted = [*range(0, count, 2), *(range(1, count, 2) if maker.argument("grad_on_w", 0) else ())]
    inputs = [maker.GO(0), *maker.op.input]
    maker.add("WeightedSumGradient", inputs, [maker.GI(i) for i in wanted])


@gradient_of("Python", "PythonDLPack")
def _python(maker: GradientMaker) -> None:
    given = maker.ints("grad_output_indices") or range(len(maker.op.output))
    wanted = maker.ints("grad_input_indices") or range(len(maker.op.input))
    inputs = [*maker.op.input, *maker.op.output, *map(maker.GO, given)]
    maker.add(maker.op.type + "Gradient", inputs, [maker.GI(i) for i in wanted])
