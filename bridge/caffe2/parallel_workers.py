# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.parallel_workers``: a function called in a loop by threads.

``init_workers(function)`` creates the threads; ``start()`` of the coordinator that it returns, the
same each time, begins them, and ``stop()`` ends them. Follows caffe2/python/parallel_workers.py,
PyTorch 1.8.1.

>>> import threading
>>> from bridge.caffe2 import parallel_workers
>>> called = threading.Event()
>>> coordinator = parallel_workers.init_workers(lambda worker_id: called.set(), 1)
>>> coordinator.start()
>>> called.wait(60), coordinator.stop()
(True, True)
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence

from bridge.annotation import Any

__all__ = [
    "GlobalWorkerCoordinator",
    "Metrics",
    "State",
    "Worker",
    "WorkerCoordinator",
    "global_coordinator",
    "init_workers",
    "run_worker",
]

log = logging.getLogger("parallel_workers")

# Seconds that `stop` waits for a thread before it closes the queue that the thread waits for, and
# after that.
_PATIENCE = 5.0
_LAST_PATIENCE = 60.0


class Metrics:
    """Sums by name, which are sent to loggers: objects with a method ``log(dict)``."""

    def __init__(self, external_loggers: Sequence[Any] | None) -> None:
        self._external_loggers = external_loggers or ()
        self.reset_metrics()

    def reset_metrics(self) -> None:
        """Set all sums to 0."""
        self._metrics: defaultdict[str, float] = defaultdict(float)

    def log_metrics(self) -> None:
        """Send the sums to the loggers; the log has a line about one that fails."""
        for logger in self._external_loggers:
            try:
                logger.log(self._metrics)
            except Exception as error:  # noqa: BLE001 - a worker goes on without its metrics
                log.error("Failed to call ExternalLogger: %s", error)

    def put_metric(self, key: str, value: float, count: bool = True) -> None:
        """Add to a sum, and 1 to the sum ``KEY_count`` unless `count` is False."""
        self._metrics[key] += value
        if count:
            self._metrics[f"{key}_count"] += 1


class State(ABC):
    """The state that a coordinator begins, ends and cleans up beside its threads."""

    @abstractmethod
    def start(self) -> None:
        """Begin, before the threads do."""

    @abstractmethod
    def stop(self) -> None:
        """End, so that threads which wait do, too."""

    @abstractmethod
    def cleanup(self) -> None:
        """Free the resources of the threads, after all have ended."""


class WorkerCoordinator:
    """The threads of one call of `init_workers`."""

    def __init__(
        self,
        worker_name: str,
        worker_ids: Sequence[int],
        init_fun: Callable[..., Any] | None,
        state: State | None = None,
        shutdown_fun: Callable[[], Any] | None = None,
    ) -> None:
        self._active = True
        self._started = False
        self._workers: list[threading.Thread] = []
        self._worker_name = worker_name
        self._worker_ids = worker_ids
        self._init_fun = init_fun
        self._state = state
        self._shutdown_fun = shutdown_fun

    def is_active(self) -> bool:
        """Return whether the threads are to go on."""
        return self._active

    def get_worker_ids(self) -> Sequence[int]:
        """Return the numbers that the function is called with."""
        return self._worker_ids

    def init(self, global_coordinator: GlobalWorkerCoordinator) -> None:
        """Call ``init_fun(self, global_coordinator)``, unless the threads run."""
        if self._init_fun and not self._started:
            self._init_fun(self, global_coordinator)

    def _start(self) -> None:
        if self._started:
            return
        self._active = self._started = True
        if self._state:
            self._state.start()
        for worker in self._workers:
            worker.daemon = True
            worker.start()

    def _stop(self, reason: str | None = None) -> None:
        self._active = False
        if reason is not None:
            log.error("Data input failed due to an error: %s", reason)
        if self._shutdown_fun and self._started:
            self._shutdown_fun()
        if self._state:
            self._state.stop()
        self._started = False

    def _wait_finish(self, cleanup: Any = None) -> bool:
        """Wait for the threads; return whether all have ended."""
        from bridge.caffe2.operators.datasets.blobs_queue import release  # imports torch

        others = [one for one in self._workers if one is not threading.current_thread()]
        for worker in others:
            if worker.ident is not None:  # it was started
                worker.join(_PATIENCE)
                if worker.is_alive():
                    release(worker.ident)
                    worker.join(_LAST_PATIENCE)
        late = [worker.name for worker in others if worker.is_alive()]
        if late:
            log.error("Workers failed to close while waiting: %s", ", ".join(late))
        elif self._state:
            self._state.cleanup()
        return not late


