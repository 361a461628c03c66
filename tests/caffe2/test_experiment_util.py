# SPDX-License-Identifier: Apache-2.0
"""A log file of a training."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.caffe2.experiment_util import ExternalLogger, ModelTrainerLog


class Logger(ExternalLogger):
    def __init__(self) -> None:
        self.arguments: dict[str, Any] = {}
        self.lines: list[dict[str, Any]] = []

    def set_runtime_args(self, runtime_args: dict[str, Any]) -> None:
        self.arguments = runtime_args

    def log(self, log_dict: dict[str, Any]) -> None:
        self.lines.append(log_dict)
        raise ValueError("is lost")


def test_the_file_has_a_line_for_each_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = ModelTrainerLog("name", {"batch": 4})
    log.log(8, 2, {"loss": 0.5, "accuracy": 1.0})
    log.log(20, 5, {"loss": 0.25, "accuracy": 1.0})
    assert log.filename == f"{log.experiment_id}.log"
    first, names, *lines = Path(log.filename).read_text().splitlines()
    assert first == "# {'batch': 4}"
    assert names == (
        "time_spent,cumulative_time_spent,input_count,cumulative_input_count,"
        "cumulative_batch_count,inputs_per_sec,accuracy,loss"
    )
    assert [line.split(",")[2:5] for line in lines] == [["8", "8", "2"], ["12", "20", "5"]]
    assert [line.split(",")[-1] for line in lines] == ["0.5", "0.25"]


def test_other_loggers_get_arguments_and_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    logger = Logger()
    log = ModelTrainerLog("name", SimpleNamespace(batch=4), [logger])
    assert logger.arguments["batch"] == 4
    assert logger.arguments["experiment_id"] == log.experiment_id
    assert logger.arguments["hostname"]
    log.log(8, 2, {"loss": 0.5})
    assert logger.lines[0]["loss"] == 0.5
    assert "is lost" in caplog.text
