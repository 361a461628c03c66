# SPDX-License-Identifier: Apache-2.0
"""Shareds and tensors in segments through multiprocessing and what is built on it."""

from __future__ import annotations

import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import signal
import threading
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2
from bridge.shared.hand_over import receipts
from tests.helpers import sharing
from tests.helpers.sharing import descriptors, ended, line_of, mappings, printed, python

TIMEOUT_S = 300

METHODS = ["spawn", "fork", "forkserver"]
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def joined(process: Any) -> int:
    process.join(TIMEOUT_S)
    assert process.exitcode is not None, "it hangs"
    return int(process.exitcode)


@pytest.mark.parametrize("method", METHODS)
def test_a_new_process_gets_shareds_and_tensors_as_arguments(method: str) -> None:
    context = multiprocessing.get_context(method)
    shared = bridge.share({"a": np.arange(6.0).reshape(2, 3)}, name="t-arguments")
    x = shared.value["a"]
    given = [shared, x, x[1:, ::2], x.t(), caffe2.Tensor(x), at.zeros(2), x]
    answers = context.SimpleQueue()
    process = context.Process(target=sharing.tell, args=(answers, given))
    process.start()
    found = answers.get()
    assert joined(process) == 0
    is_readonly = method != "fork"  # which gives the child what its parent has
    values = x.tolist()
    assert found == [
        ("Shared", "t-arguments", 48, {"a": (values, ([2, 3], [3, 1], 0), is_readonly)}),
        (values, ([2, 3], [3, 1], 0), is_readonly),
        ([[3.0, 5.0]], ([1, 2], [3, 2], 3), is_readonly),
        (x.t().tolist(), ([3, 2], [1, 3], 0), is_readonly),
        (values, "bridge.caffe2.tensor.tensor"),
        ([0.0, 0.0], ([2], [1], 0), False),
        (values, ([2, 3], [3, 1], 0), is_readonly),
    ]
    shared.close()


@pytest.mark.parametrize("method", METHODS)
def test_queues_pass_shareds_and_tensors_both_ways(method: str) -> None:
    context = multiprocessing.get_context(method)
    requests, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=sharing.echo, args=(requests, answers))
    process.start()
    for writable in (False, True):
        requests.put(bridge.share(np.arange(4.0), writable=writable))  # and nobody keeps it
        found = answers.get()
        assert sharing.seen(found)[1:3] == (None, 32)
        assert found.value.tolist() == [0, 1, 2, 3] and found.writable is writable
        x = found.value  # may be writable: this process made it
        requests.put((x[2:], x.expand(2, 4)))
        one, other = answers.get()
        assert one.tolist() == [2, 3] and one.storage_offset() == 2
        assert one.readonly is not writable  # as where it came from
        assert bridge.shares_memory(one, x) and other.strides() == [0, 1]
        assert one.storage().is_alias_of(other.storage())
        del found, one, other, x
    requests.put(None)
    assert joined(process) == 0
    gc.collect()
    assert (mappings(), descriptors()) == ([], [])


def test_a_pipe_and_a_queue_with_a_thread_pass_tensors() -> None:
    context = multiprocessing.get_context("spawn")
    reading, writing = context.Pipe(duplex=False)
    queue: Any = context.Queue()
    process = context.Process(target=sharing.tell, args=(queue, None))
    process.start()
    assert queue.get(timeout=TIMEOUT_S) is None
    assert joined(process) == 0
    x = bridge.share(at.arange(3)).value
    writing.send(x)
    queue.put(x)
    for received in (reading.recv(), queue.get(timeout=TIMEOUT_S)):
        assert received.data_ptr() == x.data_ptr()
    queue.close()
    queue.join_thread()
    reading.close()
    writing.close()
    del received


@pytest.mark.parametrize("method", METHODS)
def test_pools_pass_shareds_and_tensors(method: str) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        made = pool.map(sharing.make, [[float(i)] * 3 for i in range(8)])
        assert [one.value.tolist() for one in made] == [[float(i)] * 3 for i in range(8)]
        assert pool.map(sharing.total, made) == [3.0 * i for i in range(8)]
        assert pool.map(sharing.total, [one.value for one in made]) == [3.0 * i for i in range(8)]
        shareds = pool.map(bridge.share, [np.ones(i) for i in range(3)])
        assert [one.nbytes for one in shareds] == [0, 8, 16]
    pool.join()
    del made, shareds


