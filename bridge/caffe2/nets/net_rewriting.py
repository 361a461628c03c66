# SPDX-License-Identifier: Apache-2.0
"""What copies nets and changes them as a whole: the part of Net that adds no operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.c10.errors import EnforceAssertionError, EnforceIndexError
from bridge.caffe2.base.messages import as_message, caffe2_pb2, set_fields
from bridge.caffe2.definitions.ssa import get_op_ids_in_path, get_ssa, get_undefined_blobs
from bridge.caffe2.definitions.tracebacks import operator_tracebacks
from bridge.caffe2.nets.remapping import DEFAULT_REMAP_FUNCS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["NetRewriting", "remap_input", "rename"]


class NetRewriting:
    """Copies of a net and changes to it as a whole; the base of `Net`, not made by itself."""

    if TYPE_CHECKING:
        _net: Any
        _op_outputs: set[str]
        _external_input_map: set[str]
        _attr_dict: dict[str, list[Any]]

        def __init__(self, name_or_proto: Any) -> None: ...
        def Name(self) -> str: ...  # noqa: D102
        def Proto(self) -> Any: ...  # noqa: D102
        def BlobIsDefined(self, blob: Any) -> bool: ...  # noqa: D102
        def GetBlobRef(self, blob_name: Any) -> Any: ...  # noqa: D102
        def _ExtendOps(self, new_ops: Iterable[Any]) -> None: ...

    def AppendNet(self, net: Self, device_option: Any = None) -> Self:
        """Add the operators of `net` behind, on another device if one is given; give this net."""
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
        operators = _copies(theirs.op)
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
        """Copy the net under another name.

        blob_remap: new names of blobs. op_id_mask: which operators to take, by position; None is
        all. remap_funcs: by operator type, called as ``f(operator, prefix, blob_remap)`` for
        operators that name blobs in their arguments, besides those of `DEFAULT_REMAP_FUNCS`.
        update_external_list: find external inputs and outputs anew. (There are no schemas here;
        keep_schema is taken for compatibility.)
        """
        remap = {str(old): str(new) for old, new in (blob_remap or {}).items()}
        functions = {**DEFAULT_REMAP_FUNCS, **(remap_funcs or {})}
        made = caffe2_pb2().NetDef()
        made.CopyFrom(self._net)
        set_fields(made, "Net.Clone", name=name)
        count = len(self._net.op)
        ids = range(count) if op_id_mask is None else list(op_id_mask)
        if not all(-count <= i < count for i in ids):
            raise EnforceIndexError(
                f"op_id_mask names operators {ids}, and the net has {count}.", "Net.Clone"
            )
        operators = _copies(self._net.op[i] for i in ids)
        for operator in operators:
            remap_input(operator, remap)
            rename(operator.output, remap)
            if operator.type in functions:
                functions[operator.type](operator, name + "/" if name else "", blob_remap or {})
        del made.op[:]
        made.op.extend(operators)
        rename(made.external_input, remap)
        rename(made.external_output, remap)
        if update_external_list:
            _find_externals(made)
        clone = type(self)(made)
        clone._attr_dict.update(self._attr_dict)
        return clone

    def ClonePartial(
        self,
        name: str,
        inputs: Any,
        outputs: Any,
        remap_funcs: dict[str, Callable[..., Any]] | None = None,
    ) -> tuple[Self, list[Any]]:
        """Copy the operators that `outputs` need, `inputs` being given; refer to the outputs.

        inputs: a list of blobs, or a dict, or a list of pairs, of blobs and their names in the
        copy. Blobs in between get names that begin with that of the copy.

        Raises EnforceNotMet, also an AssertionError: an output is not the net's, or an operator
        that is needed would make one of the inputs.
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
                "Some of the operators that the outputs need would make the inputs.", caller
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
        """Insert an operator at a position; one behind the last is the last.

        Raises EnforceNotMet: no OperatorDef, or a negative position (also an AssertionError).
        """
        caller = "Net.insert_op_at_idx"
        if op_idx < 0:
            raise EnforceAssertionError(
                f"{op_idx} is no position.", caller, condition="op_idx >= 0"
            )
        proto = self.Proto()
        inserted = _copies([as_message(op, "OperatorDef", caller), *proto.op[op_idx:]])
        del proto.op[op_idx:]
        proto.op.extend(inserted)

    def reroute_tensor(
        self, tensor: Any, new_producer: Any, can_modify: Iterable[Any] | None = None
    ) -> int:
        """Insert an operator that takes `tensor`, and have others take what it makes instead.

        It goes behind the operators that make its inputs. can_modify: the operators that are to
        take the new blob. External outputs are renamed. Gives the number of operators changed.

        Raises EnforceNotMet, also an AssertionError: nothing makes what the operator takes.
        """
        caller = "Net.reroute_tensor"
        old, proto = str(tensor), self.Proto()
        producer = as_message(new_producer, "OperatorDef", caller)
        if not producer.input or not producer.output:
            raise EnforceAssertionError(
                f"Operator {producer.type!r} is to take {old!r} and make another blob.", caller
            )
        first: dict[str, int] = {}
        for position, operator in enumerate(proto.op):
            for name in operator.output:
                first.setdefault(name, position)
        behind = max(
            (-1 if name in proto.external_input else first.get(name, -2)) for name in producer.input
        )
        new = str(producer.output[0])
        # Compared as they are before the new operator is among them.
        changed = list(can_modify or ())
        self.insert_op_at_idx(producer, behind + 1)
        rename(proto.external_output, {old: new})
        count = 0
        for operator in proto.op:
            if operator in changed:
                remap_input(operator, {old: new})
                count += 1
        return count

    def PopulateProtoWithFileName(self) -> None:
        """Name each operator after where it was added: file, line and function."""
        places = operator_tracebacks.get(self.Name(), {})
        for position, operator in enumerate(self.Proto().op):
            if position in places:
                operator.name = ":".join(map(str, places[position][0]))

    def set_rand_seed(
        self, seed: int = 100, sequence_seed: bool = True, seed_on_op_def: bool = False
    ) -> None:
        """Return each operator a seed: `seed`, `seed` and its position, or one after its text.

        Raises EnforceNotMet: both kinds are asked for (also an AssertionError), or a seed is not of
        32 bits (also a ValueError).
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
        """Have operators that name no device run on a CUDA device."""
        _run_on_gpu(self._net, gpu_id, use_cudnn)


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


def remap_input(op: Any, blob_name_remapping: dict[str, str]) -> None:
    """Rename inputs of an operator, in place."""
    rename(op.input, blob_name_remapping)


def rename(names: Any, remap: dict[str, str]) -> None:
    """Rename blobs in a list of a message, in place."""
    renamed = [remap.get(name, name) for name in names]
    del names[:]
    names.extend(renamed)


def _copies(operators: Iterable[Any]) -> list[Any]:
    made = []
    for operator in operators:
        copy = caffe2_pb2().OperatorDef()
        copy.CopyFrom(operator)
        made.append(copy)
    return made


def _find_externals(net: Any) -> None:
    """List as external inputs what no operator makes before, as outputs what none uses."""
    made: dict[str, None] = {}
    used: set[str] = set()
    inputs: dict[str, None] = {}
    for operator in net.op:
        for name in operator.input:
            (used.add if name in made else inputs.setdefault)(name)
        made.update(dict.fromkeys(operator.output))
    del net.external_input[:]
    net.external_input.extend(inputs)
    del net.external_output[:]
    net.external_output.extend(name for name in made if name not in used)
