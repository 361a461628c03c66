# SPDX-License-Identifier: Apache-2.0
"""NetBase: the methods of Net on a net as a whole: copies, changes, records, observers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.annotation import Any, Self
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.created_nets import created_net
from bridge.caffe2.base.messages import as_message, caffe2_pb2, set_fields
from bridge.caffe2.core.cloning import clone_net_def, copy_operators, remap_input, rename
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.scope import NameScope
from bridge.caffe2.definitions.ssa import get_op_ids_in_path, get_ssa, get_undefined_blobs
from bridge.caffe2.definitions.tracebacks import operator_tracebacks

TYPE_CHECKING = False


class NetBase:
    """The base class of `Net`, which adds the construction of a net.

    The records of a net name its inputs and outputs by fields.
    """

    _input_record: Any = None
    _output_record: Any = None

    if TYPE_CHECKING:
        _net: Any
        _op_outputs: set[str]
        _external_input_map: set[str]
        _attr_dict: dict[str, list[Any]]

        def __init__(self, name_or_proto: Any) -> None: ...
        def Name(self) -> str: ...  # noqa: D102
        def Proto(self) -> Any: ...  # noqa: D102
        def BlobIsDefined(self, blob: Any) -> bool: ...  # noqa: D102
        def is_external_input(self, blob: Any) -> bool: ...  # noqa: D102
        def AddExternalInput(self, *inputs: Any) -> Any: ...  # noqa: D102
        def AddExternalOutput(self, *outputs: Any) -> None: ...  # noqa: D102
        def GetBlobRef(self, blob_name: Any) -> Any: ...  # noqa: D102
        def _ExtendOps(self, new_ops: Iterable[Any]) -> None: ...

    # Copies, and changes of all operators.

    def AppendNet(self, net: Self, device_option: Any = None) -> Self:
        """Append copies of the operators of `net`, on `device_option` if given; return this net.

        The external inputs and outputs of `net` are added, except inputs that this net makes.
        Raises EnforceNotMet, also an AssertionError: `net` is not a Net.
        """
        if not isinstance(net, NetBase):
            raise EnforceAssertionError(
                f"A Net is appended, not {type(net).__name__}.", "Net.AppendNet"
            )
        theirs, mine = net.Proto(), self.Proto()
        for name in theirs.external_input:
            if name not in mine.external_input and name not in self._op_outputs:
                mine.external_input.append(name)
        for name in theirs.external_output:
            if name not in mine.external_output:
                mine.external_output.append(name)
        operators = copy_operators(theirs.op)
        if device_option is not None:
            device = as_message(device_option, "DeviceOption", "Net.AppendNet")
            for operator in operators:
                operator.device_option.CopyFrom(device)
        self._ExtendOps(operators)
        return self

    def Clone(
        self,
        name: str,
        blob_remap: dict[Any, Any] | None = None,
        op_id_mask: Iterable[int] | None = None,
        remap_funcs: dict[str, Callable[..., Any]] | None = None,
        keep_schema: bool = True,
        update_external_list: bool = False,
    ) -> Self:
        """Return a copy of the net under another name.

        blob_remap: new names of blobs. op_id_mask: the positions of the operators to copy; None is
        all. remap_funcs: by operator type, called as ``f(operator, prefix, blob_remap)`` for
        operators whose arguments name blobs, besides `DEFAULT_REMAP_FUNCS`.
        update_external_list: compute external inputs and outputs anew. keep_schema: also copy the
        records of the net, with the blobs renamed.

        Raises EnforceNotMet: a position is out of range (also an IndexError), or an operator that
        runs a net has none (also an AssertionError).

        >>> from bridge.caffe2 import core
        >>> net = core.Net("clone_doc")
        >>> y = net.Relu("x", "y")
        >>> [list(op.output) for op in net.Clone("copied_doc", {"y": "z"}).Proto().op]
        [['z']]
        """
        message = clone_net_def(
            self._net, name, blob_remap, op_id_mask, remap_funcs, update_external_list
        )
        clone = type(self)(message)
        clone._attr_dict.update(self._attr_dict)
        if keep_schema:
            clone._copy_records(self, blob_remap)
        return clone

    def ClonePartial(
        self,
        name: str,
        inputs: Any,
        outputs: Any,
        remap_funcs: dict[str, Callable[..., Any]] | None = None,
    ) -> tuple[Self, list[Any]]:
        """Return a net of copies of the operators that compute `outputs` from `inputs`.

        The second result lists references to the outputs. inputs: a list of blobs, or a dict or a
        list of pairs, of blobs and their names in the copy. The names of intermediate blobs are
        prefixed with the name of the copy.

        Raises EnforceNotMet, also an AssertionError: an output is not defined in the net, or a
        needed operator writes one of the inputs.
        """
        caller = "Net.ClonePartial"
        if isinstance(inputs, dict):
            pairs = list(inputs.items())
        else:
            pairs = [one if isinstance(one, tuple) else (one, one) for one in inputs]
        input_names = {str(old): str(new) for old, new in pairs}
        wanted = [str(one) for one in outputs]
        for output in wanted:
            if not self.BlobIsDefined(output):
                raise EnforceAssertionError(f"{output} is not defined.", caller)
        ssa, versions = get_ssa(self._net, dict.fromkeys(input_names, 0))
        used = get_op_ids_in_path(ssa, versions, list(input_names), wanted)
        if set(used) & set(get_op_ids_in_path(ssa, versions, [], list(input_names))):
            raise EnforceAssertionError(
                "Some of the operators that the outputs need write the inputs.", caller
            )
        undefined = get_undefined_blobs([ssa[i] for i in used]) - set(input_names)
        prefix = name + "/" if name else ""
        mapping = {
            blob: input_names.get(blob, blob if blob in undefined else prefix + blob)
            for blob in versions
        }
        clone = self.Clone(name, mapping, used, remap_funcs)
        proto = clone.Proto()
        del proto.external_input[:]
        proto.external_input.extend([mapping[blob] for blob in input_names] + sorted(undefined))
        del proto.external_output[:]
        proto.external_output.extend([mapping[blob] for blob in wanted])
        return clone, [clone.GetBlobRef(mapping[blob]) for blob in wanted]

    def insert_op_at_idx(self, op: Any, op_idx: int) -> None:
        """Insert an operator before the position `op_idx`; append it if there are fewer operators.

        Raises EnforceNotMet: not an OperatorDef (also a TypeError), or a negative position (also an
        AssertionError).
        """
        caller = "Net.insert_op_at_idx"
        if op_idx < 0:
            raise EnforceAssertionError(
                f"The position must not be negative: {op_idx}.", caller, condition="op_idx >= 0"
            )
        proto = self.Proto()
        inserted = copy_operators([as_message(op, "OperatorDef", caller), *proto.op[op_idx:]])
        del proto.op[op_idx:]
        proto.op.extend(inserted)

    def reroute_tensor(
        self, tensor: Any, new_producer: Any, can_modify: Iterable[Any] | None = None
    ) -> int:
        """Insert an operator that reads `tensor`; make others read its first output instead.

        It is inserted after the operators that write its inputs. can_modify: the operators that are
        to read the new blob. External outputs are renamed. Return the number of operators changed.

        Raises EnforceNotMet, also an AssertionError: the operator has no inputs or no outputs, or
        nothing writes an input of it.
        """
        caller = "Net.reroute_tensor"
        old, proto = str(tensor), self.Proto()
        producer = as_message(new_producer, "OperatorDef", caller)
        if not producer.input or not producer.output:
            raise EnforceAssertionError(
                f"Operator {producer.type!r} must read {old!r} and write another blob.", caller
            )
        first: dict[str, int] = {}
        for position, operator in enumerate(proto.op):
            for name in operator.output:
                first.setdefault(name, position)
        last = max(
            (-1 if name in proto.external_input else first.get(name, -2)) for name in producer.input
        )
        new = str(producer.output[0])
        # A copy: `can_modify` may be a view of the operators, which the insertion changes.
        changed = list(can_modify or ())
        self.insert_op_at_idx(producer, last + 1)
        rename(proto.external_output, {old: new})
        count = 0
        for operator in proto.op:
            if operator in changed:
                remap_input(operator, {old: new})
                count += 1
        return count

    def PopulateProtoWithFileName(self) -> None:
        """Set the name of each operator to the place that added it: ``file:line:function``."""
        places = operator_tracebacks.get(self.Name(), {})
        for position, operator in enumerate(self.Proto().op):
            if position in places:
                operator.name = ":".join(map(str, places[position][0]))

    def set_rand_seed(
        self, seed: int = 100, sequence_seed: bool = True, seed_on_op_def: bool = False
    ) -> None:
        """Set the random seed of each operator.

        It is ``seed + position`` with `sequence_seed`, a hash of the operator and `seed` with
        `seed_on_op_def`, and `seed` otherwise. Raises EnforceNotMet: both are asked for (also an
        AssertionError), or a seed does not fit into 32 bits (also a ValueError).
        """
        if sequence_seed and seed_on_op_def:
            raise EnforceAssertionError(
                "sequence_seed and seed_on_op_def cannot be both set to True.",
                "Net.set_rand_seed",
            )
        seeds = []
        for position, operator in enumerate(self.Proto().op):
            chosen = caffe2_pb2().DeviceOption()
            if sequence_seed:
                number = seed + position
            elif seed_on_op_def:
                number = hash(str(operator) + str(seed)) % (2**32 - 1)
            else:
                number = seed
            set_fields(chosen, "Net.set_rand_seed", random_seed=number)
            seeds.append(chosen)
        for operator, chosen in zip(self.Proto().op, seeds, strict=True):
            operator.device_option.MergeFrom(chosen)

    def RunAllOnGPU(self, gpu_id: int = 0, use_cudnn: bool = False) -> None:
        """Set the device of the net, where operators without a device of their own run, to a GPU.

        use_cudnn: also set the engine of every operator to CUDNN.
        """
        _run_on_gpu(self._net, gpu_id, use_cudnn)

    def RunAllOnIDEEP(self) -> None:
        """Set the device of the net to IDEEP, which is the CPU."""
        set_fields(self._net.device_option, "Net.RunAllOnIDEEP", device_type=caffe2_pb2().IDEEP)

    def RunAllOnMKL(self) -> None:
        """Set the device of the net to MKLDNN, which is the CPU."""
        set_fields(self._net.device_option, "Net.RunAllOnMKL", device_type=caffe2_pb2().MKLDNN)

    # Records.

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

    def _copy_records(self, net: NetBase, blob_remap: dict[Any, Any] | None) -> None:
        """Set the records to the records of `net`, with the blobs renamed."""
        self._input_record = self._renamed(net._input_record, blob_remap or {})
        self._output_record = self._renamed(net._output_record, blob_remap or {})

    def _renamed(self, record: Any, blob_remap: dict[Any, Any]) -> Any:
        if not record:
            return None
        names = [str(blob_remap.get(str(blob), blob)) for blob in record.field_blobs()]
        return _columns().from_blob_list(record, [BlobReference(name, self) for name in names])

    # Observers of the net that has been created in the current workspace.

    def AddObserver(self, observer_type: str) -> Any:
        """Add an observer to the created net of this name, and return it.

        observer_type: "TimeObserver", whose `average_time()` and `average_time_children()` are in
        milliseconds; "RunCountObserver", whose `debug_info()` has the number of runs of operators;
        "ProfileObserver", which logs each operator. Operators then run one by one, a net of type
        "compiled" too.

        Raises EnforceNotMet: no such kind (also a ValueError), or the net is not created in the
        current workspace (also a KeyError).

        >>> import numpy as np
        >>> from bridge.caffe2 import core, workspace
        >>> net = core.Net("observed_doc")
        >>> _ = net.Relu(net.Relu("x", "y"), "z")
        >>> workspace.FeedBlob("x", np.ones(2, np.float32)), workspace.CreateNet(net)
        (True, True)
        >>> observer = net.AddObserver("RunCountObserver")
        >>> workspace.RunNet(net, 3), observer.debug_info(), net.NumObservers()
        (True, 'This operator runs 6 times.', 1)
        >>> net.RemoveObserver(observer)
        >>> net.NumObservers(), workspace.ResetWorkspace()
        (0, True)
        """
        return self._created("AddObserver").add_observer(observer_type, "Net.AddObserver")

    def RemoveObserver(self, observer: Any) -> None:
        """Remove an observer, if the created net of this name has it.

        Raises EnforceNotMet, also a KeyError: the net is not created in the current workspace.
        """
        self._created("RemoveObserver").remove_observer(observer)

    def NumObservers(self) -> int:
        """Return the number of observers; raise EnforceNotMet as `RemoveObserver`."""
        return len(self._created("NumObservers").observers)

    def _created(self, method: str) -> Any:
        return created_net(self.Name(), f"Net.{method}")


def _columns() -> Any:
    """Return the module of records; it loads NumPy, which nets alone do not need."""
    from bridge.caffe2.schema import columns

    return columns


def _run_on_gpu(net: Any, gpu_id: int, use_cudnn: bool) -> None:
    device = caffe2_pb2().DeviceOption()
    set_fields(device, "Net.RunAllOnGPU", device_type=1, device_id=gpu_id)
    net.device_option.CopyFrom(device)
    for operator in net.op:
        if use_cudnn:
            operator.engine = "CUDNN"
        if operator.type == "RecurrentNetwork":
            for argument in operator.arg:
                if argument.name == "step_net":
                    _run_on_gpu(argument.n, gpu_id, use_cudnn)


def clone_and_bind_net(
    net: NetBase,
    name: str,
    prefix: str,
    blob_remap: dict[str, Any] | None = None,
    inputs: Any = None,
    keep_schema: bool = True,
) -> tuple[Any, dict[str, Any]]:
    """Return a copy of a net whose operators write blobs prefixed with `prefix`, and the renaming.

    blob_remap: new names of some blobs; it is extended in place by the names of the others, and is
    the second result. inputs: a record, whose blobs take the place of the blobs in the net's record
    of inputs, by the names of the fields. keep_schema: the copy has the records of the net;
    otherwise `inputs`.

    Raises EnforceNotMet, also an AssertionError: `inputs` lacks a field of the net's record, or the
    net has none.
    """
    remap = {} if blob_remap is None else blob_remap
    if inputs is not None:
        bind_record(net, inputs, remap)
    ssa, versions = get_ssa(net.Proto())
    undefined = get_undefined_blobs(ssa)
    for blob in versions:
        remap.setdefault(blob, blob if blob in undefined else prefix + blob)
    clone = net.Clone(name, remap, keep_schema=keep_schema)
    if inputs and not keep_schema:
        clone.set_input_record(inputs)
    return clone, remap


def _by_prefix(names: Iterable[str], prefix: str) -> Any:
    """Return the record of the blobs whose names begin with `prefix`; None if there are none."""
    blobs = [BlobReference(name) for name in names if name.startswith(prefix)]
    if not blobs:
        return None
    return _columns().from_column_list(
        [str(blob)[len(prefix) :] for blob in blobs], col_blobs=blobs
    )


def bind_record(net: NetBase, inputs: Any, blob_remap: dict[str, Any]) -> None:
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
