# SPDX-License-Identifier: Apache-2.0
"""Nets keep records of their inputs and outputs."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.caffe2 import core, schema


def Record(*fields: str, blobs: list[Any] | None = None) -> schema.Struct:
    """Return a flat record: fields and, unless it is new, their blobs."""
    given = [core.BlobReference(str(blob)) for blob in blobs or ()] or [None] * len(fields)
    columns = zip(fields, given, strict=True)
    return schema.Struct(*[(name, schema.Scalar(blob=blob)) for name, blob in columns])


def names(record: Any) -> list[str]:
    return [str(blob) for blob in record.field_blobs()]


def test_a_net_has_no_records_at_first() -> None:
    net = core.Net("empty")
    assert net.input_record() is None and net.output_record() is None
    assert net.Clone("copied").input_record() is None


def test_fields_without_blobs_get_external_inputs() -> None:
    net = core.Net("reads")
    record = net.set_input_record(Record("a", "b"))
    assert net.input_record() == record
    assert names(record) == [f"{net.Name()}/a", f"{net.Name()}/b"]
    assert list(net.Proto().external_input) == names(record)
    net.set_input_record(Record("a", "b", blobs=record.field_blobs()))
    with pytest.raises(AssertionError, match="Input schema cannot be reset"):
        net.set_input_record(Record("c"))


def test_outputs_must_be_defined_and_become_external() -> None:
    net = core.Net("writes")
    y = net.Relu("x", "y")
    with pytest.raises(AssertionError, match="z is not defined"):
        net.set_output_record(Record("z", blobs=[core.BlobReference("z")]))
    with pytest.raises(AssertionError, match="missing output record"):
        net.AppendOutputRecordField("y", Record("y", blobs=[y]))
    assert net.output_record() is None and not net.Proto().external_output
    net.set_output_record(Record("y", blobs=[y]))
    net.AppendOutputRecordField("z", Record("z", blobs=[net.Relu(y, "z")]))
    assert names(net.output_record()) == list(net.Proto().external_output) == ["y", "z"]
    with pytest.raises(AssertionError, match="Output schema cannot be reset"):
        net.set_output_record(Record("y", blobs=[y]))


def test_copies_have_the_records_with_renamed_blobs() -> None:
    net = core.Net("cloned")
    record = net.set_input_record(Record("x"))
    net.set_output_record(Record("y", blobs=[net.Relu(record.field_blobs()[0], "y")]))
    clone = net.Clone("clone", {"y": "z"})
    assert names(clone.input_record()) == names(record)
    assert names(clone.output_record()) == ["z"]
    assert net.Clone("bare", keep_schema=False).input_record() is None


def test_nets_are_bound_to_records_by_the_names_of_fields() -> None:
    net = core.Net("bound")
    with pytest.raises(AssertionError, match="no record"):
        core.clone_and_bind_net(net, "c", "p/", inputs=Record("x", blobs=["given"]))
    net.Relu(net.set_input_record(Record("x")).field_blobs()[0], "y")
    with pytest.raises(AssertionError, match=r"extra fields .'x'"):
        core.clone_and_bind_net(net, "c", "p/", inputs=Record("z", blobs=["given"]))
    given = Record("x", "more", blobs=["given", "more"])
    clone, remap = core.clone_and_bind_net(net, "c", "p/", inputs=given)
    assert list(clone.Proto().op[0].input) == ["given"] == names(clone.input_record())
    assert remap["y"] == "p/y"
    clone, _ = core.clone_and_bind_net(net, "d", "p/", inputs=given, keep_schema=False)
    assert clone.input_record() is given


def test_records_are_recovered_from_the_names_of_blobs() -> None:
    net = core.Net("recovered")
    net.AddExternalInput("in/a", "in/b", "other")
    net.recover_input_record_by_prefix("nothing/")
    assert net.input_record() is None
    net.recover_input_record_by_prefix("in/")
    assert net.input_record().field_names() == ["a", "b"]
    net.AddExternalOutput(net.Relu("in/a", "out/y"))
    net.recover_output_record_by_prefix("out/")
    assert names(net.output_record()) == ["out/y"]
