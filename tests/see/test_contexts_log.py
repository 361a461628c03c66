# SPDX-License-Identifier: Apache-2.0
"""What an audit writes down: each conversion once, what it copied, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def readonly() -> np.ndarray[Any, Any]:
    array = np.arange(6.0)
    array.flags.writeable = False
    return array


def tensor() -> at.Tensor:
    return bridge.from_dlpack(np.arange(6.0, dtype="float32"))


def held() -> caffe2.Tensor:
    return caffe2.Tensor([2, 3], [1.0, 2, 3, 4, 5, 6], "float32")


# (what is called, its route, how many bytes it copies: None for none)
# fmt: off
CASES: list[tuple[Callable[[], Any], str, int | None]] = [
    (lambda: bridge.from_dlpack(torch.zeros(6)), "from_dlpack: torch.Tensor -> at.Tensor", None),
    (lambda: bridge.from_dlpack(readonly()), "from_dlpack: numpy.ndarray -> at.Tensor", None),
    (lambda: bridge.from_dlpack(tensor()), "from_dlpack: at.Tensor -> at.Tensor", None),
    (lambda: bridge.from_dlpack(b"abc"), "from_dlpack: bytes -> at.Tensor", None),
    (lambda: bridge.from_dlpack(tensor().__dlpack__()), "from_dlpack: DLPack capsule -> at.Tensor",
     None),
    (lambda: bridge.from_dlpack(b"abc", copy=True), "from_dlpack: bytes -> at.Tensor", 3),
    (lambda: bridge.from_dlpack(np.arange(3.0).astype(">f8")),
     "from_dlpack: numpy.ndarray -> at.Tensor", 24),
    (lambda: bridge.from_dlpack(torch.ones(2, dtype=torch.complex64).conj()),
     "from_dlpack: torch.Tensor -> at.Tensor", 16),
    (lambda: bridge.asarray([1, 2]), "asarray: list -> at.Tensor", 16),
    (lambda: bridge.asarray("text"), "asarray: str -> at.Tensor", 4),
    (lambda: bridge.asarray(torch.zeros(6)), "asarray: torch.Tensor -> at.Tensor", None),
    (lambda: bridge.asarray(tensor(), dtype="int64"), "asarray: at.Tensor -> at.Tensor", 48),
    (lambda: bridge.to_torch(tensor()), "to_torch: at.Tensor -> torch.Tensor", None),
    (lambda: bridge.to_torch(readonly()), "to_torch: numpy.ndarray -> torch.Tensor", 48),
    (lambda: bridge.to_torch(np.arange(3)[::-1]), "to_torch: numpy.ndarray -> torch.Tensor", 24),
    (lambda: bridge.to_torch(torch.zeros(6), copy=True), "to_torch: torch.Tensor -> torch.Tensor",
     24),
    (lambda: bridge.to_numpy(held()), "to_numpy: caffe2.Tensor -> numpy.ndarray", None),
    (lambda: bridge.to_numpy(torch.zeros(6), copy=True), "to_numpy: torch.Tensor -> numpy.ndarray",
     24),
    (lambda: bridge.convert(tensor(), "numpy"), "to_numpy: at.Tensor -> numpy.ndarray", None),
    (lambda: bridge.convert(torch.zeros(6), "caffe2"), "convert: torch.Tensor -> caffe2.Tensor",
     None),
    (lambda: bridge.convert(torch.zeros(2, 3).t(), "caffe2"),
     "convert: torch.Tensor -> caffe2.Tensor", 24),
    (lambda: tensor().to_torch(), "to_torch: at.Tensor -> torch.Tensor", None),
    (lambda: held().to_torch(), "to_torch: caffe2.Tensor -> torch.Tensor", None),
    (lambda: held().to_torch(copy=True), "to_torch: caffe2.Tensor -> torch.Tensor", 24),
    (lambda: tensor().numpy(), "numpy: at.Tensor -> numpy.ndarray", None),
    (lambda: held().numpy(), "numpy: caffe2.Tensor -> numpy.ndarray", None),
    (lambda: np.asarray(tensor()), "memoryview: at.Tensor -> buffer", None),
    (lambda: memoryview(held()), "memoryview: caffe2.Tensor -> buffer", None),
    (lambda: bytes(held()), "bytes: caffe2.Tensor -> bytes", 24),
    (lambda: tensor().__array__(), "__array__: at.Tensor -> numpy.ndarray", None),
    (lambda: tensor().__array__("int64"), "__array__: at.Tensor -> numpy.ndarray", 24),
    (lambda: tensor().__array__(copy=True), "__array__: at.Tensor -> numpy.ndarray", 24),
    (lambda: np.from_dlpack(tensor()), "__dlpack__: at.Tensor -> DLPack capsule", None),
    (lambda: held().__dlpack__(copy=True), "__dlpack__: caffe2.Tensor -> DLPack capsule", 24),
    (lambda: at.Tensor(held()), "at.Tensor: caffe2.Tensor -> at.Tensor", None),
    (lambda: caffe2.Tensor(tensor()), "caffe2.Tensor: at.Tensor -> caffe2.Tensor", None),
    (lambda: caffe2.Tensor(held(), "cpu"), "caffe2.Tensor: caffe2.Tensor -> caffe2.Tensor", 24),
    (lambda: tensor().to("float32"), "to: at.Tensor -> at.Tensor", None),
    (lambda: tensor().cpu(), "to: at.Tensor -> at.Tensor", None),
    (lambda: tensor().to("float64"), "to: at.Tensor -> at.Tensor", 48),
    (lambda: tensor().to("cpu", copy=True), "to: at.Tensor -> at.Tensor", 24),
    (lambda: at.tensor(readonly()), "at.tensor: numpy.ndarray -> at.Tensor", 48),
    (lambda: workspace.FeedBlob("x", torch.zeros(6)), "FeedBlob: torch.Tensor -> blob 'x'", None),
    (lambda: workspace.FeedBlob("x", tensor()), "FeedBlob: at.Tensor -> blob 'x'", None),
    (lambda: workspace.FeedBlob("x", readonly()), "FeedBlob: numpy.ndarray -> blob 'x'", 48),
    (lambda: workspace.FeedBlob("x", np.array([b"ab", b"c"])),
     "FeedBlob: numpy.ndarray -> blob 'x'", 4),
]
# fmt: on


@pytest.mark.parametrize(("call", "route", "copied"), CASES, ids=[case[1] for case in CASES])
def test_each_conversion_is_one_record(
    call: Callable[[], Any], route: str, copied: int | None
) -> None:
    call()  # what is made at first use is not what is tested
    at.zeros(1).numpy()
    source = call
    with bridge.audit() as log:
        result = source()
    # what the case makes its tensors of comes first: bridge.from_dlpack, __dlpack__
    record = log.records[-1]
    assert record.route == route
    assert record.copied is (copied is not None)
    assert record.shared is not record.copied
    assert record.how == ("copied" if record.copied else "shared")
    assert bool(record.reason) is record.copied
    assert log.copied_bytes == (copied or 0)
    assert record.nbytes == record.bytes > 0
    assert result is not None


def test_fetches_and_feeds_into_existing_blobs_are_recorded() -> None:
    workspace.FeedBlob("n", readonly())
    workspace.FeedBlob("t", torch.zeros(6))
    blob = workspace.Workspace.current.blobs["n"]
    with bridge.audit() as log:
        workspace.FeedBlob("n", readonly())
        workspace.FetchBlob("n")
        workspace.FetchTorch("t")
        blob.feed(readonly())
        blob.fetch()
        blob.to_torch()
        view = blob.tensor()
        view.data[0] = 1
        view.feed(readonly())
        view.fetch()
        workspace.Workspace.current.feed_blob("n", torch.zeros(2))
        workspace.blobs["n"]
    assert [(record.route, record.nbytes if record.copied else 0) for record in log] == [
        ("FeedBlob: numpy.ndarray -> blob 'n'", 48),
        ("FetchBlob: blob 'n' -> numpy.ndarray", 48),
        ("FetchTorch: blob 't' -> torch.Tensor", 0),
        ("Blob.feed: numpy.ndarray -> blob", 48),
        ("Blob.fetch: blob -> numpy.ndarray", 48),
        ("Blob.to_torch: blob -> torch.Tensor", 0),
        ("BlobTensor.data: caffe2.Tensor -> numpy.ndarray", 0),
        ("BlobTensor.feed: numpy.ndarray -> blob", 48),
        ("BlobTensor.fetch: blob -> numpy.ndarray", 48),
        ("Workspace.feed_blob: torch.Tensor -> blob 'n'", 0),
        ("FetchBlob: blob 'n' -> numpy.ndarray", 8),
    ]


def test_an_audit_does_not_change_feeds_and_fetches() -> None:
    t = torch.arange(6.0)
    with bridge.audit():
        workspace.FeedBlob("t", t)
        assert workspace.FetchTorch("t") is t
        workspace.FeedBlob("n", np.arange(3))
        kept = workspace.FetchTorch("n")
        workspace.FeedBlob("n", np.arange(3) + 1)
    assert kept.tolist() == [1, 2, 3]


def test_operations_and_strings_are_not_recorded() -> None:
    x, c = tensor(), held()
    with bridge.audit() as log:
        x.clone()
        x + 1
        x.float()
        x.tolist()
        c.Clone()
        c.data()
        at.zeros(3)
        at.tensor([1, 2])
        workspace.FeedBlob("s", "text")
        assert workspace.FetchBlob("s") == b"text"
    assert log.records == []


def test_a_conversion_that_fails_leaves_no_record() -> None:
    with bridge.audit() as log:
        with pytest.raises(BufferError):
            bridge.from_dlpack(torch.zeros(2, requires_grad=True))
        with pytest.raises(TypeError):
            bridge.from_dlpack(object())
        with pytest.raises(BufferError):
            bridge.to_torch(readonly(), copy=False)
    assert log.records == []


def test_a_foreign_reader_of_the_exchange_table_is_seen() -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    x = tensor()
    with bridge.audit() as log:
        taken = tvm_ffi.from_dlpack(x)
    assert [record.route for record in log] == ["exchange table: at.Tensor -> DLPack tensor"]
    assert log.copied_bytes == 0
    assert bridge.from_dlpack(taken).data_ptr() == x.data_ptr()


def test_a_copy_by_a_producer_is_recorded() -> None:
    class Copying:
        def __init__(self, capsule: Any = None) -> None:
            self.capsule = capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **kwargs: Any) -> Any:
            return self.capsule or tensor().__dlpack__(max_version=(1, 3), copy=True)

    made_before = Copying(tensor().__dlpack__(max_version=(1, 3), copy=True))
    with bridge.audit() as log:
        bridge.from_dlpack(made_before)
    (record,) = log.records
    assert record[1:] == (True, 24, "its producer returned a copy")

    with bridge.audit() as log:
        bridge.from_dlpack(Copying())
    (record,) = log.records  # what the producer did inside is part of it
    assert record.copied
    assert record.nbytes == 24


def test_an_overriding_method_of_a_subclass_is_called_once() -> None:
    calls = []

    class Mine(caffe2.Tensor):
        def numpy(self) -> Any:
            calls.append(1)
            return super().numpy()

    mine = Mine([2], [1.0, 2.0])
    with bridge.audit() as log:
        mine.numpy()
    assert len(calls) == len(log) == 1


def test_a_log_prints_a_table_and_shows_one_in_notebooks() -> None:
    with bridge.audit() as log:
        bridge.from_dlpack(b"<b>", copy=True)
        bridge.from_dlpack(bytearray(2))
    lines = str(log).splitlines()
    assert lines[0].split() == ["route", "how", "bytes", "reason"]
    words = [" ".join(line.split()) for line in lines]
    assert words[1] == "from_dlpack: bytes -> at.Tensor copied 3 copy=True was asked for"
    assert words[2] == "from_dlpack: bytearray -> at.Tensor shared 2"
    assert lines[3] == "2 conversions, 3 bytes copied"
    assert repr(log) == "<AuditLog: 2 conversions, 3 bytes copied>"
    assert log.shared_bytes == 2
    html = log._repr_html_()
    assert html.count("<tr>") == 3
    assert "-&gt; at.Tensor" in html


def test_a_log_without_records_prints() -> None:
    with bridge.audit() as log:
        pass
    assert log
    assert len(log) == 0
    assert str(log).splitlines()[-1] == "0 conversions, 0 bytes copied"


def test_records_are_a_copy_and_grow() -> None:
    with bridge.audit() as log:
        before = log.records
        bridge.from_dlpack(b"a")
        assert before == []
        assert len(log.records) == 1
    bridge.from_dlpack(b"a")
    assert len(log.records) == 1


def test_copies_for_row_major_frameworks_are_recorded_with_their_reason() -> None:
    pytest.importorskip("jax")
    tf = pytest.importorskip("tensorflow")
    square = np.zeros((4, 4), "float32")
    text = tf.constant(["ab", "c"])
    narrow = np.zeros((4, 4), ml_dtypes.float8_e5m2)
    with bridge.audit() as log:
        bridge.to_jax(square.T)
        bridge.to_jax(bridge.to_jax(square), copy=True)
        bridge.to_tensorflow(square.T)
        bridge.to_tensorflow(text, copy=True)
        bridge.asarray(text)
        bridge.to_tensorflow(narrow)
    calls = [record.route.partition(":")[0] for record in log]
    assert calls.count("to_jax") == 3
    assert calls.count("to_tensorflow") == 3
    reasons = [record.reason for record in log if record.copied]
    assert "row-major" in reasons[0]
    assert any("does not know float8_e5m2" in reason for reason in reasons)
    with bridge.no_copy():
        for call in (
            lambda: bridge.to_jax(square.T),
            lambda: bridge.to_tensorflow(square.T),
            lambda: bridge.to_tensorflow(tf.constant([1.0]), copy=True),
            lambda: bridge.asarray(text),
            lambda: bridge.to_tensorflow(narrow),
        ):
            with pytest.raises(BufferError, match="no_copy"):
                call()
