# SPDX-License-Identifier: Apache-2.0
"""share, attach and Shared, in one process and between processes that do not know each other."""

from __future__ import annotations

import array
import os
import re
import signal
import time
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers.sharing import (
    descriptors,
    ended,
    line_of,
    mappings,
    names,
    printed,
    python,
    users_of,
)

MAKER = """
import bridge, numpy as np, sys
shared = bridge.share(np.arange(6, dtype="float32").reshape(2, 3), name=sys.argv[1])
print(shared.path, flush=True)
sys.stdin.readline()
"""


def test_a_name_is_all_that_another_process_needs() -> None:
    array_ = np.arange(6, dtype="float32").reshape(2, 3)
    with bridge.share(array_, name="t-name") as shared:
        out = printed(
            "import bridge\nx = bridge.attach('t-name')\n"
            "print(x.tolist(), x.dtype, x.readonly, type(x) is bridge.at.Tensor)"
        )
        assert out == "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] float32 True True\n"
        shared.value[0, 0] = 7
        out = printed("import bridge; print(bridge.attach('t-name')[0, 0].item())")
        assert out == "7.0\n"
    with pytest.raises(FileNotFoundError):
        bridge.attach("t-name")


def test_the_path_is_enough_too_and_a_shared_is_itself() -> None:
    with bridge.share(at.arange(3)) as shared:
        assert isinstance(shared.path, str)
        out = printed(f"import bridge; print(bridge.attach({shared.path!r}).tolist())")
        assert out == "[0, 1, 2]\n"
        assert bridge.attach(shared) is shared.value is shared.value
        assert bridge.attach(shared.path).data_ptr() == shared.value.data_ptr()


def test_elements_are_copied_once() -> None:
    array_ = np.arange(4.0)
    with bridge.share(array_) as shared:
        array_[:] = -1
        assert shared.value.tolist() == [0, 1, 2, 3]
        assert not bridge.shares_memory(array_, shared.value)
        assert type(shared.value) is at.Tensor and not shared.value.readonly


def test_a_writable_segment_is_written_by_everyone() -> None:
    with bridge.share(np.zeros(3), name="t-writable", writable=True) as shared:
        printed("import bridge; bridge.attach('t-writable').numpy()[:] = 2.5")
        assert shared.value.tolist() == [2.5] * 3
        assert shared.writable is True


def test_a_shared_says_name_size_and_path() -> None:
    with bridge.share(np.zeros((2, 3), "int16"), name="t-says") as shared:
        assert (shared.name, shared.nbytes, shared.writable) == ("t-says", 12, False)
        assert re.fullmatch(r"/proc/\d+/fd/\d+", shared.path)
        text = repr(shared)
        for part in ("t-says", "12", "writable=False", shared.path):
            assert part in text
    assert "closed" in repr(shared)
    with bridge.share(at.ones(1)) as shared:
        assert shared.name is None


def test_a_closed_shared_has_no_value_and_its_tensors_stay() -> None:
    shared = bridge.share(np.arange(3))
    x = shared.value
    shared.close()
    shared.close()
    import pickle

    for use in (lambda: shared.value, lambda: pickle.dumps(shared), lambda: bridge.attach(shared)):
        with pytest.raises(ValueError, match="closed"):
            use()
    with pytest.raises(ValueError, match="closed"), shared:
        pass
    view = x.numpy()[1:]
    del x
    assert view.tolist() == [1, 2]
    assert len(mappings()) == 1


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a b", "ü", "x" * 101, "a\0", "a\n", "é" * 3],
)
def test_names_with_other_characters_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"name|path"):
        bridge.share(at.ones(1), name=name)
    if "/" not in name:
        with pytest.raises(ValueError, match="name"):
            bridge.attach(name)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 100, "...", "-", ".hidden"])
def test_other_names_are_taken(name: str) -> None:
    with bridge.share(at.ones(1), name=name):
        assert bridge.attach(name).tolist() == [1]


