# SPDX-License-Identifier: Apache-2.0
"""NetRecords: the records of a net, which name its inputs and outputs by fields."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.scope import NameScope

TYPE_CHECKING = False


def _columns() -> Any:
    """Return the module of records; it loads NumPy, which nets alone do not need."""
    from bridge.caffe2.schema import columns

    return columns


class NetRecords:
    """The base class of `Net` for the records of its inputs and outputs."""

    _input_record: Any = None
    _output_record: Any = None

    if TYPE_CHECKING:
        _net: Any

        def Name(self) -> str: ...  # noqa: D102
        def BlobIsDefined(self, blob: Any) -> bool: ...  # noqa: D102
        def is_external_input(self, blob: Any) -> bool: ...  # noqa: D102
        def AddExternalInput(self, *inputs: Any) -> Any: ...  # noqa: D102
        def AddExternalOutput(self, *outputs: Any) -> None: ...  # noqa: D102

    def input_record(self) -> Any:
        """Return the record of the inputs, None if there is none."""
        return self._input_record

    def output_record(self) -> Any:
        """Return the record of the outputs, None if there is none."""
        return self._output_record

    def set_input_record(self, input_record: Any) -> Any:
        """Set the record of the inputs; its blobs become external inputs. Return the record.

        The fields of a record without blobs get new ones, in a name scope named after the net.

        Raises EnforceNotMet, also an AssertionError: there is a record, with other blobs.
        """
        record = input_record
        self._check_same_blobs(self._input_record, record, "Net.set_input_record")
        if not record.has_blobs():
            with NameScope(self.Name()):
                record = _columns().NewRecord(self, record)
        self._input_record = record
        for blob in record.field_blobs():
            if not self.is_external_input(blob):
                self.AddExternalInput(blob)
        return record

    def set_output_record(self, record: Any) -> None:
        """Set the record of the outputs; its blobs become external outputs.

        Raises EnforceNotMet, also an AssertionError: there is a record, with other blobs, or a blob
        is not defined in the net.
        """
        caller = "Net.set_output_record"
        self._check_same_blobs(self._output_record, record, caller)
        self._check_defined(record, caller)
        there = set(self._net.external_output)
        self.AddExternalOutput(*[blob for blob in record.field_blobs() if str(blob) not in there])
        self._output_record = record

    def AppendOutputRecordField(self, field_name: str, record: Any) -> None:
        """Add a field to the record of the outputs; its blobs become external outputs.

        Raises EnforceNotMet, also an AssertionError: there is no record of outputs, or a blob is
        not defined in the net.
        """
        caller = "Net.AppendOutputRecordField"
        if self._output_record is None:
            raise EnforceAssertionError("Tried to append to missing output record", caller)
        self._check_defined(record, caller)
        self.AddExternalOutput(*record.field_blobs())
        self._output_record = self._output_record + _columns().as_record({field_name: record})

    def recover_input_record_by_prefix(self, prefix: str) -> None:
        """Set the record of the inputs to the external inputs whose names begin with `prefix`.

        The rest of a name is the name of a field, with ``:`` between the names of nested ones.
        """
        record = _by_prefix(self._net.external_input, prefix)
        if record:
            self.set_input_record(record)

    def recover_output_record_by_prefix(self, prefix: str) -> None:
        """Set the record of the outputs; see `recover_input_record_by_prefix`."""
        record = _by_prefix(self._net.external_output, prefix)
        if record:
            self.set_output_record(record)

    def _check_same_blobs(self, old: Any, new: Any, caller: str) -> None:
        """Raise unless there is no old record, or the new one has the same blobs."""
        if old is None or (new.has_blobs() and set(new.field_blobs()) == set(old.field_blobs())):
            return
        side = "Input" if "input" in caller else "Output"
        raise EnforceAssertionError(f"{side} schema cannot be reset", caller)

    def _check_defined(self, record: Any, caller: str) -> None:
        """Raise unless all blobs of a record are defined in the net."""
        for blob in record.field_blobs():
            if not self.BlobIsDefined(blob):
                raise EnforceAssertionError(
                    f"{blob} is not defined in net {self.Name()!r}.", caller
                )

    def _copy_records(self, net: NetRecords, blob_remap: dict[Any, Any] | None) -> None:
        """Set the records to the records of `net`, with the blobs renamed."""
        self._input_record = self._renamed(net._input_record, blob_remap or {})
        self._output_record = self._renamed(net._output_record, blob_remap or {})

    def _renamed(self, record: Any, blob_remap: dict[Any, Any]) -> Any:
        if not record:
            return None
        names = [str(blob_remap.get(str(blob), blob)) for blob in record.field_blobs()]
        return _columns().from_blob_list(record, [BlobReference(name, self) for name in names])


def _by_prefix(names: Iterable[str], prefix: str) -> Any:
    """Return the record of the blobs whose names begin with `prefix`; None if there are none."""
    blobs = [BlobReference(name) for name in names if name.startswith(prefix)]
    if not blobs:
        return None
    return _columns().from_column_list(
        [str(blob)[len(prefix) :] for blob in blobs], col_blobs=blobs
    )


def bind_record(net: NetRecords, inputs: Any, blob_remap: dict[str, Any]) -> None:
    """Extend `blob_remap` by the blobs of the record `inputs`, for the fields that `net` reads.

    Raises EnforceNotMet, also an AssertionError: `net` has no record of inputs, or one with fields
    that `inputs` lacks.
    """
    caller = "clone_and_bind_net"
    record = net.input_record()
    if record is None:
        raise EnforceAssertionError(
            f"Net {net.Name()!r} has no record of its inputs to bind by.",
            caller,
            condition="net.input_record() is not None",
        )
    lacking = set(record.field_names()) - set(inputs.field_names())
    if lacking:
        raise EnforceAssertionError(
            f"Schemas don't match, extra fields {lacking} found in the net {net.Name()}. original: "
            f"{record.field_names()}; inputs: {inputs.field_names()}",
            caller,
        )
    read = dict(zip(record.field_names(), record.field_blobs(), strict=True))
    for name, blob in zip(inputs.field_names(), inputs.field_blobs(), strict=True):
        if name in read:
            blob_remap[str(read[name])] = str(blob)
