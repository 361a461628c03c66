# SPDX-License-Identifier: Apache-2.0
"""Whole nets, over the real Caffe2 and over the same torch calls written by hand; one thread each.

The environment variable CAFFE2_NETS names a folder with graphs of Caffe2's model zoo, NAME.pb; see
`ZOO`. Their weights are generated: see `zoo_weights`.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from bridge import caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.benchmarks.harness import Effort, Row, Timer, compare, loop
from tests.benchmarks.real_caffe2 import VARIABLE, RealCaffe2, real_caffe2
from tests.benchmarks.small_nets import (
    CHAINS,
    Made,
    branches,
    chain,
    chain_by_hand,
    int8_net,
    lstm_step,
    lstm_training,
    recommendation,
    training_step,
)
from tests.benchmarks.zoo_weights import INPUTS, weights

NETS = "CAFFE2_NETS"
REAL = "real Caffe2"
THREADS = "a net of type"

Bounds = tuple[float, float]
NO_BOUNDS = (math.inf, math.inf)


class Zoo(NamedTuple):
    """A net of the zoo: its file, the image's side in pixels, bounds of RunNet and compiled."""

    file: str
    side: int
    bounds: Bounds
    compiled: Bounds | None


ZOO = {
    "AlexNet": Zoo("bvlc_alexnet", 115, (1.0, 0.7), (0.8, 0.5)),
    "ZFNet": Zoo("zfnet512", 115, (1.0, 0.7), (0.8, 0.5)),
    "Inception v1": Zoo("inception_v1", 224, (1.0, 0.7), (0.8, 0.5)),
    "Inception v2": Zoo("inception_v2", 224, (1.0, 0.7), (0.8, 0.5)),
    "DenseNet-121": Zoo("densenet121", 64, (1.3, 0.8), (0.8, 0.5)),
    "ResNet-50": Zoo("resnet50", 224, (0.9, 0.7), (0.8, 0.6)),
    "VGG-19": Zoo("vgg19", 64, (0.9, 0.7), (0.8, 0.6)),
    "Faster R-CNN R-50-C4": Zoo("e2e_faster_rcnn_R-50-C4_1x", 64, (0.9, 0.6), None),
    "Mask R-CNN 2go": Zoo("mask_rcnn_2go_fp32", 64, (0.4, 0.3), None),
}


# Nets whose operators can run in threads, each made for a type of net; and their bounds.
PARALLEL: dict[str, tuple[Callable[[str], Made], Bounds]] = {
    "one branch, 10 layers 16×16": (lambda kind: branches(kind, 1, 16, [16] * 11), (1.05, 1.0)),
    "8 branches, 4 layers 16×16": (lambda kind: branches(kind, 8, 16, [16] * 5), (1.05, 1.0)),
    "DLRM, 128 rows, 26 tables": (recommendation, (1.05, 0.9)),
    "2 branches, 8 layers 512×512": (lambda kind: branches(kind, 2, 128, [512] * 9), (0.7, 0.55)),
}


class Subject(NamedTuple):
    """A net to measure: how to make it, its bounds over the real Caffe2, interpreted, compiled."""

    make: Callable[[], Made]
    bounds: Bounds
    compiled: Bounds | None = None
    by_hand: Timer | None = None


def small_subjects() -> dict[str, Subject]:
    """Return the nets that are made here."""
    subjects = {}
    for what, types in CHAINS.items():
        compiled = (0.5, 0.1) if what.startswith("200 Relu") else (0.5, 0.15)
        made = (lambda types=types: chain(" ".join(types), types)), NO_BOUNDS, compiled
        subjects[what] = Subject(*made, chain_by_hand(types))
    subjects["a training step"] = Subject(training_step, (1.2, 0.6), (0.8, 0.4))
    for side in (128, 256):
        made = (lambda side=side: int8_net(side)), (1.3, 1.0)
        subjects[f"an int8 net of {side}×{side} pixels"] = Subject(*made)
    subjects["a step of an LSTM"] = Subject(lstm_step, (2, 1.5))
    subjects["training of an LSTM"] = Subject(lstm_training, (2, 1))
    return subjects


def zoo_subjects(folder: Path) -> dict[str, Subject]:
    """Return the nets whose graphs are in `folder`."""

    def make(zoo: Zoo) -> Made:
        net = caffe2_pb2.NetDef()
        net.ParseFromString((folder / f"{zoo.file}.pb").read_bytes())
        workspace.ResetWorkspace()
        feeds = weights(net, zoo.side)
        return Made(net, feeds, [name for name in feeds if name in INPUTS])

    subjects = {}
    for what, zoo in ZOO.items():
        subjects[what] = Subject(lambda zoo=zoo: make(zoo), zoo.bounds, zoo.compiled)
    return subjects


def create(made: Made) -> str:
    """Make the net in a workspace with nothing else; return its name."""
    workspace.ResetWorkspace()
    for name, value in made.feeds.items():
        workspace.FeedBlob(name, value)
    if made.init is not None:
        workspace.RunNetOnce(made.init)
    workspace.CreateNet(made.net)
    workspace.RunNet(made.net.name)
    return str(made.net.name)