def test_a_name_that_is_not_a_string_is_refused() -> None:
    for wrong in (5, b"x", at.ones(1), None):
        with pytest.raises(TypeError):
            bridge.attach(wrong)  # type: ignore[arg-type]
    for wrong in (5, b"x"):
        with pytest.raises(TypeError):
            bridge.share(at.ones(1), name=wrong)  # type: ignore[arg-type]


def test_a_name_in_use_stays_with_its_owner() -> None:
    with bridge.share(at.ones(1), name="t-used"):
        with pytest.raises(FileExistsError, match="t-used"):
            bridge.share(at.zeros(1), name="t-used")
        out = printed(
            "import bridge\n"
            "try: bridge.share(bridge.at.zeros(1), name='t-used')\n"
            "except FileExistsError: print('in use')"
        )
        assert out == "in use\n"
        assert bridge.attach("t-used").tolist() == [1]
    with bridge.share(at.zeros(1), name="t-used"):
        assert bridge.attach("t-used").tolist() == [0]


def test_a_name_goes_with_its_handle() -> None:
    shared = bridge.share(at.ones(1), name="t-deleted")
    x = shared.value
    del shared
    with pytest.raises(FileNotFoundError):
        bridge.attach("t-deleted")
    assert x.tolist() == [1]


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "raise SystemExit"])
def test_a_name_goes_when_its_process_ends(end: str) -> None:
    printed(
        "import bridge, sys\nkept = bridge.share(bridge.at.zeros(1), name='t-ended')\n"
        f"cycle = [kept]; cycle.append(cycle)\n{end}"
    )
    assert names() == []


def test_the_name_of_a_killed_process_is_dead_and_can_be_used_again() -> None:
    maker = python(MAKER, "t-killed")
    path = line_of(maker)
    inode = os.stat(path).st_ino
    x = bridge.attach("t-killed")
    maker.send_signal(signal.SIGKILL)
    maker.communicate()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert users_of(inode) == [os.getpid()]
    for source in ("t-killed", path):
        with pytest.raises(FileNotFoundError):
            bridge.attach(source)
    with bridge.share(at.ones(1), name="t-killed"):
        assert bridge.attach("t-killed").tolist() == [1]
    del x
    assert users_of(inode) == []


def test_a_stopped_maker_is_attached_all_the_same() -> None:
    maker = python(MAKER, "t-stopped")
    line_of(maker)
    maker.send_signal(signal.SIGSTOP)
    try:
        assert bridge.attach("t-stopped").tolist() == [[0, 1, 2], [3, 4, 5]]
    finally:
        maker.send_signal(signal.SIGCONT)
    ended(maker)


def test_attach_waits_for_a_name_until_its_timeout() -> None:
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        bridge.attach("t-never", timeout=0.05)
    assert time.monotonic() - begin >= 0.05
    maker = python("import time; time.sleep(0.3)\n" + MAKER, "t-late")
    x = bridge.attach("t-late", timeout=60)
    assert x.shape == (2, 3)
    ended(maker)
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            bridge.attach("t-never", timeout=wrong)
    with pytest.raises(TypeError, match="timeout"):
        bridge.attach("t-never", timeout="1")  # type: ignore[arg-type]


def test_many_tensors_of_a_segment_have_one_mapping_and_one_descriptor() -> None:
    maker = python(MAKER, "t-once")
    path = line_of(maker)
    found = [bridge.attach("t-once"), bridge.attach(path), bridge.attach("t-once")[1]]
    found += [bridge.share(found[0]).value]
    assert (len(mappings()), len(descriptors())) == (1, 1)
    del found[1:]
    assert len(mappings()) == 1
    found.clear()
    assert (mappings(), descriptors()) == ([], [])
    ended(maker)


# Trees.

Pair = namedtuple("Pair", "left right")


@dataclass
class Batch:
    images: Any
    labels: Any
    step: int


