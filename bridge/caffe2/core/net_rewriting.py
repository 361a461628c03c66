# SPDX-License-Identifier: Apache-2.0
"""NetRewriting: the methods of Net that copy a net or change it as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.messages import as_message, caffe2_pb2, set_fields
from bridge.caffe2.core.cloning import clone_net_def, copy_operators, remap_input, rename
from bridge.caffe2.core.net_records import NetRecords, bind_record
from bridge.caffe2.definitions.ssa import get_op_ids_in_path, get_ssa, get_undefined_blobs
from bridge.caffe2.definitions.tracebacks import operator_tracebacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class NetRewriting(NetRecords):
    """The base class of `Net`: copies of a net, and changes to it as a whole."""

    if TYPE_CHECKING:
        _op_outputs: set[str]
        _external_input_map: set[str]
        _attr_dict: dict[str, list[Any]]

        def __init__(self, name_or_proto: Any) -> None: ...
        def Proto(self) -> Any: ...  # noqa: D102
        def GetBlobRef(self, blob_name: Any) -> Any: ...  # noqa: D102
        def _ExtendOps(self, new_ops: Iterable[Any]) -> None: ...

    def AppendNet(self, net: Self, device_option: Any = None) -> Self:
        """Append copies of the operators of `net`, on `device_option` if given; return this net.

        The external inputs and outputs of `net` are added, except inputs that this net makes.
        Raises EnforceNotMet, also an AssertionError: `net` is not a Net.
        """
        if not isinstance(net, NetRewriting):
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
        given = {str(old): str(new) for old, new in pairs}
        wanted = [str(one) for one in outputs]
        for output in wanted:
            if not self.BlobIsDefined(output):
                raise EnforceAssertionError(f"{output} is not defined.", caller)
        ssa, versions = get_ssa(self._net, dict.fromkeys(given, 0))
        used = get_op_ids_in_path(ssa, versions, list(given), wanted)
        if set(used) & set(get_op_ids_in_path(ssa, versions, [], list(given))):
            raise EnforceAssertionError(
                "Some of the operators that the outputs need write the inputs.", caller
            )
        undefined = get_undefined_blobs([ssa[i] for i in used]) - set(given)
        prefix = name + "/" if name else ""
        mapping = {
            blob: given.get(blob, blob if blob in undefined else prefix + blob) for blob in versions
        }
        clone = self.Clone(name, mapping, used, remap_funcs)
        proto = clone.Proto()
        del proto.external_input[:]
        proto.external_input.extend([mapping[blob] for blob in given] + sorted(undefined))
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
    net: NetRewriting,
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
