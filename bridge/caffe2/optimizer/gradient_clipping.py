# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.modeling.gradient_clipping``: limits of each gradient.

Follows caffe2/python/modeling/gradient_clipping.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import brew, model_helper
>>> from bridge.caffe2.optimizer.gradient_clipping import GradientClipping
>>> model = model_helper.ModelHelper(name="clipping_doc")
>>> y = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
>>> gradients = model.AddGradientOperators([model.AveragedLoss(y, "loss")])
>>> GradientClipping("by_value", clip_max=0.5, clip_min=-0.5)(model.net, grad_map=gradients)
>>> model.net.Proto().op[-1].type
'Clip'
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.definitions.scope import DeviceScope
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.net_modifier import NetModifier
from bridge.caffe2.optimizer.learning_rates import get_param_device

__all__ = ["GradientClipping"]


class GradientClipping(NetModifier):
    """Clips dense gradients, each by its own norm or value; sparse ones stay as they are.

    grad_clip_method: "by_norm" or "by_value". clip_norm_type: "l2_norm" or "l1_norm".
    clip_threshold: the largest norm of a gradient; with `use_parameter_norm` the largest ratio of
    that and the norm of the parameter, which `compute_norm_ratio` computes as a blob
    ``PARAM_norm_ratio``, too. clip_max, clip_min: limits of elements. blobs_to_include: parameters
    whose gradients are clipped; None is all of `grad_map`. blobs_to_exclude: those that are not.

    Raises EnforceNotMet, also an AssertionError: a method or a norm that does not exist.
    """

    L1_NORM = "l1_norm"
    L2_NORM = "l2_norm"
    BY_NORM = "by_norm"
    BY_VALUE = "by_value"
    GRAD_CLIP_METHODS = (BY_NORM, BY_VALUE)
    CLIP_GRADIENT_NORM_TYPES = (L2_NORM, L1_NORM)

    def __init__(
        self,
        grad_clip_method: str,
        clip_norm_type: str | None = "l2_norm",
        clip_threshold: float = 0.1,
        use_parameter_norm: bool = False,
        compute_norm_ratio: bool = False,
        clip_max: float = 1,
        clip_min: float = -1,
        blobs_to_include: Sequence[Any] | None = None,
        blobs_to_exclude: Sequence[Any] | None = None,
    ) -> None:
        for value, known in (
            (grad_clip_method, self.GRAD_CLIP_METHODS),
            (clip_norm_type, (None, *self.CLIP_GRADIENT_NORM_TYPES)),
        ):
            if value not in known:
                raise EnforceAssertionError(
                    f"This method of clipping, {value}, has not been implemented; there are "
                    f"{', '.join(str(one) for one in known)}.",
                    "GradientClipping",
                )
        self.grad_clip_method = grad_clip_method
        self.clip_norm_type = clip_norm_type
        self.clip_threshold = float(clip_threshold)
        self.use_parameter_norm = use_parameter_norm
        self.compute_norm_ratio = compute_norm_ratio
        self.clip_max = float(clip_max)
        self.clip_min = float(clip_min)
        self.blobs_to_include = blobs_to_include
        self.blobs_to_exclude = blobs_to_exclude

    def modify_net(
        self,
        net: Any,
        init_net: Any = None,
        grad_map: Any = None,
        blob_to_device: Any = None,
        modify_output_record: bool = False,
    ) -> None:
        """Add the operators that clip gradients in place.

        Raises EnforceNotMet: a parameter of `blobs_to_include` is not in the net, or `grad_map` is
        missing (also an AssertionError).
        """
        if grad_map is None:
            raise EnforceAssertionError(
                "Pass grad_map, the result of AddGradientOperators.", "GradientClipping"
            )
        for param, grad in self._chosen(net, grad_map).items():
            if isinstance(grad, GradientSlice):
                continue
            device = get_param_device(param, grad, blob_to_device, DeviceOption(0))
            with DeviceScope(device):
                if self.grad_clip_method == self.BY_VALUE:
                    net.Clip([grad], [grad], max=self.clip_max, min=self.clip_min)
                else:
                    self._clip_by_norm(net, param, grad)

    def _chosen(self, net: Any, grad_map: dict[Any, Any]) -> dict[Any, Any]:
        """Return the gradients to clip, by parameter."""
        chosen = {str(param): grad for param, grad in grad_map.items()}
        if self.blobs_to_include is not None:
            for blob in self.blobs_to_include:
                if not net.BlobIsDefined(BlobReference(str(blob))):
                    raise EnforceNotMet(
                        f"param {blob} is not defined in net {net.Name()}", "GradientClipping"
                    )
            chosen = {str(blob): chosen[str(blob)] for blob in self.blobs_to_include}
        for blob in self.blobs_to_exclude or ():
            chosen.pop(str(blob), None)
        return chosen

    def _clip_by_norm(self, net: Any, param: str, grad: Any) -> None:
        norms = [self._norm(net, grad)]
        if self.use_parameter_norm:
            norms.append(self._norm(net, param))
            if self.compute_norm_ratio:
                net.Div(norms, [net.NextScopedBlob(prefix=f"{param}_norm_ratio")])
        net.ClipTensorByScaling([grad, *norms], [grad], threshold=self.clip_threshold)

    def _norm(self, net: Any, blob: Any) -> Any:
        p = 2 if self.clip_norm_type == self.L2_NORM else 1
        norm = net.LpNorm([blob], net.NextScopedBlob(prefix=f"{blob}_l{p}_norm"), p=p)
        # LpNorm with p=2 is the sum of squares.
        return net.Pow([norm], exponent=0.5) if p == 2 else norm