def test_a_tree_keeps_its_kinds_and_its_other_leaves() -> None:
    tree = {
        "ordered": OrderedDict(b=np.arange(2), a=[at.ones(1), (np.zeros(0), None)]),
        "pair": Pair(np.float32(1.5), np.ones(2, "int8")),
        "batch": Batch(np.zeros((1, 2)), np.ones(1, bool), 7),
        "text": "text", 3: b"bytes", "number": 2.5,
    }  # fmt: skip
    with bridge.share(tree) as shared:
        value = shared.value
        assert value["text"] is tree["text"]
        assert value["pair"].left is tree["pair"].left
        for found in (value, bridge.attach(shared.path)):
            assert list(found) == list(tree)
            assert type(found["ordered"]) is OrderedDict and list(found["ordered"]) == ["b", "a"]
            assert type(found["pair"]) is Pair and found["pair"].left == 1.5
            assert found["pair"].right.tolist() == [1, 1]
            assert type(found["batch"]) is Batch and found["batch"].step == 7
            assert found["batch"].labels.tolist() == [True]
            assert found["ordered"]["a"][1][1] is None and found["ordered"]["a"][1][0].shape == (0,)
            assert found[3] == b"bytes" and found["number"] == 2.5
        assert shared.nbytes == 16 + 4 + 0 + 2 + 16 + 1


def test_another_process_gets_a_tree() -> None:
    with bridge.share({"a": [np.arange(3), "s"], "n": None}, name="t-tree"):
        out = printed(
            "import bridge\nx = bridge.attach('t-tree')\n"
            "print(x['a'][0].tolist(), x['a'][0].readonly, x['a'][1], x['n'], list(x))"
        )
    assert out == "[0, 1, 2] True s None ['a', 'n']\n"


def test_one_object_twice_is_one_leaf_and_one_object_again() -> None:
    x = np.arange(4.0)
    with bridge.share([x, {"again": x}]) as shared:
        assert shared.nbytes == 32
        assert shared.value[0] is shared.value[1]["again"]
        found = bridge.attach(shared.path)
        assert found[0] is found[1]["again"]


def test_two_views_of_the_same_elements_are_stored_once() -> None:
    x = np.arange(4.0)
    with bridge.share([x, x[:]]) as shared:
        assert shared.nbytes == 32
        shared.value[0][0] = 9
        assert shared.value[1][0].item() == 9
        assert bridge.attach(shared.path)[1][0].item() == 9


def test_a_container_that_contains_itself_is_refused() -> None:
    tree: list[Any] = [at.ones(1)]
    tree.append(tree)
    with pytest.raises(ValueError, match="itself"):
        bridge.share(tree)


class Unpicklable:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError("no pickle of it")


def test_a_leaf_that_cannot_be_pickled_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError):
        bridge.share({"a": at.ones(1), "b": Unpicklable()}, name="t-unpicklable")
    assert names() == []


@pytest.mark.parametrize("value", [5, 1.5, "text", b"bytes", None, [], {}, [1, "a"], np.float32(1)])
def test_without_a_tensor_there_is_nothing_to_share(value: object) -> None:
    with pytest.raises(TypeError):
        bridge.share(value)


def test_buffers_are_tensors_here() -> None:
    buffers = [bytearray(b"ab"), memoryview(b"cd"), array.array("i", [1, 2])]
    for buffer in buffers:
        with bridge.share(buffer) as shared:
            assert shared.value.tolist() == list(buffer)
    with bridge.share({"x": buffers}) as shared:
        assert [x.tolist() for x in bridge.attach(shared.path)["x"]] == [
            [97, 98],
            [99, 100],
            [1, 2],
        ]


# What is refused.


def test_a_tensor_that_cannot_be_shared_is_refused_with_its_place() -> None:
    import torch

    cases = {
        "detach": torch.ones(1, requires_grad=True),
        "meta": torch.ones(1, device="meta"),
        "sparse": torch.ones(2).to_sparse(),
        "object": np.array([object()]),
        "string": caffe2.Tensor([1], [b"text"]),
        "undefined": caffe2.Tensor(),
        "datetime": np.array(["2020"], "datetime64[D]"),
    }
    for name, x in cases.items():
        with pytest.raises(BufferError):
            bridge.share(x)
        with pytest.raises(BufferError, match=r"at \['deep'\]\[0\]"):
            bridge.share({"ok": at.ones(1), "deep": [x]}, name=f"t-{name}")
    with pytest.raises(BufferError, match="detach"):
        bridge.share(cases["detach"])
    assert names() == []


