# SPDX-License-Identifier: Apache-2.0
"""The built-in operators: a class per operator type, computed by torch on the memory of the blobs.

| package | operators |
|---|---|
| `base` | no operators: base classes and helpers |
| `elementwise` | functions of one, two or several tensors, activations, casts, their gradients |
| `reductions` | sums, means, norms and extremes over dimensions |
| `movement` | copies, shapes, slices, gathers, scatters, masks, splits, sparse to dense |
| `segments` | rows in segments of given lengths, feature maps, sequences |
| `search` | top k, find, buckets, one-hot, histograms, percentiles |
| `fills` | constants, given values, ranges, random numbers, samples |
| `layers` | matrix products, normalizations, dropout, distances, recurrent units |
| `images` | convolutions, pooling, resizing, padding, im2col |
| `boxes` | boxes, regions of interest, proposals, keypoints |
| `quantized` | rows quantized to few bits, and look-ups in them |
| `training` | losses, metrics, learning rates, optimizers |
| `objects` | blobs that hold objects: counters, maps, mutexes, indexes, statistics, strings |
| `datasets` | cursors, records, queues of blobs, database readers |
| `control` | nets run by operators, files, checks, printing, device copies |

Base classes, in `base`:

| class | for |
|---|---|
| `TorchOperator` | any operator: inputs by `x`, outputs by `out` (written) or `put` (new tensors) |
| `FloatOperator` | float32 by default; `enforce` with a requirement and the values given |
| `elementwise` | a decorator: one function `(op, *inputs, out)` is the operator |
| `AnyTypeOperator` | rearranging elements of any type: `move` with `load` and `store` |
| `FillOperator`, `RandomOperator`, `WindowOperator` | fills, random numbers, image windows |

Add an operator, for example `Double`:

1. In a module of the package where it belongs (all modules are found, a new one as well):

       from bridge.caffe2.execution.registry import register_operator
       from bridge.caffe2.operators.base.float_operator import FloatOperator
       from bridge.caffe2.operators.base.lazy_torch import torch

       @register_operator("Double")
       class Double(FloatOperator):
           \"""Y = 2 * X, elementwise.\"""

           def RunOnDevice(self) -> None:
               x = self.x(0)
               torch.mul(x, 2, out=self.out(0, x.shape))

2. In `definitions/schema_table.py` its numbers of inputs and outputs, and the outputs that may be
   in place: ``Double:1:1:0>0``. For the gradient operator, if it is a new one, a row in
   `definitions/schema_table_gradients.py`.
3. In `gradients/table.py` a pattern (``"Scale{scale=2.0} g0 > 0": "Double"``), or the type among
   those without a gradient.
4. In `tests/conformance/operators/cases_<group>.py` cases, such as ``case("matrix", "Double", x)``,
   and their results in Caffe2 recorded by `record.py`. For an operator that Caffe2 does not have,
   a test in `tests/caffe2/operators` instead.

Check everything before requesting an output, so that a failed operator changes nothing.

The modules are imported, and register their operators, when an operator type is looked up that is
not registered; only those of `base` are imported before. torch is imported when the first operator
runs.
"""
