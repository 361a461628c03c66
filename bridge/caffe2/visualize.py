# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.visualize``: arrays as pictures, by matplotlib.

matplotlib is imported at first use (``pip install matplotlib``). `NHWC` shows arrays whose last
dimension is the channels, `NCHW` those whose channels are before height and width. Follows
caffe2/python/visualize.py, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import visualize
>>> visualize.ChannelFirst(np.zeros((4, 5, 3))).shape
(3, 4, 5)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceValueError

__all__ = ["NCHW", "NHWC", "ChannelFirst", "ChannelLast", "PatchVisualizer"]


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise EnforceNotMet(
            "Showing arrays needs matplotlib: `pip install matplotlib`.", "visualize"
        ) from error
    return pyplot


def ChannelFirst(arr: Any) -> Any:
    """Return a view of an array (..., H, W, C) as (..., C, H, W)."""
    return np.moveaxis(arr, -1, -3)


def ChannelLast(arr: Any) -> Any:
    """Return a view of an array (..., C, H, W) as (..., H, W, C)."""
    return np.moveaxis(arr, -3, -1)


class PatchVisualizer:
    """Shows arrays in the current figure; `gap` is the number of pixels between two of them.

    Gray ones are (H, W) or (H, W, 1), colored ones (H, W, 3); flat ones are taken as squares.
    """

    def __init__(self, gap: int = 1) -> None:
        self.gap = gap

    def ShowSingle(self, patch: Any, cmap: Any = None) -> Any:
        """Show one array; return it with the shape it was shown in.

        Raises EnforceNotMet, also a ValueError: it has neither one channel nor three.
        """
        if patch.ndim == 1:
            patch = patch.reshape(self.get_patch_shape(patch))
        elif patch.ndim > 2 and patch.shape[2] != 3:
            raise EnforceValueError(
                f"The input patch shape isn't correct: {patch.shape}.", "ShowSingle"
            )
        if patch.ndim == 2 and cmap is None:
            cmap = "gray"
        _pyplot().imshow(patch, cmap=cmap)
        return patch

    def ShowMultiple(
        self,
        patches: Any,
        ncols: int | None = None,
        cmap: Any = None,
        bg_func: Callable[[Any], Any] = np.mean,
    ) -> Any:
        """Show the arrays of a list (N, ...) in rows of `ncols`, by default in a square.

        bg_func: the color between them, of all values. Return the picture. Raises EnforceNotMet,
        also a ValueError: they have neither one channel nor three.
        """
        count = len(patches)
        ncols = ncols or math.ceil(math.sqrt(count))
        nrows = math.ceil(count / ncols)
        if patches.ndim == 2:
            patches = patches.reshape((count, *self.get_patch_shape(patches[0])))
        channels = patches.shape[3:]
        if channels == (1,):
            patches, channels = patches.reshape(patches.shape[:-1]), ()
        if channels not in ((), (3,)):
            raise EnforceValueError(
                f"The input patch shape isn't expected: {patches.shape[1:]}.", "ShowMultiple"
            )
        if not channels and cmap is None:
            cmap = "gray"
        height, width = patches.shape[1:3]
        row, column = height + self.gap, width + self.gap
        image = np.ones((row * nrows - self.gap, column * ncols - self.gap, *channels))
        image *= bg_func(patches)
        for number, patch in enumerate(patches):
            top, left = number // ncols * row, number % ncols * column
            image[top : top + height, left : left + width] = patch
        pyplot = _pyplot()
        pyplot.imshow(image, cmap=cmap, interpolation="nearest")
        pyplot.axis("off")
        return image

    def ShowImages(self, patches: Any, *args: Any, **kwargs: Any) -> Any:
        """Show arrays as `ShowMultiple` does, with the values scaled to 0 to 1."""
        patches = patches - np.min(patches)
        scaled = patches / (np.max(patches) + np.finfo(np.float64).eps)
        return self.ShowMultiple(scaled, *args, **kwargs)

    def ShowChannels(
        self, patch: Any, cmap: Any = None, bg_func: Callable[[Any], Any] = np.mean
    ) -> Any:
        """Show each channel of an array (H, W, C) as a gray picture.

        Raises EnforceNotMet, also a ValueError: it does not have three dimensions.
        """
        if patch.ndim != 3:
            raise EnforceValueError(
                f"The input patch shape isn't correct: {patch.shape}.", "ShowChannels"
            )
        return self.ShowMultiple(np.moveaxis(patch, 2, 0), cmap=cmap, bg_func=bg_func)

    def get_patch_shape(self, patch: Any) -> tuple[int, ...]:
        """Return the shape of a flat array as a square, gray or colored.

        Raises EnforceNotMet, also a ValueError: its size is neither a square nor three squares.
        """
        for channels in ((), (3,)):
            pixels = patch.size // 3 if channels else patch.size
            edge = math.isqrt(pixels)
            if edge * edge * (channels or (1,))[0] == patch.size:
                return (edge, edge, *channels)
        raise EnforceValueError(
            f"I can't figure out the patch shape of {patch.size} values.", "get_patch_shape"
        )


_visualizer = PatchVisualizer()


def _shower(name: str, prepare: Callable[[Any], Any]) -> Any:
    """Return the function of a class below, which shows an array and returns nothing."""

    def show(patch: Any, *args: Any, **kwargs: Any) -> None:
        getattr(_visualizer, name)(prepare(patch), *args, **kwargs)

    show.__name__ = name
    show.__doc__ = f"Show an array as ``PatchVisualizer.{name}`` does; return None."
    return staticmethod(show)


class NHWC:
    """Shows arrays whose last dimension is the channels."""

    ShowSingle = _shower("ShowSingle", np.asarray)
    ShowMultiple = _shower("ShowMultiple", np.asarray)
    ShowImages = _shower("ShowImages", np.asarray)
    ShowChannels = _shower("ShowChannels", np.asarray)


class NCHW:
    """Shows arrays whose channels are before height and width."""

    ShowSingle = _shower("ShowSingle", ChannelLast)
    ShowMultiple = _shower("ShowMultiple", ChannelLast)
    ShowImages = _shower("ShowImages", ChannelLast)
    ShowChannels = _shower("ShowChannels", ChannelLast)