def test_concurrent_futures_pass_shareds_and_tensors() -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        made = list(executor.map(sharing.make, [[1.0, 2.0], [3.0]]))
        assert [executor.submit(sharing.total, one).result(TIMEOUT_S) for one in made] == [3, 3]
        x = made[0].value
        assert executor.submit(sharing.total, x[1:]).result(TIMEOUT_S) == 2
    del made, x


def test_joblib_passes_shareds_and_tensors() -> None:
    joblib = pytest.importorskip("joblib")
    from joblib.externals.loky import get_reusable_executor

    shared = bridge.share(np.arange(5.0))
    items = [shared, shared.value, shared.value[2:]]
    with joblib.Parallel(n_jobs=2, backend="loky") as parallel:
        totals = parallel(joblib.delayed(sharing.total)(one) for one in items)
        made = parallel(joblib.delayed(sharing.make)([float(i)]) for i in range(3))
    assert totals == [10.0, 10.0, 9.0]
    assert [one.value.tolist() for one in made] == [[0.0], [1.0], [2.0]]
    del made
    get_reusable_executor().shutdown()
    shared.close()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_may_write_where_it_was_said_to(method: str) -> None:
    context = multiprocessing.get_context(method)
    answers = context.SimpleQueue()
    for writable, result in ((True, "written"), (False, "EnforceNotMet")):
        with bridge.share(np.zeros(2), writable=writable) as shared:
            process = context.Process(target=sharing.fill, args=(shared, 3, answers))
            process.start()
            assert answers.get() == result
            assert joined(process) == 0
            assert shared.value.tolist() == ([3, 3] if writable else [0, 0])


def forked(run: Any) -> int:
    """Run it in a forked child that ends without a word; return its exit status."""
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_writes_and_frees_nothing_of_its_parents() -> None:
    shared = bridge.share(np.zeros(2), name="t-forked")
    receipts_before = len(receipts._held)

    def run() -> None:
        shared.value.numpy()[0] = 7
        assert bridge.attach("t-forked").tolist() == [7, 0]
        assert shared.path.startswith(f"/proc/{os.getppid()}/")
        shared.close()
        assert mappings() == []

    assert forked(run) == 0
    assert forked(lambda: None) == 0
    assert shared.value.tolist() == [7, 0]
    assert bridge.attach("t-forked").tolist() == [7, 0]
    assert len(receipts._held) == receipts_before
    shared.close()


def test_a_child_that_forks_while_other_threads_share_does_not_hang() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            bridge.share(np.zeros(10)).close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert forked(lambda: bridge.share(np.ones(3)).close()) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class Named(at.Tensor):
    """A class of the user's."""

    label: str


class Pickled(at.Tensor):
    """A class with a pickle of its own."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (self.tolist(),)


def test_a_tensor_of_a_derived_class_stays_in_its_segment() -> None:
    shared = bridge.share(np.arange(3.0), writable=True)
    x = Named(shared.value[1:])
    x.label = "weights"
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    queue.put(x)
    found = queue.get()
    assert type(found) is Named and found.label == "weights"
    found[0] = 7.0
    assert shared.value.tolist() == [0.0, 7.0, 2.0]
    queue.put(Pickled(shared.value))
    assert queue.get() == [0.0, 7.0, 2.0]
    copied = pickle.loads(pickle.dumps(x))
    assert type(copied) is Named and not bridge.shares_memory(copied, x)
    shared.close()


def test_a_child_outlives_its_parent() -> None:
    code = """
import multiprocessing, os, sys
sys.path.insert(0, sys.argv[1])
from tests.helpers import sharing

def main():
    import bridge, numpy as np
    context = multiprocessing.get_context(sys.argv[2])
    shared = bridge.share(np.full(3, 4.0))
    context.Process(target=sharing.outlive, args=(shared, shared.value)).start()
    print("started", flush=True)
    os._exit(0)

if __name__ == "__main__":
    main()
