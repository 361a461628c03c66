# SPDX-License-Identifier: Apache-2.0
"""A function called in a loop by threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, parallel_workers, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

LONG = 60  # seconds; what should happen at once happens long before


class Meeting:
    """Called by workers: remembers which, and tells when each of some number has been here."""

    def __init__(self, count: int) -> None:
        self.ids: set[int] = set()
        self.count = count
        self.complete = threading.Event()

    def __call__(self, worker_id: int) -> None:
        self.ids.add(worker_id)
        if len(self.ids) == self.count:
            self.complete.set()


def test_each_thread_has_a_number() -> None:
    meeting = Meeting(3)
    coordinator = parallel_workers.init_workers(meeting, num_worker_threads=3)
    assert coordinator is parallel_workers.global_coordinator
    coordinator.start()
    assert meeting.complete.wait(LONG)
    assert coordinator.stop()
    assert meeting.ids <= set(coordinator.get_worker_ids())
    assert parallel_workers.global_coordinator._fetcher_id_seq >= 3  # data_workers reads it


def test_functions_at_the_begin_and_the_end() -> None:
    called: list[Any] = []
    meeting = Meeting(1)
    coordinator = parallel_workers.init_workers(
        meeting,
        num_worker_threads=1,
        init_fun=lambda own, every: called.append((own.get_worker_ids(), every)),
        shutdown_fun=lambda: called.append("end"),
    )
    coordinator.start()
    coordinator.start()
    assert meeting.complete.wait(LONG)
    coordinator.stop()
    assert called == [(sorted(meeting.ids), coordinator), "end"]
    assert coordinator.stop()


def test_an_error_ends_the_threads(caplog: pytest.LogCaptureFixture) -> None:
    def fail(worker_id: int) -> None:
        raise RuntimeError("the reason")

    coordinator = parallel_workers.init_workers(fail)
    workers = coordinator._coordinators[-1]._workers
    coordinator.start()
    for worker in workers:
        worker.join(LONG)
    assert not any(worker.is_alive() for worker in workers)
    assert "the reason" in caplog.text
    assert coordinator.stop()


def test_a_thread_that_waits_for_a_queue_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_workers, "_PATIENCE", 0.1)
    init, net = core.Net("init"), core.Net("enqueue")
    init.CreateBlobsQueue([], "queue", capacity=1, num_blobs=1)
    workspace.RunNetOnce(init)
    workspace.FeedBlob("x", np.zeros(1))
    net.SafeEnqueueBlobs(["queue", "x"], ["x", "status"])
    workspace.CreateNet(net)
    runs = threading.Semaphore(0)

    def enqueue(worker_id: int) -> None:
        workspace.RunNet(net.Proto().name)
        runs.release()

    coordinator = parallel_workers.init_workers(enqueue, 1)
    coordinator.start()
    assert runs.acquire(timeout=LONG)  # the queue is full now
    assert coordinator.stop()
    assert workspace.FetchBlob("status")


def test_workers_of_a_name_are_stopped() -> None:
    meetings = {name: Meeting(2) for name in ("train", "test")}
    for name, meeting in meetings.items():
        parallel_workers.init_workers(meeting, worker_name=name)
    coordinator = parallel_workers.global_coordinator
    coordinator.start()
    for meeting in meetings.values():
        assert meeting.complete.wait(LONG)
    coordinator.stop_coordinator("test")
    assert [one._worker_name for one in coordinator._coordinators] == ["train"]
    assert coordinator.stop()


def test_metrics_are_sent_to_loggers(caplog: pytest.LogCaptureFixture) -> None:
    class Logger:
        def __init__(self) -> None:
            self.logged: list[dict[str, float]] = []

        def log(self, metrics: dict[str, float]) -> None:
            self.logged.append(dict(metrics))
            raise ValueError("is lost")

    logger = Logger()
    metrics = parallel_workers.Metrics([logger])
    metrics.put_metric("size", 2.0)
    metrics.put_metric("size", 3.0)
    metrics.put_metric("other", 1.0, count=False)
    metrics.log_metrics()
    assert logger.logged == [{"size": 5.0, "size_count": 2.0, "other": 1.0}]
    assert "is lost" in caplog.text
    metrics.reset_metrics()
    assert not metrics._metrics