def running(name: str) -> Timer:
    """Time RunNet."""
    return loop("RunNet(name)", repeats=1, RunNet=workspace.RunNet, name=name)


def load_there(real: RealCaffe2, made: Made, folder: Path) -> Timer:
    """Make the net in the real Caffe2; time its RunNet."""
    (folder / "net.pb").write_bytes(made.net.SerializeToString())
    init = b"" if made.init is None else made.init.SerializeToString()
    (folder / "init.pb").write_bytes(init)
    np.savez(folder / "feeds.npz", **made.feeds)
    real.loop(f"load_net({str(folder)!r})", 1)(1)
    return real.loop(f"RunNet({made.net.name!r})", 1)


def absent(what: str, column: str, reason: object = "") -> None:
    """Say which row there cannot be."""
    print(f"    not there: {what}, {column} {reason}", file=sys.stderr)


def of_subject(
    what: str, subject: Subject, real: RealCaffe2 | None, effort: Effort, folder: Path
) -> Iterator[Row]:
    """Measure a net as it is, compiled, and as a module."""
    made = subject.make()
    ours = running(create(made))
    if subject.by_hand:
        outcome = compare(ours, subject.by_hand, effort)
        yield Row(what, "the same torch calls", 1.25, 1.1, outcome)
    theirs = load_there(real, made, folder) if real else None
    if theirs:
        yield Row(what, REAL, *subject.bounds, compare(ours, theirs, effort))
    if not effort.compiles:
        return
    yield from as_module(what, made, ours, effort)
    if theirs and subject.compiled:
        yield from compiled(what, made, subject.compiled, theirs, effort)


def as_module(what: str, made: Made, ours: Timer, effort: Effort) -> Iterator[Row]:
    """Measure the net as a module over RunNet; `ours` has its blobs in the workspace."""
    to_module = getattr(caffe2, "to_module", None)
    if to_module is None:
        absent(what, "to_module")
        return
    try:
        module = to_module(made.net, inputs=made.inputs)
        inputs = [workspace.FetchTorch(name) for name in module.input_names]
        with torch.no_grad():
            module(*inputs)
    except EnforceNotMet as error:
        absent(what, "to_module", error)
        return
    calling = loop("module(*inputs)", repeats=1, module=module, inputs=inputs)

    def without_gradients(number: int) -> float:
        with torch.no_grad():
            return calling(number)

    yield Row(
        f"`to_module`: {what}", "`RunNet`", 1.1, 1.0, compare(without_gradients, ours, effort)
    )


def compiled(what: str, made: Made, bounds: Bounds, theirs: Timer, effort: Effort) -> Iterator[Row]:
    """Measure the compiled net."""
    net = caffe2_pb2.NetDef()
    net.CopyFrom(made.net)
    net.name, net.type = f"{made.net.name} compiled", "compiled"
    try:
        ours = running(create(made._replace(net=net)))
    except EnforceNotMet as error:
        absent(what, "compiled", error)
        return
    ours(1)  # which compiles it
    yield Row(f"compiled: {what}", REAL, *bounds, compare(ours, theirs, effort))


def in_threads(effort: Effort) -> Iterator[Row]:
    """Measure nets that may use two cores over those that may not."""
    if (os.cpu_count() or 1) < 2:
        absent(THREADS, "two cores")
        return
    for what, (make, bounds) in PARALLEL.items():
        for kind in ("dag", "async_scheduling"):
            names = {}
            workspace.ResetWorkspace()
            for each in ("simple", kind):
                made = make(each)
                for name, value in made.feeds.items():
                    workspace.FeedBlob(name, value)
                workspace.CreateNet(made.net)
                names[each] = made.net.name
            outcome = compare(running(names[kind]), running(names["simple"]), effort)
            yield Row(f"{THREADS} `{kind}`: {what}", "`simple`", *bounds, outcome)


@contextmanager
def one_thread() -> Iterator[None]:
    """Have torch use one thread per call in the `with` block."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        workspace.ResetWorkspace()


def measured(
    subjects: dict[str, Subject], real: RealCaffe2 | None, effort: Effort
) -> Iterator[Row]:
    """Measure these nets."""
    with tempfile.TemporaryDirectory() as folder:
        for what, subject in subjects.items():
            if re.search(effort.only, what):
                yield from of_subject(what, subject, real, effort, Path(folder))


def rows(effort: Effort) -> Iterator[Row]:
    """Measure nets made here and, where they are to be found, those of the zoo."""
    python, nets = os.environ.get(VARIABLE), os.environ.get(NETS)
    subjects = small_subjects()
    with one_thread():
        if not python:
            yield from measured(subjects, None, effort)
        else:
            if nets:
                subjects |= zoo_subjects(Path(nets))
            with real_caffe2(python) as real:
                yield from measured(subjects, real, effort)
        if re.search(effort.only, THREADS):
            yield from in_threads(replace(effort, rounds=min(effort.rounds, 11)))