"""
    import tempfile

    for method in METHODS:
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "parent.py")
            with open(script, "w") as file:
                file.write(code)
            out = printed(
                "import runpy, sys\nsys.argv = sys.argv[1:]\n"
                "runpy.run_path(sys.argv[0], run_name='__main__')",
                script, os.getcwd(), method,
            )  # fmt: skip
        assert out.splitlines()[0] == "started"
        assert out.splitlines()[1:] == ["[4.0, 4.0, 4.0] [4.0, 4.0, 4.0]"], method


def test_a_message_whose_sender_ended_is_gone() -> None:
    context = multiprocessing.get_context("fork")
    for value in ("shared", "tensor"):
        queue = context.SimpleQueue()

        def send(queue: Any = queue, value: str = value) -> None:
            shared = bridge.share(np.arange(3))
            queue.put(shared if value == "shared" else shared.value)

        assert forked(send) == 0
        with pytest.raises(FileNotFoundError):
            queue.get()


def test_a_message_of_a_stopped_sender_arrives() -> None:
    context = multiprocessing.get_context("fork")
    queue, go = context.SimpleQueue(), context.SimpleQueue()
    child = os.fork()
    if child == 0:
        queue.put(bridge.share(np.arange(3)))
        go.get()
        os._exit(0)
    while queue.empty():
        pass
    os.kill(child, signal.SIGSTOP)
    found = queue.get()
    os.kill(child, signal.SIGCONT)
    assert found.value.tolist() == [0, 1, 2]
    go.put(None)
    os.waitpid(child, 0)
    assert found.value.tolist() == [0, 1, 2]
    found.close()


def test_pickle_makes_a_reference_of_a_shared_and_copies_tensors() -> None:
    with bridge.share(np.arange(3.0), name="t-pickle") as shared:
        stream = pickle.dumps(shared)
        code = (
            "import pickle, sys\nx = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
            "print(x.value.tolist(), x.value.readonly, x.name, x.nbytes, x.path)"
        )
        out = printed(code, stream.hex())
        assert out == f"[0.0, 1.0, 2.0] True t-pickle 24 {shared.path}\n"
        assert len(stream) < 2000
        copied = pickle.loads(pickle.dumps(shared.value))
        assert copied.tolist() == [0, 1, 2] and not copied.readonly
        assert not bridge.shares_memory(copied, shared.value)
    with pytest.raises(FileNotFoundError):
        pickle.loads(stream)


def test_messages_that_arrived_free_their_memory() -> None:
    queue = multiprocessing.get_context("fork").SimpleQueue()
    for _ in range(5):
        queue.put(bridge.share(np.zeros(100)))
    assert len(descriptors()) >= 5
    for _ in range(5):
        queue.get()
    gc.collect()
    assert (descriptors(), mappings()) == ([], [])


def test_a_message_on_its_way_keeps_its_segment() -> None:
    maker = python(
        "import multiprocessing.connection as c, bridge, numpy as np, sys, gc\n"
        "with c.Listener(authkey=b'key') as listener:\n"
        "    print(listener.address, flush=True)\n"
        "    with listener.accept() as one:\n"
        "        one.send(bridge.share(np.arange(4)))\n"
        "        gc.collect()\n"
        "        one.recv()\n"
        "        gc.collect()\n"
        "        from tests.helpers.sharing import descriptors, mappings\n"
        "        print(descriptors(), mappings())\n"
    )
    from multiprocessing.connection import Client

    with Client(line_of(maker), authkey=b"key") as client:
        found = client.recv()
        client.send(None)
        assert found.value.tolist() == [0, 1, 2, 3]
        found.close()
        assert ended(maker) == "[] []\n"


def test_no_thread_and_no_process_is_started() -> None:
    before = len(os.listdir("/proc/self/task"))
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    with bridge.share(np.zeros(3), name="t-thread") as shared:
        bridge.attach("t-thread")
        queue.put(shared)
        queue.get()
    assert len(os.listdir("/proc/self/task")) <= before  # one of an earlier test may just end


def test_many_messages_arrive_in_order() -> None:
    queue = multiprocessing.get_context("fork").Queue()
    for i in range(300):
        queue.put(bridge.share(np.full(2, i)))
    for i in range(300):
        assert queue.get(timeout=TIMEOUT_S).value[0].item() == i
    queue.close()
    queue.join_thread()
