# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.experiment_util``: a log file of a training.

Follows caffe2/python/experiment_util.py, PyTorch 1.8.1.

>>> import os, pathlib, tempfile
>>> from bridge.caffe2.experiment_util import ModelTrainerLog
>>> before = os.getcwd()
>>> os.chdir(tempfile.mkdtemp())
>>> log = ModelTrainerLog("doc", {"batch_size": 32})
>>> log.log(input_count=320, batch_count=10, additional_values={"loss": 0.5})
>>> pathlib.Path(log.filename).read_text().splitlines()[1].split(",")[-2:]
['inputs_per_sec', 'loss']
>>> os.chdir(before)
"""

from __future__ import annotations

import logging
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

from bridge.annotation import Any

__all__ = ["ExternalLogger", "ModelTrainerLog"]


class ExternalLogger(ABC):
    """Another place that a `ModelTrainerLog` writes to."""

    @abstractmethod
    def set_runtime_args(self, runtime_args: dict[str, Any]) -> None:
        """Get the arguments of the training, its `experiment_id` and the `hostname`."""

    @abstractmethod
    def log(self, log_dict: dict[str, Any]) -> None:
        """Get the values of one line."""


class ModelTrainerLog:
    """Writes a file ``NAME_DATE_TIME.log`` in the current folder, in lines of commas.

    runtime_args: a dict, or an object whose attributes are the arguments of the training; they are
    the first line. The second line has the names of the values.
    """

    def __init__(
        self,
        expname: str,
        runtime_args: Any,
        external_loggers: Sequence[ExternalLogger] | None = None,
    ) -> None:
        self.experiment_id = f"{expname}_{datetime.now():%Y%m%d_%H%M%S}"
        self.filename = f"{self.experiment_id}.log"
        self.logstr(f"# {runtime_args}")
        self.headers: list[str] | None = None
        self.start_time = self.last_time = time.time()
        self.last_input_count = 0
        self.external_loggers = list(external_loggers or ())
        if external_loggers is not None:
            known = runtime_args if isinstance(runtime_args, dict) else vars(runtime_args)
            arguments = {
                **known,
                "experiment_id": self.experiment_id,
                "hostname": socket.gethostname(),
            }
            for logger in self.external_loggers:
                logger.set_runtime_args(arguments)

    def logstr(self, str: str) -> None:
        """Append a line to the file, and send it to the logger "experiment_logger"."""
        with open(self.filename, "a") as file:
            file.write(f"{str}\n")
        logging.getLogger("experiment_logger").info(str)

    def log(self, input_count: int, batch_count: int, additional_values: dict[str, Any]) -> None:
        """Write a line: times in seconds, counts of inputs and batches, and further values.

        input_count, batch_count: since the begin. Errors of external loggers are logged.
        """
        now = time.time()
        seconds, inputs = now - self.last_time, input_count - self.last_input_count
        self.last_time, self.last_input_count = now, input_count
        values = {
            "time_spent": seconds,
            "cumulative_time_spent": now - self.start_time,
            "input_count": inputs,
            "cumulative_input_count": input_count,
            "cumulative_batch_count": batch_count,
            "inputs_per_sec": inputs / seconds if seconds > 0 else 0.0,
            **{name: additional_values[name] for name in sorted(additional_values)},
        }
        if self.headers is None:
            self.headers = list(values)
            self.logstr(",".join(self.headers))
        self.logstr(",".join(map(str, values.values())))
        for logger in self.external_loggers:
            try:
                logger.log(values)
            except Exception as error:  # noqa: BLE001 - a training goes on without it
                logging.getLogger("experiment_logger").warning(
                    "Failed to call ExternalLogger: %s", error
                )
