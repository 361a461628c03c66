# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that gather, slice, sum or merge rows; see `makers`."""

from __future__ import annotations

from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.makers import MAKERS, gradient_of
from bridge.caffe2.gradients.patterns import add_pattern

__all__ = ["MAKERS"]


@gradient_of("Gather")
def _gather(maker: GradientMaker) -> None:
    axis = maker.argument("axis", 0)
    if axis:
        add_pattern(f"BatchGatherGradient{{axis={axis}}} i0 i1 g0 > 0", maker)
    elif maker.argument("dense_gradient", 0):
        add_pattern("SparseToDense i1 g0 i0 > 0", maker)
    else:
        maker.set_gradient(0, GradientSlice(maker.I(1), maker.GO(0)))


@gradient_of("GatherByKey")
def _gather_by_key(maker: GradientMaker) -> None:
    """Partition the gradient into the rows of each table that they were gathered from."""
    given = maker.given[0]
    is_sparse = isinstance(given, GradientSlice)
    inputs = [maker.I(0), *(map(str, given) if isinstance(given, GradientSlice) else [maker.GO(0)])]
    outputs = []
    for i in range(1, len(maker.op.input)):
        names = list(maker.GI_slice(i)) if is_sparse else [maker.GI(i)]
        outputs += [f"_{names[0]}_keys", *names]
    arguments = {"pack_first_input": maker.argument("pack_first_input", 0)}
    maker.add("Partition", inputs, outputs, arguments)


@gradient_of(
    *("SortedSegmentWeightedSum", "UnsortedSegmentWeightedSum"),
    *("SparseSortedSegmentWeightedSum", "SparseUnsortedSegmentWeightedSum"),
)
def _segments(maker: GradientMaker) -> None:
    maker.enforce(
        not maker.argument("grad_on_weights", 0), "does not work with argument 'grad_on_weights'"
    )
    if maker.op.type.startswith("Sparse"):
        add_pattern(f"{maker.op.type.removeprefix('Sparse')}Gradient i1 g0 i3 > 0@2", maker)
    else:
        add_pattern("$Gradient i1 g0 i2 > 0", maker)


@gradient_of("Slice")
def _slice(maker: GradientMaker) -> None:
    given = len(maker.op.input) > 1
    add_pattern("$Gradient i0 i1 i2 g0 > 0" if given else "$Gradient i0 g0 > 0", maker)


# For each feature: the number of its inputs, those that the gradient operator reads, the one with a
# gradient, and the output whose gradient is given.
_MERGED: dict[str, tuple[int, tuple[int, ...], int, int]] = {
    "MergeMultiListFeatureTensors": (4, (0, 2), 3, 3),
    "MergeMultiMapFeatureTensors": (5, (0, 2), 4, 4),
    "MergeMultiScalarFeatureTensors": (3, (0,), 2, 2),
    "MergeSingleListFeatureTensors": (3, (0, 2), 1, 3),
    "MergeSingleMapFeatureTensors": (4, (0, 3), 2, 4),
    "MergeSingleScalarFeatureTensors": (2, (1,), 0, 2),
}


@gradient_of(*_MERGED)
def _merged(maker: GradientMaker) -> None:
    count, needed, wanted, given = _MERGED[maker.op.type]
    features = range(0, len(maker.op.input), count)
    maker.add(
        maker.op.type + "Gradient",
        [*(maker.I(at + i) for at in features for i in needed), maker.GO(given)],
        [maker.GI(at + wanted) for at in features],
    )