def test_no_room_is_a_memory_error() -> None:
    for dims in ((1 << 45,), (1 << 60,), (1 << 62,)):
        with pytest.raises(MemoryError):
            bridge.Shared.empty((dims, "uint8"), name="t-big")
    out = printed(
        "import bridge, resource, numpy as np, os\n"
        "x = np.ones(1 << 22)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "for use in (lambda: bridge.share(x), lambda: bridge.share(x.reshape(-1, 2).T)):\n"
        "    try: use()\n"
        "    except MemoryError: print('no room', len(os.listdir('/proc/self/fd')))\n"
    )
    lines = out.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1] and "no room" in lines[0]
    assert names() == []


def test_a_process_without_descriptors_gets_an_error_and_recovers() -> None:
    out = printed(
        "import bridge, os, resource\n"
        "x = bridge.at.zeros(4)\n"
        "with bridge.share(x): pass\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "kept = []\n"
        "try:\n"
        "    while True: kept.append(bridge.share(x))\n"
        "except OSError as error: print(error.errno, len(kept) > 20)\n"
        "kept.pop().close()\n"
        "kept.append(bridge.share(x, name='t-fds'))\n"
        "try: bridge.share(x, name='t-fds')\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    assert out.splitlines()[0] == "24 True"
    assert names() == []


# Again without a copy.


def test_tensors_in_a_segment_are_shared_again_without_a_copy() -> None:
    with bridge.share({"a": np.arange(6.0).reshape(2, 3), "b": np.ones(2)}) as first:
        inside: list[Any] = [
            first,
            first.value,
            first.value["a"],
            first.value["a"][1:],
            first.value["a"].t(),
            first.value["a"].numpy()[:, ::2],
            bridge.to_torch(first.value["b"]),
            [first.value["b"], first.value["a"][0]],
        ]
        for x in inside:
            with bridge.audit() as log:
                again = bridge.share(x, name="t-again")
            assert log.copied_bytes == 0, log
            assert len(mappings()) == 1
            code = (
                "import bridge, numpy as np\n"
                "def told(x):\n"
                "    if isinstance(x, dict): return {k: told(v) for k, v in x.items()}\n"
                "    if isinstance(x, list): return [told(v) for v in x]\n"
                "    return x.tolist()\n"
                "print(told(bridge.attach('t-again')))"
            )
            assert printed(code) == f"{told(x)}\n"
            again.close()
            with bridge.audit() as log:
                bridge.share(x, writable=True).close()
            assert log.copied_bytes > 0


def told(x: Any) -> Any:
    if isinstance(x, bridge.Shared):
        x = x.value
    if isinstance(x, dict):
        return {key: told(value) for key, value in x.items()}
    return [told(value) for value in x] if isinstance(x, list) else x.tolist()


def test_a_part_of_many_tensors_has_a_name_too() -> None:
    with bridge.share([np.full(2, i) for i in range(300)]) as first:
        part = bridge.share(first.value[::2], name="t-many")
        out = printed("import bridge; print(sum(x[0].item() for x in bridge.attach('t-many')))")
        assert out == f"{sum(range(0, 300, 2))}\n"
        assert part.nbytes == 150 * 16
        part.close()


def test_the_holder_of_an_attached_tensor_shares_it_again_after_its_maker_died() -> None:
    maker = python(MAKER, "t-first")
    path = line_of(maker)
    x = bridge.attach("t-first")
    with bridge.share(x, name="t-second") as again:
        ended(maker)
        assert again.path != path
        for source in ("t-second", again.path):
            out = printed(f"import bridge; print(bridge.attach({source!r}).numpy().sum())")
            assert out == "15.0\n"


def test_audit_records_the_copy_and_no_copy_allows_it() -> None:
    x = np.ones(4)
    with bridge.no_copy(), bridge.share(x) as shared:
        pass
    with bridge.audit() as log:
        shared = bridge.share(x)
        bridge.share(shared.value).close()
        bridge.attach(shared.path)
    copied = [(record.copied, record.nbytes) for record in log.records]
    assert copied[0] == (True, 32) and [one for one, _ in copied[1:]] == [False, False]
    shared.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(4, dtype=">i4"),
        lambda: np.frombuffer(bytearray(17), "f4", count=4, offset=1),
        lambda: np.zeros(4, dtype=[("a", "i1"), ("b", "f4")])["b"],
        lambda: np.arange(8)[::-2],
        lambda: torch.tensor([1 + 2j]).conj(),
        lambda: torch._neg_view(torch.tensor([1.0, 2.0])),
    ],
    ids=["byte-order", "misaligned", "odd-strides", "negative-strides", "conjugate", "negative"],
)
def test_a_copy_by_an_import_is_part_of_the_one_copy(make: Any) -> None:
    x = make()
    with bridge.no_copy(), bridge.audit() as log, bridge.share(x) as shared:
        assert shared.value.tolist() == x.tolist()
    assert [(record.copied, record.nbytes) for record in log.records] == [(True, shared.nbytes)]


