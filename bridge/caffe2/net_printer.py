# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.net_printer``: nets and steps as text, and a check of their blobs.

Takes a Net, a NetDef, an OperatorDef or an ExecutionStep; and, of the old PyTorch's modules, a
Task, a TaskGroup or a Job. Follows caffe2/python/net_printer.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import core, net_printer
>>> net = core.Net("printed_doc")
>>> y = net.Relu("x", "y")
>>> print(net_printer.to_string(net, c2_syntax=False))
# net: printed_doc
y = Relu(x)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from bridge.annotation import Any, ClassVar
from bridge.c10.errors import EnforceAssertionError, EnforceTypeError
from bridge.caffe2.core import ExecutionStep, Net, Plan
from bridge.caffe2.proto.caffe2_pb2 import NetDef, OperatorDef

__all__ = ["Analyzer", "Printer", "Text", "Visitor", "analyze", "debug_net", "to_string"]

# A serialized plan that a task of Caffe2 can have, in bytes.
_LARGEST_PLAN = 2**26
_LONGEST_TEXT = 64


class Visitor:
    """Calls the function that is registered for the class of an object.

    The classes of the old PyTorch's modules are registered by their names.
    """

    visitors: ClassVar[dict[Any, Callable[..., Any]]]

    def __init_subclass__(cls) -> None:
        cls.visitors = {}

    @classmethod
    def register(cls, Type: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator of the function for a class, or a name of classes."""
        if Type in cls.visitors:
            raise EnforceAssertionError(f"{Type} already registered!", f"{cls.__name__}.register")

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            cls.visitors[Type] = function
            return function

        return add

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the function for an object; None does nothing.

        Raises EnforceNotMet, also a TypeError: there is none.
        """
        if obj is None:
            return None
        kind = type(obj)
        function = self.visitors.get(kind) or self.visitors.get(kind.__name__)
        if function is None:
            name = type(self).__name__
            raise EnforceTypeError(f"{name}: unsupported object type: {kind}", name)
        return function(self, obj, *args, **kwargs)


class Analyzer(Visitor):
    """Checks that blobs are defined before they are used; see `analyze`."""

    PREFIXES_TO_IGNORE: ClassVar[set[str]] = {"distributed_ctx_init"}

    def __init__(self) -> None:
        # By node, the blobs of its workspace, and how often each was written.
        self.workspaces: defaultdict[str, defaultdict[str, int]] = defaultdict(
            lambda: defaultdict(int)
        )
        self.workspace_ctx: list[defaultdict[str, int]] = []

    @property
    def workspace(self) -> defaultdict[str, int]:
        """The current workspace."""
        return self.workspace_ctx[-1]

    @contextmanager
    def set_workspace(
        self, node: Any = None, ws: Any = None, do_copy: bool = False
    ) -> Iterator[Any]:
        """A block in the workspace `ws`, of a node, or the current one; or in a copy of it."""
        if ws is None:
            ws = self.workspaces[str(node)] if node is not None else self.workspace
        self.workspace_ctx.append(ws.copy() if do_copy else ws)
        try:
            yield self.workspace
        finally:
            self.workspace_ctx.pop()

    def define_blob(self, blob: str) -> None:
        """Remember that a blob is written."""
        self.workspace[blob] += 1

    def need_blob(self, blob: str) -> None:
        """Raise AssertionError if a blob was not written before; scripts compare its text."""
        if any(blob.startswith(prefix) for prefix in self.PREFIXES_TO_IGNORE):
            return
        if blob not in self.workspace:
            raise AssertionError(f"Blob undefined: {blob}")


@Analyzer.register(OperatorDef)
def analyze_op(analyzer: Analyzer, op: Any) -> None:
    """Check an operator."""
    for blob in op.input:
        analyzer.need_blob(blob)
    for blob in op.output:
        analyzer.define_blob(blob)


@Analyzer.register(Net)
def analyze_net(analyzer: Analyzer, net: Net) -> None:
    """Check the operators of a net."""
    for op in net.Proto().op:
        analyzer(op)


def _parts(step: Any) -> list[Any]:
    """Return the steps and nets of a step."""
    return [*step.Substeps(), *(step.get_net(name) for name in step.Proto().network)]


@Analyzer.register(ExecutionStep)
def analyze_step(analyzer: Analyzer, step: Any) -> None:
    """Check the nets and steps of a step; concurrent ones do not see each other's blobs."""
    proto = step.Proto()
    created: set[str] = set()
    with analyzer.set_workspace(do_copy=proto.create_workspace):
        if proto.report_net:
            with analyzer.set_workspace(do_copy=True):
                analyzer(step.get_net(proto.report_net))
        for part in _parts(step):
            with analyzer.set_workspace(do_copy=proto.concurrent_substeps) as inner:
                analyzer(part)
                if proto.should_stop_blob:
                    analyzer.need_blob(proto.should_stop_blob)
            if proto.concurrent_substeps:
                new = inner.keys() - analyzer.workspace.keys()
                if created & new:
                    raise AssertionError(
                        "Error: Blobs created by multiple parallel steps: "
                        f"{', '.join(sorted(created & new))}"
                    )
                created |= new
    for blob in created:
        analyzer.define_blob(blob)


@Analyzer.register("Task")
def analyze_task(analyzer: Analyzer, task: Any) -> None:
    """Check the step of a task, and that its plan is not too large for protobuf."""
    step = task.get_step()
    plan = Plan(task.node)
    plan.AddStep(step)
    size = plan.Proto().ByteSize()
    if size >= _LARGEST_PLAN:
        raise EnforceAssertionError(
            "Due to a protobuf limitation, serialized tasks must be smaller than 64Mb, but this "
            f"task has {size} bytes.",
            "net_printer.analyze",
        )
    with analyzer.set_workspace(do_copy=task.workspace_type() != "global"):
        analyzer(step)


@Analyzer.register("TaskGroup")
def analyze_task_group(analyzer: Analyzer, tg: Any) -> None:
    """Check the tasks of a group, each in the workspace of its node."""
    for task in tg.tasks_by_node().tasks():
        with analyzer.set_workspace(node=task.node):
            analyzer(task)


@Analyzer.register("Job")
def analyze_job(analyzer: Analyzer, job: Any) -> None:
    """Check the groups of a job that initialize it and that are an epoch."""
    analyzer(job.init_group)
    analyzer(job.epoch_group)


def analyze(obj: Any) -> None:
    """Check a Job, or one of its parts, without running it.

    Raises AssertionError: a blob is used and was not written before, or several concurrent steps
    create a blob of the same name.
    """
    Analyzer()(obj)


class Text:
    """Lines of text, indented by blocks."""

    def __init__(self) -> None:
        self._indent = 0
        self._lines_in_context = [0]
        self.lines: list[str] = []

    @contextmanager
    def context(self, text: str | None) -> Iterator[None]:
        """A block of lines after ``with TEXT:``; None does not indent."""
        if text is None:
            yield
            return
        self.add(f"with {text}:")
        self._indent += 4
        self._lines_in_context.append(0)
        yield
        if not self._lines_in_context[-1]:
            self.add("pass")
        self._indent -= 4
        self._lines_in_context.pop()

    def add(self, text: str) -> None:
        """Add a line."""
        self._lines_in_context[-1] += 1
        self.lines.append(" " * self._indent + text)

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Printer(Visitor, Text):
    """Writes its arguments as text; see `to_string`."""

    def __init__(self, factor_prefixes: bool = False, c2_syntax: bool = True) -> None:
        Text.__init__(self)
        self.factor_prefixes = factor_prefixes
        self.c2_syntax = c2_syntax
        self.c2_net_name: str | None = None


def _quoted(value: Any) -> str:
    text = value.decode("ascii", errors="ignore") if isinstance(value, bytes) else str(value)
    if len(text) < _LONGEST_TEXT:
        return f"'{text}'"
    return f"'{text[:_LONGEST_TEXT]}'...<+len={len(text) - _LONGEST_TEXT}>"


def _value(arg: Any) -> str:
    """Return the value of an Argument as text."""
    for name in ("f", "i"):
        if arg.HasField(name):
            return str(getattr(arg, name))
    if arg.HasField("s"):
        return _quoted(arg.s)
    for values in (arg.floats, arg.ints):
        if values:
            return str(list(values))
    return str([_quoted(one) for one in arg.strings]) if arg.strings else "[]"


def _listed(values: Iterable[Any], factor_prefixes: bool) -> str:
    """Return values after each other; a common prefix is written once, before brackets."""
    texts = [
        f"[{', '.join(_in_quotes(one) for one in value)}]"
        if isinstance(value, list)
        else str(value)
        for value in values
    ]
    prefix = _common_start(texts) if factor_prefixes and len(texts) > 1 else ""
    joined = ", ".join(text[len(prefix) :] for text in texts)
    return f"{prefix}[{joined}]" if prefix else joined


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    same = 0
    while same < len(first) and first[same] == last[same]:
        same += 1
    return first[:same]


def _in_quotes(value: Any) -> str:
    """Return a value in quotes."""
    return f"'{value}'"


def _call(
    op: str, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), factor_prefixes: bool = False
) -> str:
    """Return the text of a call; inputs that are tuples are named arguments."""
    plain = _listed([one for one in inputs if not isinstance(one, tuple)], factor_prefixes)
    named = [f"{name}={value}" for name, value in (one for one in inputs if isinstance(one, tuple))]
    call = f"{op}({', '.join(filter(None, [plain, *named]))})"
    return f"{_listed(outputs, factor_prefixes)} = {call}" if outputs else call


