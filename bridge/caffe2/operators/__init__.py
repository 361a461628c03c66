# SPDX-License-Identifier: Apache-2.0
"""The built-in operators, computed by torch on the memory of the blobs.

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
| `distributed` | stores, common worlds, collectives of several processes |
| `control` | nets run by operators, files, checks, printing, device copies |

A module `<topic>_kernels` has loops on the CPU where torch has no fast call: compiled functions of
tensors (those of boxes: of arrays), which write into tensors that are given. Only numbers of
elements are checked. A function asks `base.cpu_kernels.takes_kernels` whether they apply, and calls
them by `run_kernel`.

An operator is a pure function of torch tensors, declared by `operator`; the declaration,
and the facts that the engine derives from it, are in `bridge.caffe2.execution.function_operator`.
Operators on objects (files, queues, counters, nets) are functions of the operator, declared by
`base.torch_operator.procedure`; those with state of their own, as windows over many runs, are
classes derived from `base.torch_operator.TorchOperator`. Their decorators say the numbers of inputs
and outputs, and the gradient.

Add an operator, for example `Double`:

1. In a module of the package where it belongs, which ``python tools/make_operator_index.py`` adds
   to the index:

       import torch
       from torch import Tensor

       from bridge.caffe2.execution.function_operator import Out, operator

       @operator("Double", inplace="0>0", gradient="Double g0 > 0")
       def double(x: Tensor, *, out: Out = None) -> Tensor:
           \"""Y = 2 * X, elementwise.\"""
           return torch.mul(x, 2, out=out)

2. In `tests/conformance/operators/cases_<group>.py` cases, such as ``case("matrix", "Double", x)``,
   and their results in Caffe2 recorded by `record.py`. For an operator that Caffe2 does not have,
   a test in `tests/caffe2/operators` instead.

Rules for the functions:

- Inputs are not written, and nothing is remembered between calls. New tensors name their dtype and
  device (``x.new_zeros(...)``, ``torch.full(..., dtype=x.dtype, device=x.device)``), since the
  caller may have set other defaults.
- `out` is None, or the output's buffer of the right sizes and type, which may be the memory of an
  input that works in place: read all inputs before writing it. Return it.
- Without `out` every call is differentiable and traceable: no elements are read (``item``,
  ``tolist``, ``if tensor``), unless the operator declares ``effects=("values",)``. Checks of
  elements are for `base.checks.has_values` tensors only.
- Wrong inputs and arguments are refused by `base.checks.require` before computing.
- Strings that are only rearranged come as indices. A parameter annotated with `Strings` (of
  `blobs.string_arrays`) has the strings themselves, and a function may return such.

A module is imported, and registers its operators, when the first of them is looked up; `index` says
which module that is. It imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["load", "registry_keys"]


def load(key: str) -> None:
    """Import the module that registers the operator of a registry key, if there is one."""
    from bridge.caffe2.operators.index import modules

    # Some types are declared for an engine only, with their schema.
    module = modules().get(key) or modules().get(f"{key}_ENGINE_DNNLOWP")
    if module is not None:
        import importlib

        importlib.import_module(f"{__name__}.{module}")
    elif "_ENGINE_" in key:
        from bridge.caffe2.operators import engine_names

        engine_names.load(key)


def registry_keys() -> Iterable[str]:
    """Return the registry keys of all built-in operators. Their modules are not loaded."""
    from bridge.caffe2.operators import engine_names
    from bridge.caffe2.operators.index import modules

    return {*modules(), *engine_names.registry_keys()}