# Shared.empty.


def test_empty_makes_zeros_of_the_given_sizes_and_type() -> None:
    with bridge.Shared.empty(((2, 3), "float32"), name="t-empty") as shared:
        assert shared.value.tolist() == [[0.0] * 3] * 2 and shared.writable
        printed("import bridge; bridge.attach('t-empty')[1].numpy()[:] = 4")
        assert shared.value.tolist() == [[0.0] * 3, [4.0] * 3]
    for spec, sizes, dtype in (
        ((4, "int8"), (4,), "int8"),
        (((), float), (), "float64"),
        (([2, 0], np.uint16), (2, 0), "uint16"),
        ((at.ones(2, 5).sizes(), "bool"), (2, 5), "bool"),
    ):
        with bridge.Shared.empty(spec, writable=False) as shared:
            assert shared.value.shape == sizes and shared.value.dtype == dtype
            assert not shared.writable and not shared.value.readonly


def test_empty_takes_trees() -> None:
    spec = {"a": ((2,), "float32"), "b": [(3, "int8"), ((), "bool")], "c": (((1,), int), (2, int))}
    with bridge.Shared.empty(spec) as shared:
        found = bridge.attach(shared.path)
        assert found["a"].shape == (2,) and found["b"][0].dtype == "int8"
        assert found["b"][1].shape == () and type(found["c"]) is tuple
        assert found["c"][1].shape == (2,)
        assert shared.nbytes == 8 + 3 + 1 + 8 + 16


def test_empty_refuses_a_spec_without_sizes_and_a_type() -> None:
    for spec in (5, {}, "x", {"a": 1}):
        with pytest.raises(TypeError):
            bridge.Shared.empty(spec)
    with pytest.raises(BufferError):
        bridge.Shared.empty((2, "string"))
    with pytest.raises(c10.EnforceNotMet):
        bridge.Shared.empty(((-1,), "int8"))
    with pytest.raises(TypeError):
        bridge.Shared()


# Other doors.


def test_feeding_an_attached_tensor_shares_it(fresh_workspace: None) -> None:
    from bridge.caffe2 import workspace

    with bridge.share(np.arange(3.0)) as shared:
        x = shared.value
        workspace.FeedBlob("x", x)
        assert bridge.shares_memory(workspace.FetchTorch("x"), x)
        x[0] = 5
        assert workspace.FetchBlob("x").tolist() == [5, 1, 2]
        workspace.FeedBlob("x", np.zeros(3))  # never into memory from outside
        assert x.tolist() == [5, 1, 2]
        workspace.ResetWorkspace()
        del x


def test_many_shares_leave_nothing() -> None:
    x = at.ones(10)
    for i in range(10_000):
        shared = bridge.share(x, name=f"t-{i % 3}" if i % 10 == 0 else None)
        if i % 2:
            shared.close()
        del shared
    assert (mappings(), descriptors(), names()) == ([], [], [])