def _device(option: Any) -> str | None:
    if not (option.device_type or option.device_id or option.node_name):
        return None
    numbers = [option.device_type, option.device_id, _in_quotes(option.node_name)]
    return _call("DeviceOption", numbers)


@Printer.register(OperatorDef)
def print_op(text: Any, op: Any) -> None:
    """Write an operator as a call, and the nets that are its arguments."""
    arguments = [(arg.name, _value(arg)) for arg in op.arg]
    device = _device(op.device_option)
    if device:
        arguments.append(("device_option", device))
    if text.c2_net_name:
        blobs = [list(op.input), list(op.output)]
        text.add(_call(f"{text.c2_net_name}.{op.type}", [*blobs, *arguments]))
    else:
        inputs = [*op.input, *arguments]
        text.add(_call(op.type, inputs, op.output, factor_prefixes=text.factor_prefixes))
    for arg in op.arg:
        if arg.HasField("n"):
            with text.context(f"arg: {arg.name}"):
                text(arg.n)


@Printer.register(NetDef)
def print_net_def(text: Printer, net_def: Any) -> None:
    """Write the operators of a NetDef, as the program that would create it, or as calls."""
    if text.c2_syntax:
        text.add(_call("core.Net", [_in_quotes(net_def.name)], [net_def.name]))
        text.c2_net_name = net_def.name
    else:
        text.add(f"# net: {net_def.name}")
    for op in net_def.op:
        text(op)
    if text.c2_syntax:
        text.c2_net_name = None