class GlobalWorkerCoordinator:
    """All coordinators of the process; it stops them when the process ends."""

    def __init__(self) -> None:
        self._coordinators: list[WorkerCoordinator] = []
        self._worker_ids: list[int] = []
        self._fetcher_id_seq = 0  # the next number; modules of an old PyTorch read it
        self.register_shutdown_handler()

    def add(self, coordinator: WorkerCoordinator) -> None:
        """Add a coordinator."""
        self._coordinators.append(coordinator)

    def get_new_worker_id(self) -> int:
        """Return the next number of a worker: 0, 1, ..."""
        self._worker_ids.append(self._fetcher_id_seq)
        self._fetcher_id_seq += 1
        return self._worker_ids[-1]

    def get_worker_ids(self) -> list[int]:
        """Return the numbers of all workers."""
        return self._worker_ids

    def start(self) -> None:
        """Begin all threads, after the functions `init_fun` of all of them."""
        for coordinator in self._coordinators:
            coordinator.init(self)
        for coordinator in self._coordinators:
            coordinator._start()

    def stop(self) -> bool:
        """End all threads and forget them; return whether all have ended.

        A thread ends with its current call of the function. A queue that it waits for is closed
        after five seconds; a thread that goes on for a further minute is left alone.
        """
        coordinators, self._coordinators = self._coordinators, []
        for coordinator in coordinators:
            coordinator._stop()
        return all(coordinator._wait_finish() for coordinator in coordinators)

    def stop_coordinator(self, worker_name: str) -> None:
        """End the threads of the workers of a name."""
        named = [one for one in self._coordinators if one._worker_name == worker_name]
        self._coordinators = [one for one in self._coordinators if one not in named]
        for coordinator in named:
            coordinator._stop()
            coordinator._wait_finish()

    def register_shutdown_handler(self) -> None:
        """Register `stop` to be called when the process ends."""
        atexit.register(self.stop)


class Worker:
    """One thread's calls of the function, and how long they take."""

    def __init__(
        self,
        coordinator: WorkerCoordinator,
        worker_id: int,
        worker_fun: Callable[[int], Any] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._worker_id = worker_id
        self._worker_fun = worker_fun
        self._metrics = metrics

    def start(self) -> None:
        """Remember when a call begins."""
        self._start_time = time.monotonic()

    def run(self) -> None:
        """Call the function."""
        if self._worker_fun is not None:
            self._worker_fun(self._worker_id)

    def handle_exception(self, e: Exception) -> None:
        """Log an error of the function, and end all threads beside this one."""
        log.error("Exception in worker %s", self._worker_id, exc_info=e)
        self._coordinator._stop(f"Exception in worker {self._worker_id}: {e}")

    def finish(self) -> None:
        """Count a call, and its seconds."""
        if self._metrics is not None:
            self._metrics.put_metric("worker_time", time.monotonic() - self._start_time)
            self._metrics.log_metrics()


global_coordinator = GlobalWorkerCoordinator()


def init_workers(
    worker_fun: Callable[[int], Any],
    num_worker_threads: int = 2,
    worker_name: str = "train",
    init_fun: Callable[..., Any] | None = None,
    external_loggers: Sequence[Any] | None = None,
    shutdown_fun: Callable[[], Any] | None = None,
) -> GlobalWorkerCoordinator:
    """Create threads that call ``worker_fun(worker_id)`` again and again; return the coordinator.

    init_fun: called once before the threads begin, with the coordinator of these threads and that
    of all. external_loggers: objects whose method `log` gets a dict of metrics after each call.
    shutdown_fun: called when the threads are to end, such as to close a queue that they wait for.
    An error of `worker_fun` is logged and ends these threads.
    """
    metrics = Metrics(external_loggers)
    ids = [global_coordinator.get_new_worker_id() for _ in range(num_worker_threads)]
    coordinator = WorkerCoordinator(worker_name, ids, init_fun, shutdown_fun=shutdown_fun)
    coordinator._workers = [
        threading.Thread(
            target=run_worker,
            name=f"parallel_workers worker id {worker_id}",
            args=[coordinator, Worker(coordinator, worker_id, worker_fun, metrics)],
        )
        for worker_id in ids
    ]
    global_coordinator.add(coordinator)
    return global_coordinator


def run_worker(coordinator: WorkerCoordinator, worker: Worker) -> None:
    """Call the function of a worker until its coordinator is stopped."""
    while coordinator.is_active():
        worker.start()
        try:
            worker.run()
        except Exception as error:  # noqa: BLE001 - logged; the threads end
            worker.handle_exception(error)
        finally:
            worker.finish()
