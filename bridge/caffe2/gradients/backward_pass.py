# SPDX-License-Identifier: Apache-2.0
"""GradientRegistry and IR: the gradient operators of a net, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bridge.annotation import Any, ClassVar
from bridge.c10.errors import EnforceKeyError, EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import CreateOperator
from bridge.caffe2.definitions.schemas import check_names
from bridge.caffe2.gradients.gradient_slice import GradientSlice, OpSSA
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import declared_gradient
from bridge.caffe2.gradients.sums import ONLY_SUM_TAG, SUM_TAG, Contribution, Part, sum_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    Gradient = str | GradientSlice | None
    Version = tuple[str, int]

    # Takes an OperatorDef and the gradients of its outputs, each may be None. Returns an
    # OperatorDef, a list of them or None, and the gradients of the inputs.
    Maker = Callable[[Any, Sequence[Any]], tuple[Any, Sequence[Any]]]


_CALLER = "GradientRegistry.GetBackwardPass"
_OF_OPERATOR = "GradientRegistry.GetGradientForOp"


class _Step:
    """An operator, with the versions of the blobs that it reads and writes."""

    __slots__ = ("op", "read", "written")

    def __init__(self, op: Any, versions: dict[str, int]) -> None:
        self.op = op
        self.read = {name: versions.setdefault(name, 0) for name in op.input}
        for name in op.output:
            versions[name] = versions[name] + 1 if name in versions else 0
        self.written = {name: versions[name] for name in op.output}


class IR:
    """The operators of a net in order, with the versions of their blobs.

    Writing to a blob again creates a new version of it, and gradients belong to versions. Where
    several operators read a version, its gradient is the sum of their contributions. The sum is
    added after the gradient operators of the first of these operators.

    Raises EnforceNotMet: `operators` cannot be iterated over (also a TypeError), or nothing reads
    the output of a StopGradient (also a ValueError).
    Follows IR, caffe2/python/core.py, PyTorch 1.8.1.
    """

    AUTOGEN_GRAD_SUFFIX = "_autogen_grad"
    IS_AUTO_GEN_SUM_OPS_TAG = SUM_TAG
    ONLY_KEEP_IS_AUTO_GEN_SUM_OPS_TAG = ONLY_SUM_TAG

    def __init__(self, operators: Iterable[Any]) -> None:
        if not isinstance(operators, Iterable):
            raise EnforceTypeError(
                f"operators must be a list of OperatorDefs, not {type(operators).__name__}.",
                _CALLER,
            )
        # The version of each blob after the last operator, when the gradient operators run.
        self._versions: dict[str, int] = {}
        self._steps = [
            _Step(as_message(op, "OperatorDef", _CALLER), self._versions) for op in operators
        ]
        self._users: dict[Version, list[int]] = {}
        self._writers: dict[Version, int] = {}
        for position, step in enumerate(self._steps):
            for name in step.op.input:
                self._users.setdefault((name, step.read[name]), []).append(position)
            self._writers.update(((name, step.written[name]), position) for name in step.op.output)
        self._check_stops()
        # By blob: its gradient so far, and the version of the blob that this gradient belongs to.
        self._gradients: dict[str, Gradient] = {}
        self._gradient_versions: dict[str, int] = {}
        self._contributions: dict[Version, list[Contribution]] = {}
        # By gradient that no operator wrote: the versions of all blobs that it is the gradient of.
        self._shared: dict[str, list[Version]] = {}

    @property
    def ssa(self) -> list[OpSSA]:
        """The operators, with the versions of the blobs that each reads and writes."""
        return [OpSSA(step.op, dict(step.read), dict(step.written)) for step in self._steps]

    @property
    def frontier(self) -> dict[str, int]:
        """The last version of each blob, as a new dict."""
        return dict(self._versions)

    def _check_stops(self) -> None:
        used = {name for name, _ in self._users}
        for step in self._steps:
            if step.op.type == "StopGradient" and step.op.output[0] not in used:
                raise EnforceValueError(
                    f"StopGradient's output {step.op.output[0]!r} is orphan: no operator uses it. "
                    "Use the same blob as input and output.",
                    _CALLER,
                )

    def GetBackwardPass(self, ys: Any, adds_given: bool = True) -> tuple[list[Any], dict[Any, Any]]:
        """Return the gradient operators, and the gradients by blob; to be called once.

        adds_given: whether the given gradient of a blob is added to the gradients of the operators
        that read the blob; otherwise these replace it. See `GradientRegistry.GetBackwardPass`.
        """
        gradient_ops = self._start(ys, adds_given)
        for position in reversed(range(len(self._steps))):
            gradient_ops += self._step_back(position)
            gradient_ops += self._sum_gradients(position)
        gradients: dict[Any, Any] = {}
        for name, gradient in self._gradients.items():
            if isinstance(gradient, GradientSlice):
                gradients[BlobReference(name)] = GradientSlice(*map(BlobReference, gradient))
            elif gradient is not None:
                gradients[BlobReference(name)] = BlobReference(gradient)
        return gradient_ops, gradients

    def _start(self, ys: Any, adds_given: bool) -> list[Any]:
        """Register the gradients of `ys`; return operators that fill those not given with ones."""
        if isinstance(ys, list):
            try:
                ys = dict.fromkeys(ys)
            except TypeError as cause:
                raise EnforceTypeError(f"ys is not a list of blobs: {cause}", _CALLER) from cause
        elif not isinstance(ys, dict):
            raise EnforceTypeError("ys should either be a list or a dict.", _CALLER)
        gradient_ops = []
        for y, given in ys.items():
            name = str(y)
            version = self._versions.setdefault(name, 0)
            self._gradient_versions[name] = version
            is_read = (name, version) in self._users
            self._users.setdefault((name, version), []).append(len(self._steps))
            if given is None:
                blob = name + self.AUTOGEN_GRAD_SUFFIX
                ones = CreateOperator("ConstantFill", [y], [blob], value=1.0)
                gradient_ops.append(ones)
                gradient: Gradient = str(ones.output[0])
                part = Part(ones.output[0], [(ones, 0)])
                self._contribute((name, version), (part,), ones.device_option)
            else:
                gradient = (
                    GradientSlice(*map(str, given)) if isinstance(given, tuple) else str(given)
                )
                parts = tuple(Part(blob, is_given=True) for blob in _blobs(gradient))
                if adds_given or not is_read:
                    self._contribute((name, version), parts, None)
            self._gradients[name] = gradient
        return gradient_ops

    def _step_back(self, position: int) -> list[Any]:
        """Return the gradient operators of one operator; empty if no output has a gradient."""
        step = self._steps[position]
        op = step.op
        output_gradients = [self._gradients.get(name) for name in op.output]
        if all(one is None for one in output_gradients) and op.type != "ZeroGradient":
            return []
        gradient_ops, input_gradients = GradientRegistry.GetGradientForOp(op, output_gradients)
        if len(input_gradients) != len(op.input):
            raise EnforceNotMet(
                f"The gradient function of {op.type!r} returned {len(input_gradients)} gradients "
                f"for {len(op.input)} inputs; it must return None for an input without one.",
                _CALLER,
                condition="len(g_input) == len(op.input)",
            )
        self._check_versions(step, gradient_ops, output_gradients)
        input_gradients = self._rename_overwritten(position, gradient_ops, input_gradients)
        self._register_contributions(step, gradient_ops, input_gradients)
        fresh: dict[str, Gradient] = {}
        for name, gradient in zip(op.input, input_gradients, strict=True):
            if gradient is not None or name not in self._gradients or name in op.output:
                fresh[name] = gradient
            if gradient is not None:
                self._gradient_versions[name] = step.read[name]
        self._gradients.update(fresh)
        return gradient_ops

    def _check_versions(
        self, step: _Step, gradient_ops: list[Any], output_gradients: list[Gradient]
    ) -> None:
        """Raise EnforceNotMet if a gradient operator reads a blob that was written to since."""
        outputs_of: dict[str, str] = {}
        for name, gradient in zip(step.op.output, output_gradients, strict=True):
            for blob in _blobs(gradient):
                outputs_of.setdefault(blob, name)
        local: set[str] = set()
        for op in gradient_ops:
            for blob in op.input:
                if blob in outputs_of:
                    name = outputs_of[blob]
                    what = f"Gradient name {blob!r} is expected to correspond to"
                    current = self._gradient_versions.get(name)
                    _check_version(name, step.written[name], current, what, step.op)
                elif blob in step.written or blob in step.read:
                    kind, needed = (
                        ("output", step.written[blob])
                        if blob in step.written
                        else ("input", step.read[blob])
                    )
                    what = f"Gradient operator needs {kind} {blob!r} at"
                    _check_version(blob, needed, self._versions[blob], what, step.op)
                elif blob not in local:
                    raise EnforceNotMet(
                        f"Blob name {blob!r} is not in the scope of operator {step.op.type!r} and "
                        "is not generated by any of its gradient operators.",
                        _CALLER,
                    )
            local.update(op.output)

    # Contributions of operators to gradients.

    def _contribute(self, version: Version, parts: tuple[Part, ...], device_option: Any) -> None:
        contribution = Contribution(parts, device_option)
        self._contributions.setdefault(version, []).append(contribution)
        for part in parts:
            if not part.places:
                self._shared.setdefault(part.name, []).append(version)

    def _register_contributions(
        self, step: _Step, gradient_ops: list[Any], input_gradients: list[Any]
    ) -> None:
        """Register the contributions of one operator to the gradients of its inputs."""
        written: dict[str, list[tuple[Any, int]]] = {}
        between: dict[str, list[tuple[Any, int]]] = {}
        for op in gradient_ops:
            for at, blob in enumerate(op.input):
                if blob in written:
                    between.setdefault(blob, []).append((op, at))
            for at, blob in enumerate(op.output):
                written.setdefault(blob, []).append((op, at))
        pairs = [
            pair for pair in zip(step.op.input, input_gradients, strict=True) if pair[1] is not None
        ]
        for name, gradient in dict.fromkeys(pairs):
            blobs = _blobs(gradient)
            times = pairs.count((name, gradient))
            if times == 1 or not any(blob in written for blob in blobs):
                several = [
                    tuple(
                        Part(blob, written.get(blob, ()), between.get(blob, ())) for blob in blobs
                    )
                ] * times
            elif len(blobs) == 1 and len(written[gradient]) == times and gradient not in between:
                several = [(Part(gradient, [place]),) for place in written[gradient]]
            else:
                raise EnforceNotMet(
                    f"The gradient of operator {step.op.type!r} cannot be computed with blob "
                    f"{name!r} as more than one input. Use a copy of the blob (operator Copy).",
                    _CALLER,
                )
            makers = [op for blob in blobs for op, _ in written.get(blob, ())]
            device_option = (makers[-1] if makers else step.op).device_option
            for parts in several:
                self._contribute((name, step.read[name]), parts, device_option)

    def _rename_overwritten(
        self, position: int, gradient_ops: list[Any], input_gradients: list[Any]
    ) -> list[Any]:
        """Rename outputs of gradient operators that would overwrite a gradient still to be read.

        A gradient that Sum passes on belongs to several blobs. Caffe2 overwrites it if one of them
        is scaled in place, as in the gradient of Sqr, or has the name of an older version. Return
        the gradients of the inputs, under their new names.
        """
        for blob in dict.fromkeys(output for op in gradient_ops for output in op.output):
            if not any(self._is_still_read(one, position) for one in self._shared.get(blob, ())):
                continue
            inputs: list[tuple[Any, int]] = []
            outputs: list[tuple[Any, int]] = []
            for op in gradient_ops:
                if outputs:
                    inputs += [(op, at) for at, name in enumerate(op.input) if name == blob]
                outputs += [(op, at) for at, name in enumerate(op.output) if name == blob]
            renamed = f"_{blob}_autogen_{position}"
            Part(blob, outputs, inputs).rename(renamed)
            input_gradients = [_with_name(gradient, blob, renamed) for gradient in input_gradients]
        return input_gradients

    def _is_still_read(self, version: Version, position: int) -> bool:
        """Return whether an operator further back reads this gradient, or it is a result."""
        users = self._users[version]
        if len(users) > 1 and users[0] < len(self._steps):
            return users[0] < position  # otherwise it has been summed
        return self._writers.get(version, -1) < position

    def _sum_gradients(self, position: int) -> list[Any]:
        """Return operators that sum the gradients of blobs which this operator is first to read."""
        step = self._steps[position]
        gradient_ops = []
        for name in dict.fromkeys(step.op.input):
            version = (name, step.read[name])
            users = self._users[version]
            contributions = self._contributions.get(version, [])
            if len(users) > 1 and users[0] == position and len(contributions) > 1:
                sum_ops, self._gradients[name] = sum_of(name, contributions)
                gradient_ops += sum_ops
        return gradient_ops


def _blobs(gradient: Any) -> tuple[str, ...]:
    if gradient is None:
        return ()
    return gradient if isinstance(gradient, tuple) else (gradient,)


def _with_name(gradient: Any, old: str, new: str) -> Any:
    if isinstance(gradient, GradientSlice):
        return GradientSlice(*(new if blob == old else blob for blob in gradient))
    return new if gradient == old else gradient


def _check_version(name: str, needed: int, current: int | None, what: str, op: Any) -> None:
    if current != needed:
        raise EnforceNotMet(
            f"{what} version {needed} of {name!r}, but currently we have version {current}: an "
            f"operator after {op.type!r} with outputs {list(op.output)} writes to {name!r} again. "
            "Use another name for its output.",
            _CALLER,
        )


class GradientRegistry:
    """The gradient operators of each operator type, and of whole nets.

    The gradients of Caffe2's own operators are built in; `RegisterGradient` adds others.
    Follows GradientRegistry, caffe2/python/core.py, PyTorch 1.8.1.

    >>> from bridge.caffe2 import core
    >>> op = core.CreateOperator("Relu", ["x"], ["y"])
    >>> operators, gradients = core.GradientRegistry.GetBackwardPass([op], {"y": "y_grad"})
    >>> operators[0].type, list(operators[0].input), gradients["x"]
    ('ReluGradient', ['y', 'y_grad'], BlobReference("x_grad"))
    """

    gradient_registry_: ClassVar[dict[str, Maker]] = {}

    @classmethod
    def RegisterGradient(cls, op_type: str) -> Callable[[Maker], Maker]:
        """Return a decorator that registers a function as the gradient of an operator type.

        It is called as ``f(op, g_output)``. It returns the gradient operators, an OperatorDef or a
        list of them, and a list of the names of the gradients of the inputs, None for an input
        without a gradient. A built-in gradient of the type is tried first.

        The decorator raises EnforceNotMet, also a TypeError: its argument cannot be called.

        >>> from bridge.caffe2 import core
        >>> @core.GradientRegistry.RegisterGradient("TwiceForDocs")
        ... def twice(op, g_output):
        ...     gradient = op.input[0] + "_grad"
        ...     return core.CreateOperator("TwiceForDocs", g_output, [gradient]), [gradient]
        >>> op = core.CreateOperator("TwiceForDocs", ["x"], ["y"])
        >>> core.GradientRegistry.GetGradientForOp(op, ["y_grad"])[1]
        ['x_grad']
        """

        def register(function: Maker) -> Maker:
            if not callable(function):
                raise EnforceTypeError(
                    f"The gradient must be a function, not {type(function).__name__}.",
                    "GradientRegistry.RegisterGradient",
                )
            cls.gradient_registry_[op_type] = function
            return function

        return register

    @classmethod
    def GetGradientForOp(cls, op: Any, g_output: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the gradient operators of `op`, and the gradients of its inputs.

        g_output: for each output the name of its gradient, a `GradientSlice`, or None.

        Raises EnforceNotMet: the type has no gradient (also a KeyError), the gradient needs
        something that `op` lacks, or a registered function raised an error.
        """
        message = as_message(op, "OperatorDef", _OF_OPERATOR)
        with wrapping("g_output must be a list of names", _OF_OPERATOR, TypeError):
            output_gradients = [_plain(one) for one in g_output]
        if len(output_gradients) != len(message.output):
            raise EnforceTypeError(
                f"{len(output_gradients)} gradients are given for {len(message.output)} outputs.",
                _OF_OPERATOR,
                condition="len(g_output) == len(op.output)",
            )
        with wrapping(f"Exception when creating gradient for [{message.type}]", _OF_OPERATOR):
            gradient_ops, input_gradients = cls._gradient(message, output_gradients)
        if gradient_ops is None:
            return [], list(input_gradients)
        return (gradient_ops if isinstance(gradient_ops, list) else [gradient_ops]), list(
            input_gradients
        )

    @classmethod
    def _gradient(cls, op: Any, output_gradients: list[Any]) -> tuple[Any, Sequence[Any]]:
        registered = cls.gradient_registry_.get(op.type)
        built_in = declared_gradient(op.type)
        if built_in is None:
            if registered is not None:
                return registered(op, output_gradients)
            raise EnforceKeyError(
                f"Operators of type {op.type!r} have no gradient. "
                "GradientRegistry.RegisterGradient adds one; a StopGradient after the operator "
                "makes it unnecessary.",
                _OF_OPERATOR,
            )
        try:
            if registered is not None and getattr(built_in, "yields", False):
                return registered(op, output_gradients)
            maker = GradientMaker(op, output_gradients)
            check_names(op.type, op.input, op.output)
            built_in(maker)
        except Exception:
            if registered is None:
                raise
            return registered(op, output_gradients)
        return maker.gradient_ops, maker.input_gradients

    @classmethod
    def GetBackwardPass(
        cls, operators: Iterable[Any], ys: Any, ys_generate_gradient: bool = False
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Return the operators that compute the gradients of `ys` backwards through `operators`.

        The second result is a dict of blobs and their gradients, each a BlobReference or, if it is
        sparse, a `GradientSlice`. ys: a list of blobs whose gradients are ones, or a dict of blobs
        and the names of their gradients; such a gradient is replaced, not added to, if operators
        among `operators` read the blob, as in Caffe2. ys_generate_gradient has no effect.

        Raises EnforceNotMet: as `GetGradientForOp`; `ys` is neither a list nor a dict (also a
        TypeError); a gradient operator needs a blob that another operator overwrote.
        """
        return IR(operators).GetBackwardPass(ys, adds_given=False)


def _plain(gradient: Any) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, tuple):
        return GradientSlice(*map(str, gradient))
    return str(gradient)