@Printer.register(Net)
def print_net(text: Printer, net: Net) -> None:
    """Write a net."""
    text(net.Proto())


def _step_context(step: Any) -> tuple[str | None, bool]:
    """Return how a step runs its parts, and whether each of them has a block."""
    proto = step.Proto()
    several = len(step.Substeps()) > 1
    if proto.should_stop_blob:
        return _call("loop"), False
    if proto.num_iter and proto.num_iter != 1:
        return _call("loop", [proto.num_iter]), False
    if proto.num_concurrent_instances > 1:
        return _call("parallel", [("num_instances", proto.num_concurrent_instances)]), several
    if proto.concurrent_substeps and several:
        return _call("parallel"), True
    return (_call("run_once") if proto.report_net else None), False


@Printer.register(ExecutionStep)
def print_step(text: Printer, step: Any) -> None:
    """Write the nets and steps of a step."""
    proto = step.Proto()
    context, in_blocks = _step_context(step)
    with text.context(context):
        if proto.report_net:
            with text.context(_call("report_net", [proto.report_interval])):
                text(step.get_net(proto.report_net))
        for part in _parts(step):
            inner = part.Proto() if isinstance(part, ExecutionStep) else None
            block = None
            if inner is not None and inner.run_every_ms:
                block = _call("reporter", [str(part), ("interval_ms", inner.run_every_ms)])
            elif in_blocks:
                own = inner is not None and inner.create_workspace
                block = _call("workspace" if own else "step", [str(part)])
            with text.context(block):
                text(part)
                if proto.should_stop_blob:
                    text.add(_call("yield stop_if", [proto.should_stop_blob]))


def _output(task_output: Any) -> str:
    return f"Output[{', '.join(map(str, task_output.names))}]"


@Printer.register("Task")
def print_task(text: Printer, task: Any) -> None:
    """Write a task: its node, name, outputs and step."""
    outputs = ", ".join(_output(one) for one in task.outputs())
    parts = [("node", task.node), ("name", task.name), ("outputs", outputs)]
    with text.context(_call("Task", parts)):
        text(task.get_step())


@Printer.register("TaskGroup")
def print_task_group(text: Printer, tg: Any, header: str | None = None) -> None:
    """Write the tasks of a group."""
    with text.context(header or _call("TaskGroup")):
        for task in tg.tasks_by_node().tasks():
            text(task)


@Printer.register("Job")
def print_job(text: Printer, job: Any) -> None:
    """Write the groups of a job, and when it stops."""
    text(job.init_group, "Job.current().init_group")
    text(job.epoch_group, "Job.current().epoch_group")
    with text.context("Job.current().stop_conditions"):
        for one in job.stop_conditions:
            text.add(_output(one))
    text(job.download_group, "Job.current().download_group")
    text(job.exit_group, "Job.current().exit_group")


def to_string(obj: Any, **kwargs: Any) -> str:
    """Return a net, a step, a task, a group of tasks or a job as text.

    factor_prefixes: whether a common prefix of names of inputs is written once. c2_syntax: whether
    nets are written as the program that would create them. Raises EnforceNotMet, also a TypeError:
    `obj` is none of these.
    """
    printer = Printer(**kwargs)
    printer(obj)
    return str(printer)


def debug_net(net: Any) -> Net:
    """Return a net that prints each operator of a net before it runs it.

    Raises EnforceNotMet, also an AssertionError: `net` is not a Net.
    """
    if not isinstance(net, Net):
        raise EnforceAssertionError(f"Expected a Net, not {net!r}.", "debug_net")
    logging_net = Net(str(net))
    for op in net.Proto().op:
        printer = Printer(c2_syntax=False)
        printer(op)
        logging_net.LogInfo(str(printer))
        logging_net.Proto().op.extend([op])
    return logging_net
