# SPDX-License-Identifier: Apache-2.0
"""Producers of DLPack, honest and not, and capsules by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.exchange.matrix.case import Case, aligned
from tests.exchange.matrix.sources_numpy import CUBE, FLOATS
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_producer import (
    ForgetfulProducer,
    ManagedTensor,
    OldProducer,
    Producer,
    RaisingProducer,
    StreamProducer,
    TensorSpec,
)


def address(source: Any) -> int:
    spec: TensorSpec = source.spec
    return (spec.address or 0) + spec.byte_offset


def of_producer(
    name: str,
    source: np.ndarray[Any, Any],
    kind: Callable[..., Producer] = Producer,
    options: dict[str, Any] | None = None,
    values: np.ndarray[Any, Any] | None = None,
    shared: bool = True,
    readonly: bool = False,
    **changes: Any,
) -> Case:
    """A producer of the memory of `source`, with `changes` to what it says."""
    shown = np.ascontiguousarray(source).reshape(source.shape) if values is None else values
    spec = TensorSpec.of_array(source).but(**changes)
    return Case(
        f"producer {name}",
        lambda: kind(spec, **(options or {})),
        values=lambda: shown,
        address=address if shared else None,
        strides=spec.strides,
        readonly=readonly,
    )


PLAIN = aligned(FLOATS)
HONEST = [
    of_producer("versioned", PLAIN),
    of_producer("legacy", PLAIN, options={"versioned": False}),
    of_producer("without arguments", PLAIN, OldProducer),
    of_producer("with a stream", PLAIN, StreamProducer),
    of_producer("forgetful", PLAIN, ForgetfulProducer),
    of_producer("NULL strides", PLAIN, strides=None),
    of_producer(
        "byte offset",
        PLAIN,
        byte_offset=4,
        shape=(5,),
        strides=(1,),
        values=np.ascontiguousarray(PLAIN.reshape(-1)[1:]),
    ),
    of_producer("transposed", CUBE.T),
    of_producer("reversed", CUBE[::-1]),
    of_producer("read-only", PLAIN, flags=abi.READ_ONLY, readonly=True),
    of_producer("flagged copied", PLAIN, flags=abi.IS_COPIED, shared=False),
    of_producer("of a later minor version", PLAIN, version=(1, 99)),
    of_producer("NULL deleter", PLAIN, has_deleter=False),
    of_producer("0-d", aligned(np.float32(3).reshape(()))),
    of_producer("empty", np.zeros((0, 3), np.float32)),
    of_producer("empty without memory", np.zeros((0, 3), np.float32), address=None),
    of_producer(
        "misaligned",
        PLAIN,
        byte_offset=2,
        shape=(2,),
        strides=(1,),
        shared=False,
        values=np.frombuffer(PLAIN.tobytes()[2:10], np.float32),
    ),
]


def refused(
    name: str, match: str = "", options: dict[str, Any] | None = None, **changes: Any
) -> Case:
    spec = TensorSpec.of_array(PLAIN).but(**changes)
    return Case(f"producer {name}", lambda: Producer(spec, **(options or {})), match=match)


class Garbage:
    """It gives an object that is not a capsule."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __dlpack__(self, **_: Any) -> Any:
        return self.given

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class NoDevice:
    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("asked before its device")


class BadDevice(NoDevice):
    def __init__(self, given: Any) -> None:
        self.given = given

    def __dlpack_device__(self) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


class Uncallable:
    __dlpack__ = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


DISHONEST = [
    refused("future", "major version", version=(2, 0)),
    refused("lanes", "lanes", lanes=4),
    refused("no lanes", lanes=0),
    refused("unknown type", "not known", code=200),
    refused("unknown bits", bits=24),
    refused("absurd dimensions", "dimensions", ndim=2**30),
    refused("negative dimensions", "dimensions", ndim=-1),
    refused("no shape", "NULL", shape=None, ndim=2),
    refused("negative size", shape=(-1, 3)),
    refused("overflowing shape", shape=(2**62, 2**62)),
    refused("overflowing bytes", shape=(2**62, 1)),
    refused("overflowing strides", strides=(2**62, 2**62)),
    refused("strides out of memory", strides=(2**58, 1)),
    refused("strides before memory", strides=(-(2**60), 1)),
    refused("no memory", "NULL", address=None),
    refused("absurd offset", byte_offset=2**62),
    refused("offset past int64", byte_offset=2**63),
    refused("unknown device", options={"device": (99, 0)}, device=(99, 0)),
    refused("negative device", options={"device": (1, -5)}, device=(1, -5)),
    refused("contradicting device", "the capsule is on", options={"device": (2, 0)}),
    refused("misnamed", options={"capsule_name": b"tensor"}),
    refused("consumed", "consumed", options={"capsule_name": b"used_dltensor_versioned"}),
    Case("producer raising", lambda: RaisingProducer(RuntimeError("gone")), match="gone"),
    Case(
        "producer raising BufferError",
        lambda: RaisingProducer(BufferError("the grounds of the producer")),
    ),
    Case("producer raising TypeError", lambda: RaisingProducer(TypeError("a type of its own"))),
    Case("producer raising MemoryError", lambda: RaisingProducer(MemoryError("much"))),
    Case("producer giving None", lambda: Garbage(None), match="not a capsule"),
    Case("producer giving a number", lambda: Garbage(5), match="not a capsule"),
    Case("producer giving an array", lambda: Garbage(PLAIN), match="not a capsule"),
    Case("producer without a device", NoDevice, match="__dlpack_device__"),
    Case("producer of a bad device", lambda: BadDevice("cpu")),
    Case("producer of half a device", lambda: BadDevice((1,))),
    Case("producer of no device", lambda: BadDevice(None)),
    Case("producer that loses its device", lambda: BadDevice(RuntimeError("lost")), match="lost"),
    Case("producer of a device of no type", lambda: BadDevice(TypeError("wrong")), match="wrong"),
    Case("producer not to be called", Uncallable),
]


def capsule(versioned: bool, **fields: Any) -> Callable[[], Any]:
    return lambda: ManagedTensor(
        TensorSpec.of_array(PLAIN).but(**fields), versioned=versioned
    ).capsule()


def named(name: bytes) -> Callable[[], Any]:
    return lambda: ManagedTensor(TensorSpec.of_array(PLAIN), versioned=True).capsule(name)


def of_capsule(name: str, make: Callable[[], Any], **fields: Any) -> Case:
    return Case(
        f"capsule {name}",
        make,
        values=lambda: FLOATS,
        address=lambda _: int(PLAIN.ctypes.data),
        **fields,
    )


CAPSULES = [
    of_capsule("versioned", capsule(True)),
    of_capsule("legacy", capsule(False)),
    of_capsule("read-only", capsule(True, flags=abi.READ_ONLY), readonly=True),
    Case("capsule consumed", named(b"used_dltensor"), match="consumed"),
    Case("capsule misnamed", named(b"dltensor_v2"), match="name"),
    Case("capsule of the future", capsule(True, version=(7, 0)), match="major version"),
]

CASES = [*HONEST, *DISHONEST, *CAPSULES]
