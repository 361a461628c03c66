# SPDX-License-Identifier: Apache-2.0
"""explain: whose memory a tensor of any framework has, told without a copy or a change."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace
from tests.helpers import alone
from tests.helpers.undefined_tensor import undefined_tensor

pytestmark = pytest.mark.usefixtures("fresh_workspace")

KEYS = {
    *("address", "nbytes", "device", "dtype", "sizes", "strides", "readonly", "owner"),
    *("shared_by", "note", "chain"),
}


def explained(x: Any) -> dict[str, Any]:
    explanation = bridge.explain(x)
    found = explanation.to_dict()
    assert found.keys() == KEYS
    assert json.loads(json.dumps(found)) == found
    text, html = str(explanation), explanation._repr_html_()
    assert repr(explanation) == text
    assert text.startswith(found["chain"][0]["kind"])
    assert html.startswith("<table>")
    for one in found["shared_by"]:
        assert one in text
    return found


def kinds(found: dict[str, Any]) -> list[str]:
    return [link["kind"] for link in found["chain"]]


def test_explain_names_the_torch_tensor_that_owns_the_memory() -> None:
    t = torch.zeros(2, 3)
    x = bridge.from_dlpack(t)
    found = explained(x)
    assert kinds(found) == ["at.Tensor", "TensorImpl", "Storage", "torch.Tensor"]
    assert found["address"] == t.data_ptr()
    assert (found["nbytes"], found["device"], found["dtype"]) == (24, "cpu", "float32")
    assert (found["sizes"], found["strides"]) == ([2, 3], [3, 1])
    assert found["readonly"] is False
    assert found["owner"] == "torch.Tensor"
    assert found["shared_by"] == [f"torch.Tensor of sizes [2, 3] at {t.data_ptr():#x}"]
    assert found["note"] is None


def test_explain_lists_sharers_of_impl_storage_and_memory() -> None:
    a = np.arange(6.0)
    x = bridge.from_dlpack(a)
    same = caffe2.Tensor(x)
    view = x[2:]
    again = bridge.from_dlpack(a[3:])
    apart = bridge.from_dlpack(a.copy())
    workspace.FeedBlob("fed", view)
    found = explained(x)
    assert sorted(found["shared_by"]) == [
        "at.Tensor, overlapping memory",
        "at.Tensor, the same Storage",
        "blob 'fed', the same Storage",
        "caffe2.Tensor, the same TensorImpl",
        "numpy.ndarray of sizes [6], the owner",
    ]
    storage = next(link for link in found["chain"] if link["kind"] == "Storage")
    assert storage["use_count"] == x.storage().use_count()
    assert explained(apart)["shared_by"] == ["numpy.ndarray of sizes [6], the owner"]
    assert len(explained(a)["shared_by"]) == 5
    del same, view, again
    workspace.ResetWorkspace()
    assert explained(x)["shared_by"] == ["numpy.ndarray of sizes [6], the owner"]


def test_explain_says_that_a_torch_storage_is_retained() -> None:
    t = torch.zeros(2)
    x = bridge.from_dlpack(t)
    x.numpy()
    found = explained(x)
    assert found["owner"] == "torch storage: retained, it cannot be resized"
    assert found["shared_by"] == [f"torch.Tensor of sizes [2] at {t.data_ptr():#x}"]


def test_views_that_were_handed_out_are_counted() -> None:
    x = at.zeros(4)
    assert explained(x)["shared_by"] == []
    array = x.numpy()
    capsule = x.__dlpack__()
    (held,) = explained(x)["shared_by"]
    assert held.startswith("2 held by")
    del array
    assert explained(x)["shared_by"][0].startswith("1 held by")
    del capsule
    assert explained(x)["shared_by"] == []
    t = x.to_torch()
    assert explained(x)["shared_by"] == [f"torch.Tensor of sizes [4] at {t.data_ptr():#x}"]
    assert explained(t)["shared_by"] == ["at.Tensor, overlapping memory"]
    del t
    assert explained(x)["shared_by"] == []


def test_explain_names_blobs_and_their_workspaces() -> None:
    t = torch.zeros(3)
    workspace.FeedBlob("here", t)
    workspace.SwitchWorkspace("elsewhere", True)
    workspace.FeedBlob("there", t)
    workspace.SwitchWorkspace("default")
    loose = caffe2.Blob()
    loose.feed(t)
    assert sorted(explained(t)["shared_by"]) == [
        "a blob without a name, overlapping memory",
        "blob 'here', overlapping memory",
        "blob 'there' of workspace 'elsewhere', overlapping memory",
    ]
    blob = workspace.Workspace.current.blobs["here"]
    found = explained(blob)
    assert kinds(found)[:2] == ["bridge.Blob", "caffe2.Tensor"]
    assert len(found["shared_by"]) == 3
    assert kinds(explained(blob.tensor()))[:2] == ["bridge.BlobTensor", "caffe2.Tensor"]
    workspace.SwitchWorkspace("elsewhere")
    workspace.ResetWorkspace()
    workspace.SwitchWorkspace("default")


def test_explain_describes_torch_tensors_of_all_states() -> None:
    grad = torch.ones(2, requires_grad=True)
    found = explained(grad)
    assert found["address"] == grad.data_ptr()
    assert found["chain"][0]["requires_grad"] is True
    assert grad.grad is None
    assert kinds(found) == ["torch.Tensor", "torch storage"]
    conj = torch.ones(2, dtype=torch.complex64).conj()
    assert "lazy conjugate" in explained(conj)["chain"][0]["text"]
    for tensor, word in (
        (torch.zeros(2, device="meta"), "meta"),
        (torch.eye(2).to_sparse(), "sparse"),
        (torch.zeros(2, 2).to_mkldnn(), "mkldnn"),
        (torch.nn.parameter.UninitializedParameter(), "neither sizes"),
    ):
        found = explained(tensor)
        assert found["address"] is None
        assert word in found["note"]
    shrunk = torch.zeros(4)
    shrunk.untyped_storage().resize_(8)
    assert "resized under it" in explained(shrunk)["note"]
    notes = []
    torch.vmap(lambda row: notes.append(explained(row)["note"]) or row)(torch.zeros(2, 2))
    assert "torch.func" in notes[0]


def test_explain_describes_numpy_arrays_of_all_kinds() -> None:
    pairs = np.zeros(3, dtype=[("a", "i1"), ("b", "f8")])
    found = explained(pairs["b"])
    assert found["strides"] == [9 / 8]
    assert found["owner"] == "numpy.ndarray: it owns its memory"
    array = np.arange(6.0)[::-2]
    array.flags.writeable = False
    found = explained(array)
    assert (found["readonly"], found["strides"]) == (True, [-2])
    assert explained(np.array(["a", "bc"]))["dtype"] == "str64"
    assert explained(np.array([None]))["dtype"] == "object"
    assert explained(np.zeros(0))["nbytes"] == 0
    assert explained(np.zeros(2, ">i4"))["dtype"] == ">i4"
    over = np.frombuffer(b"abcd", "u1")
    assert kinds(explained(over)) == ["numpy.ndarray", "bytes"]
    assert kinds(explained(np.float32(3)))[0].startswith("numpy.")


def test_explain_says_why_a_tensor_has_no_memory() -> None:
    assert "undefined" in explained(at.Tensor())["note"]
    found = explained(caffe2.Tensor([2, 3], "cpu"))
    assert (found["sizes"], found["strides"], found["nbytes"]) == ([2, 3], [3, 1], 0)
    assert found["dtype"] is found["address"] is found["owner"] is None
    sized = caffe2.Tensor([2], "cpu")
    sized.mutable_data("float32")
    sized.Resize(100)
    assert "not allocated" in explained(sized)["note"]
    assert explained(sized)["nbytes"] == 400
    text = explained(bridge.asarray(["a", "bc"]))
    assert text["address"] is None
    assert "Python objects" in text["owner"]


def test_explain_names_the_owner_of_memory_from_outside() -> None:
    room = bytearray(16)
    c = caffe2.Tensor([4], "cpu")
    c.ShareExternalPointer(room, "float32")
    found = explained(c)
    assert kinds(found)[2:4] == ["Storage", "ExternalPtr"]
    assert "bytearray" in kinds(found)
    assert "the allocator" in explained(at.zeros(2))["owner"]
    capsule = at.zeros(2).__dlpack__()
    assert explained(capsule)["sizes"] == [2]
    x = bridge.from_dlpack(capsule)
    assert "legacy DLPack tensor" in explained(x)["owner"]
    assert "consumed" in explained(capsule)["note"]
    assert kinds(explained(memoryview(room)[1:])) == ["memoryview", "bytearray"]
    impl = explained(x.unsafeGetTensorImpl())
    assert impl["address"] == explained(x.storage())["address"] == x.data_ptr()


def test_explain_says_that_memory_is_gone() -> None:
    t = torch.zeros(4)
    x = bridge.from_dlpack(t)
    explained(x)
    t.resize_(1000)
    found = explained(x)
    assert found["address"] is None
    assert "resized" in found["note"]
    assert found["shared_by"] == []


def test_names_in_notebooks_are_escaped() -> None:
    workspace.FeedBlob("<script>", torch.zeros(2))
    t = workspace.FetchTorch("<script>")
    explanation = bridge.explain(t)
    assert "<script>" in str(explanation)
    html = explanation._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_to_dict_makes_a_dictionary_of_its_own() -> None:
    explanation = bridge.explain(at.zeros(2))
    explanation.to_dict()["sizes"].append(5)
    explanation.to_dict()["chain"][0]["kind"] = "changed"
    assert explanation.sizes == [2]
    assert explanation.chain[0]["kind"] == "at.Tensor"


@pytest.mark.parametrize("bad", [[1, 2], 3, "text", None, object(), torch, np.ndarray])
def test_objects_that_are_not_tensors_are_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="explain is for tensors"):
        bridge.explain(bad)


def test_a_blob_without_a_tensor_is_refused() -> None:
    blob = caffe2.Blob()
    blob.feed("text")
    with pytest.raises(TypeError, match="string of 4 bytes"):
        bridge.explain(blob)


def test_explain_describes_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    j = jax.numpy.arange(16.0)
    x = bridge.from_dlpack(j)
    found = explained(x)
    assert found["readonly"] is True
    assert found["shared_by"] == [f"jax.Array of sizes [16] at {x.data_ptr():#x}"]
    found = explained(j)
    assert found["address"] == x.data_ptr()
    assert found["shared_by"] == ["at.Tensor, overlapping memory"]
    notes = []
    jax.jit(lambda traced: notes.append(explained(traced)["note"]) or traced)(j)
    assert "traced" in notes[0]
    j.delete()
    assert "deleted" in explained(j)["note"]


def test_explain_describes_arrow_arrays() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert explained(pyarrow.array([1, 2]))["sizes"] == [2]
    found = explained(pyarrow.array([1, None]))
    assert found["address"] is None
    assert found["note"]
    owner = explained(bridge.from_dlpack(pyarrow.array([1, 2])))["owner"]
    assert "pyarrow.Int64Array" in owner
    batch = pyarrow.record_batch({"a": [1, 2], "b": [3, 4]})
    found = explained(batch)
    assert (found["nbytes"], found["sizes"]) == (None, [2, 2])
    assert "2 columns" in found["note"]
    assert explained(batch.column(1))["nbytes"] == 16


def test_an_object_whose_class_is_called_like_a_capsule_is_refused() -> None:
    pretender = type("PyCapsule", (), {})()
    with pytest.raises(TypeError, match="no tensor's memory"):
        bridge.explain(pretender)


def test_explain_names_the_library_that_exported_the_memory() -> None:
    tf = pytest.importorskip("tensorflow")
    assert "tf.Tensor (tensorflow)" in str(bridge.explain(bridge.from_dlpack(tf.ones(2))).owner)

    class Producer:
        def __dlpack__(self, **options: Any) -> Any:
            return np.ones(2).__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return 1, 0

    assert "Producer" in str(bridge.explain(bridge.from_dlpack(Producer())).owner)


def test_a_wrapper_of_tensors_and_other_objects_is_explained() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    class Placed(TwoTensor):  # as a DTensor, which has its mesh beside its local tensor
        mesh = "no tensor"

        def __tensor_flatten__(self) -> Any:
            names, context = super().__tensor_flatten__()
            return [*names, "mesh"], context

    inner = torch.ones(3)
    placed = Placed(inner, inner)
    assert "2 tensors" in str(bridge.explain(placed))
    assert bridge.shares_memory(placed, inner)


def test_an_object_that_hands_out_copies_has_sizes_and_type() -> None:
    class Copies:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.ones((2, 3), np.float32)

    found = bridge.explain(Copies())
    assert (found.sizes, found.dtype, found.nbytes) == ([2, 3], "float32", 24)
    assert found.address is None and "new memory" in str(found.note)


def test_an_undefined_torch_tensor_is_explained_and_shares_nothing() -> None:
    t, left = torch.ones(4), undefined_tensor()
    assert "undefined" in explained(left)["note"]
    assert any("torch.Tensor" in one for one in explained(bridge.from_dlpack(t))["shared_by"])


def test_a_paddle_tensor_that_requires_grad_is_explained() -> None:
    paddle = alone.importorskip("paddle")
    x = paddle.ones([3])
    x.stop_gradient = False
    found = bridge.explain(x)
    assert (found.sizes, found.dtype, found.note) == ([3], "float32", None)
    assert bridge.shares_memory(x, x) and bridge.shares_memory(x.detach(), x)
    assert not bridge.shares_memory(x, paddle.ones([3]))


def test_tests_of_paddle_pass_in_a_process_of_their_own() -> None:
    assert alone.run_alone("paddle", __file__) == 1


@pytest.mark.parametrize("call", ["explain(x)", "shares_memory(x, x)"])
def test_the_first_tensor_of_a_process_may_require_grad(call) -> None:
    script = f"import bridge, torch; x = torch.ones(3, requires_grad=True); bridge.{call}"
    subprocess.run([sys.executable, "-c", script], check=True)
