# SPDX-License-Identifier: Apache-2.0
"""Arrays as pictures."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import visualize


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module in the place of matplotlib's, which draws nothing."""
    matplotlib: Any = ModuleType("matplotlib")
    matplotlib.pyplot = Mock()
    monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)
    return matplotlib.pyplot


def test_channels_are_moved_without_a_copy() -> None:
    array = np.zeros((2, 4, 5, 3))
    first = visualize.ChannelFirst(array)
    assert first.shape == (2, 3, 4, 5)
    assert visualize.ChannelLast(first).shape == array.shape
    assert np.shares_memory(first, array)


@pytest.mark.usefixtures("pyplot")
def test_show_single_finds_height_and_width() -> None:
    show = visualize.PatchVisualizer().ShowSingle
    assert show(np.zeros(16)).shape == (4, 4)
    assert show(np.zeros(48)).shape == (4, 4, 3)
    assert show(np.zeros((4, 5, 3))).shape == (4, 5, 3)
    for wrong in (np.zeros(7), np.zeros((4, 5, 2))):
        with pytest.raises(EnforceNotMet) as error:
            show(wrong)
        assert isinstance(error.value, ValueError)


def test_show_multiple_lays_out_patches(pyplot: Any) -> None:
    patches = np.arange(12.0).reshape(3, 2, 2)
    image = visualize.PatchVisualizer().ShowMultiple(patches)
    mean = patches.mean()
    expected = [
        [0, 1, mean, 4, 5],
        [2, 3, mean, 6, 7],
        [mean] * 5,
        [8, 9, mean, mean, mean],
        [10, 11, mean, mean, mean],
    ]
    np.testing.assert_allclose(image, expected)
    assert pyplot.imshow.call_args.kwargs["cmap"] == "gray"
    show = visualize.PatchVisualizer(gap=0).ShowMultiple
    assert show(np.zeros((2, 4, 5, 1)), ncols=2).shape == (4, 10)
    assert show(np.zeros((2, 12)), ncols=1).shape == (4, 2, 3)
    with pytest.raises(EnforceNotMet, match="shape isn't expected"):
        show(np.zeros((2, 4, 5, 2)))


def test_show_images_scales_values(pyplot: Any) -> None:
    images = np.array([[[1.0, 5.0]], [[3.0, 3.0]]])
    shown = visualize.PatchVisualizer(gap=0).ShowImages(images, ncols=2)
    np.testing.assert_allclose(shown, [[0.0, 1.0, 0.5, 0.5]])
    assert images.max() == 5.0


def test_show_channels_lays_out_channels(pyplot: Any) -> None:
    visualizer = visualize.PatchVisualizer(gap=0)
    patch = np.arange(6.0).reshape(1, 2, 3)
    np.testing.assert_allclose(visualizer.ShowChannels(patch)[0], [0, 3, 1, 4])
    with pytest.raises(EnforceNotMet, match="isn't correct"):
        visualizer.ShowChannels(np.zeros((2, 2)))


@pytest.mark.parametrize("name", ["ShowSingle", "ShowMultiple", "ShowImages", "ShowChannels"])
def test_nchw_shows_the_picture_of_nhwc(name: str, pyplot: Any) -> None:
    several = name in ("ShowMultiple", "ShowImages")
    array = np.ones((2, 4, 5, 3)) if several else np.ones((4, 5, 3))
    getattr(visualize.NHWC, name)(array)
    first = pyplot.imshow.call_args.args[0]
    getattr(visualize.NCHW, name)(visualize.ChannelFirst(array))
    np.testing.assert_allclose(pyplot.imshow.call_args.args[0], first)


def test_pictures_without_matplotlib_name_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EnforceNotMet, match="pip install matplotlib"):
        visualize.PatchVisualizer().ShowSingle(np.zeros((2, 2)))
