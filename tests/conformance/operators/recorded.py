# SPDX-License-Identifier: Apache-2.0
"""What the real Caffe2 gave out, read back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .case import Case, cases, recorded_path


class Outcome:
    """What became of a case: `error` at `step`, or `blobs` by name.

    A blob is an array (object arrays of `bytes` for strings), `bytes` for a plain string, or None
    for one that holds something that is not fetched.
    """

    def __init__(self, said: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.fed: int = said["fed"]
        self.error: str | None = said["error"]
        self.step: int = said["step"]
        self.blobs = {name: _blob(kind, arrays.get(name)) for name, kind in said["blobs"].items()}


def _blob(kind: Any, array: Any) -> Any:
    if kind == "native":
        return None
    if kind == "string":
        return array.tobytes()
    if kind == "array":
        return array
    _, shape, texts = kind
    flat = np.empty(len(texts), dtype=object)
    flat[:] = [text.encode("latin-1") for text in texts]
    return flat.reshape(shape)


def outcomes(group: str) -> list[tuple[Case, Outcome]]:
    """Each case of a group with its outcome. Raises KeyError: a case was not recorded."""
    with np.load(recorded_path(group), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    index = json.loads(arrays.pop("index").tobytes())
    paired = []
    for one in cases(group):
        said = index[one.name]
        own = {name: arrays.get(f"{one.name}/{name}") for name in said["blobs"]}
        paired.append((one, Outcome(said, own)))
    return paired
