# SPDX-License-Identifier: Apache-2.0
"""A segment is a safetensors file: what another reader finds in it."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import c10
from tests.helpers.sharing import printed

safetensors = pytest.importorskip("safetensors")
numpy_names = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
               "float16", "float32", "float64")  # fmt: skip


def entries(shared: bridge.Shared) -> dict[str, Any]:
    """Return the header, read by its specification: a length, and JSON."""
    with open(shared.path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert (8 + length) % 64 == 0
    end = 0
    for _, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert entry["data_offsets"][0] == end, "a hole"
        end = entry["data_offsets"][1]
    assert 8 + length + end == len(data)
    return header  # type: ignore[no-any-return]


def without_gaps(keys: Any) -> list[str]:
    return sorted(key for key in keys if not re.fullmatch(r"\.pad\d+", key))


def test_one_tensor_is_called_tensor() -> None:
    with bridge.share(np.arange(6.0).reshape(2, 3)) as shared:
        with safetensors.safe_open(shared.path, "np") as file:
            assert without_gaps(file.keys()) == ["tensor"]
            assert file.get_tensor("tensor").tolist() == [[0, 1, 2], [3, 4, 5]]
        out = printed(
            "import safetensors, sys\nwith safetensors.safe_open(sys.argv[1], 'np') as file:\n"
            "    print(file.get_tensor('tensor').tolist())",
            shared.path,
        )
        assert out == "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]\n"


def test_leaves_have_their_paths_and_begin_at_multiples_of_64() -> None:
    tree = {
        "model": {"layers": [np.ones(3, "int8"), np.zeros((2, 5), "float16")], 7: np.ones(1)},
        "empty": np.zeros((0, 3)),
        "scalar": np.array(2.5),
    }
    with bridge.share(tree) as shared:
        header = entries(shared)
        keys = ["empty", "model.7", "model.layers.0", "model.layers.1", "scalar"]
        assert without_gaps(header) == keys
        for key, entry in header.items():
            if key in keys:
                assert entry["data_offsets"][0] % 64 == 0
            else:
                assert entry["dtype"] == "U8"
        with safetensors.safe_open(shared.path, "np") as file:
            assert file.get_tensor("model.layers.1").shape == (2, 5)
            assert file.get_tensor("scalar") == 2.5
            assert file.get_tensor("empty").shape == (0, 3)


def test_keys_that_are_taken_or_reserved_get_a_number() -> None:
    tree = {
        "a": {"b": np.full(1, 1)},
        "a.b": np.full(1, 2),
        "a.b#1": np.full(1, 3),
        "__metadata__": np.full(1, 4),
        ".pad0": np.full(1, 5),
        "": np.full(1, 6),
        "\ud800": np.full(1, 7),
        'quo"te\\': np.full(1, 8),
        "é": np.full(1, 9),
        "tensor": np.full(1, 10),
    }
    with bridge.share(tree) as shared:
        with safetensors.safe_open(shared.path, "np") as file:
            found = {key: int(file.get_tensor(key)[0]) for key in without_gaps(file.keys())}
        assert found == {
            "a.b": 1, "a.b#1": 2, "a.b#1#1": 3, "__metadata__#1": 4, ".pad0#1": 5, "": 6,
            "\\ud800": 7, 'quo"te\\': 8, "é": 9, "tensor": 10,
        }  # fmt: skip
        value = bridge.attach(shared.path)
        assert [x.item() for x in (value["a"]["b"], *list(value.values())[1:])] == list(
            range(1, 11)
        )


def test_a_leaf_that_occurs_twice_is_stored_once_under_its_first_path() -> None:
    x = np.arange(3)
    with bridge.share({"first": x, "again": [x, x[:]]}) as shared:
        assert without_gaps(entries(shared)) == ["first"]


@pytest.mark.parametrize("dtype", [row.name for row in c10.type_meta.ROWS])
def test_every_type_comes_back_as_itself(dtype: str) -> None:
    meta = c10.TypeMeta.Make(dtype)
    raw = np.arange(48, dtype="uint8") % 2
    with bridge.Shared.empty(((48 // meta.itemsize,), dtype)) as shared:
        x = shared.value
        from bridge.c10.raw_parts import byte_view

        np.frombuffer(byte_view(x.unsafeGetTensorImpl()), "uint8")[:] = raw
        found = bridge.attach(shared.path)
        assert found.dtype is meta and found.shape == x.shape
        with safetensors.safe_open(shared.path, "np") as file:
            assert without_gaps(file.keys()) == ["tensor"]
            if dtype in numpy_names:
                assert file.get_tensor("tensor").tobytes() == raw.tobytes()
                assert file.get_tensor("tensor").dtype == dtype
        entry = entries(shared)["tensor"]
        begin, end = entry["data_offsets"]
        assert end - begin == 48
