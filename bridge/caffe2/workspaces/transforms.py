# SPDX-License-Identifier: Apache-2.0
"""Transforms of nets that run in the current workspace.

>>> from bridge.caffe2 import core, workspace
>>> net = core.Net("transformed_doc")
>>> y = net.Conv(["x", "w"], "y", kernel=3)
>>> workspace.ApplyTransform("ConvToNNPack", net.Proto()).op[0].engine
'NNPACK'
>>> init_net = core.Net("transformed_doc_init")
>>> for name in ("x", "w"):
...     _ = init_net.ConstantFill([], name, shape=[1, 1, 3, 3], value=1.0)
>>> workspace.ApplyTransformIfFaster("ConvToNNPack", net.Proto(), init_net.Proto()).op[0].type
'Conv'
>>> workspace.ResetWorkspace()
True

Follows caffe2/core/transform.cc and caffe2/opt/fusion.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.device_option import on_mkldnn
from bridge.caffe2.base.messages import as_message, copied
from bridge.caffe2.core.net_transforms import (
    GRAPH_TRANSFORMS,
    REGISTERED_TRANSFORMS,
    fuse_convolutions,
    new_blob_name,
    only_reader,
)
from bridge.caffe2.definitions.argument_values import ArgsToDict
from bridge.caffe2.workspaces.benchmark import BenchmarkNetOnce
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchTorch
from bridge.caffe2.workspaces.named_nets import RunNetOnce


def ApplyTransform(transform_key: Any, net: Any) -> Any:
    """Return a NetDef with the results of `net`, rewritten by a transform: "ConvToNNPack".

    Raises EnforceNotMet: there is no such transform.
    """
    caller = "ApplyTransform"
    name = transform_key.decode() if isinstance(transform_key, bytes) else str(transform_key)
    transform = REGISTERED_TRANSFORMS.get(name)
    if transform is None:
        raise EnforceNotMet(
            f"Transform not found in registry: {name}; there are "
            f"{', '.join(sorted(REGISTERED_TRANSFORMS))}.",
            caller,
        )
    return _transformed(transform, net, caller)


def ApplyTransformIfFaster(
    transform_key: Any,
    net: Any,
    init_net: Any,
    *,
    warmup_runs: int = 5,
    main_runs: int = 10,
    improvement_threshold: float = 1.01,
) -> Any:
    """Return the NetDef that `ApplyTransform` makes, if it is faster, and `net` otherwise.

    Both nets run in the current workspace, after `init_net`: `warmup_runs` times, and `main_runs`
    times while the time is taken. The new net is faster if the old one takes
    `improvement_threshold` times as long. Raises EnforceNotMet: as `ApplyTransform`, or a net
    fails.
    """
    transformed = ApplyTransform(transform_key, net)
    RunNetOnce(init_net)
    old, *_ = BenchmarkNetOnce(net, warmup_runs, main_runs)
    new, *_ = BenchmarkNetOnce(transformed, warmup_runs, main_runs)
    if old > new * improvement_threshold:
        return transformed
    return as_message(net, "NetDef", "ApplyTransformIfFaster")


def _transformed(transform: Callable[[Any], None], net: Any, caller: str) -> Any:
    """Return a copy of a net, transformed."""
    copy = copied(net, "NetDef", caller)
    transform(copy)
    return copy


def transform_exists(name: str, of_workspace: bool = False) -> bool:
    """Return whether `transform_bytes` knows a transform, of nets or of nets and their blobs."""
    return name in (_OF_WORKSPACE if of_workspace else GRAPH_TRANSFORMS)


def transform_bytes(name: str, net: bytes) -> bytes:
    """Return the bytes of a NetDef after a transform; some write blobs of the current workspace.

    Raises EnforceNotMet: there is no such transform.
    """
    transform = GRAPH_TRANSFORMS.get(name) or _OF_WORKSPACE.get(name)
    if transform is None:
        known = sorted({*GRAPH_TRANSFORMS, *_OF_WORKSPACE})
        raise EnforceNotMet(
            f"There is no transform {name!r}; there are {', '.join(known)}.", "run_transform"
        )
    return bytes(_transformed(transform, net, "run_transform").SerializeToString())


def _fuse_conv_bn(net: Any) -> None:
    """Make each SpatialBN in test mode that alone reads a convolution part of it."""
    _fuse_norms(net, lambda conv: True, ("SpatialBN",))


def optimize_for_mkldnn(net: Any) -> None:
    """Make what follows the convolutions that run on MKL-DNN part of them.

    That is normalizations and AffineChannel, then a sum, and Relu. Follows
    caffe2/opt/optimize_ideep.cc, PyTorch 1.8.1.
    """
    _fuse_norms(net, lambda conv: on_mkldnn(conv.device_option), ("SpatialBN", "AffineChannel"))
    fuse_convolutions(net)


def _fuse_norms(net: Any, takes: Callable[[Any], bool], types: tuple[str, ...]) -> None:
    """Make normalizations that alone read a convolution part of its filter and bias.

    Those are new blobs of the current workspace, as others may use the old ones. takes: whether a
    convolution takes them. types: of the normalizations; a SpatialBN is in test mode.
    """
    for position, conv in enumerate(net.op):
        while conv.type == "Conv" and takes(conv):
            reader = only_reader(net, position)
            if reader is None or net.op[reader].type not in types:
                break
            norm = net.op[reader]
            if norm.type == "SpatialBN" and not ArgsToDict(norm.arg).get("is_test"):
                break
            _fuse_norm(net, conv, norm)
            conv.output[0] = norm.output[0]
            del net.op[reader]


def _fuse_norm(net: Any, conv: Any, norm: Any) -> None:
    """Replace the filter and bias of a convolution by those that include a normalization."""
    factor, shift, *moments = (FetchTorch(name) for name in list(norm.input)[1:5])
    mean: Any = 0.0
    if moments:
        epsilon = float(ArgsToDict(norm.arg).get("epsilon", 1e-5))
        mean, variance = moments
        factor = factor / (variance + epsilon).sqrt()
    weights = FetchTorch(conv.input[1])
    bias = FetchTorch(conv.input[2]) if len(conv.input) > 2 else 0.0
    values = {
        conv.input[1]: weights * factor.view(-1, *[1] * (weights.dim() - 1)),
        conv.input[2] if len(conv.input) > 2 else f"{conv.output[0]}_bias": (bias - mean) * factor
        + shift,
    }
    names = []
    for old, value in values.items():
        name = new_blob_name(net, f"{old}_bn")
        FeedBlob(name, value)
        names.append(name)
        if net.external_input:
            net.external_input.append(name)
    del conv.input[1:]
    conv.input.extend(names)


_OF_WORKSPACE: dict[str, Callable[[Any], None]] = {"FuseConvBN": _fuse_conv_bn}
