# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.normalizer``: normalizations of the outputs of layers."""

from __future__ import annotations

from bridge.annotation import Any

__all__ = ["BatchNormalizer", "LayerNormalizer", "Normalizer"]


class Normalizer:
    """Adds normalization of a blob to a model: ``normalizer(model, blob)``, by `_run`."""

    def __call__(self, net: Any, param: Any) -> Any:
        """Add the operators; return the normalized blob."""
        return self._run(net, param)

    def _run(self, net: Any, param: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _run.")


class BatchNormalizer(Normalizer):
    """Calls ``model.BatchNormalization(blob, ...)``."""

    def __init__(self, momentum: float, scale_init_value: float = 1.0) -> None:
        self._momentum = float(momentum)
        self._scale_init_value = float(scale_init_value)

    def _run(self, net: Any, param: Any) -> Any:
        return net.BatchNormalization(
            param, momentum=self._momentum, scale_init_value=self._scale_init_value
        )


class LayerNormalizer(Normalizer):
    """Calls ``model.LayerNormalization(blob, ...)``."""

    def __init__(
        self, epsilon: float, use_layer_norm_op: bool = True, scale_init_value: float = 1.0
    ) -> None:
        self._epsilon = float(epsilon)
        self._use_layer_norm_op = use_layer_norm_op
        self._scale_init_value = float(scale_init_value)

    def _run(self, net: Any, param: Any) -> Any:
        return net.LayerNormalization(
            param,
            epsilon=self._epsilon,
            use_layer_norm_op=self._use_layer_norm_op,
            scale_init_value=self._scale_init_value,
        )
