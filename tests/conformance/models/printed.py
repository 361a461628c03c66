# SPDX-License-Identifier: Apache-2.0
"""Nets and steps to be printed and checked; for Python 3.8, too.

``python3.8 printed.py > printed.txt``, with an interpreter that has ``torch==1.8.1``, writes
what the real Caffe2 prints.
"""


def made(core):
    """Return a net, and steps of further nets; a process gives their names once."""
    net = core.Net("printed")
    net.Relu("xab", "xac")
    net.ConstantFill([], "c", shape=[1, 2], value=2.5)
    net.Concat(["xaa", "xab"], ["xad", "xae"], axis=1)
    net.GivenTensorStringFill([], "s", values=["a" * 70, "b"], shape=[2])
    with core.DeviceScope(core.DeviceOption(1, 2)):
        net.Add(["xac", "xad"], "t", device="q" * 80)
    inner = core.Net("printed_inner")
    inner.Relu("t", "t")
    net.If(["b"], ["t"], then_net=inner.Proto())
    a, b, report = (core.Net(f"printed_{name}") for name in ("a", "b", "report"))
    a.Relu("x", "y")
    b.Relu("x", "z")
    report.Relu("x", "q")
    step = core.execution_step
    own = step("i", a, create_workspace=True)
    every = step("every", b)
    every.RunEveryMillis(100)
    steps = [
        step("one", a),
        step("two", [a, b], num_iter=3),
        step("three", [own, step("j", b)], concurrent_substeps=True),
        step("four", a, report_net=report, report_interval=5),
        step("five", [a, b], should_stop_blob=core.BlobReference("st")),
        step("six", [step("k", a), step("l", b)], num_concurrent_instances=2),
        step("seven", [core.ExecutionStep("empty"), step("m", b)]),
        step("eight", [step("o", a), every]),
        step("nine", [step("p", a), step("q", a)], concurrent_substeps=True),
    ]
    return net, steps


def printed(core, net_printer):
    """Return what either Caffe2 prints of them, and what it finds wrong."""
    net, steps = made(core)
    parts = [
        net_printer.to_string(net, c2_syntax=syntax, factor_prefixes=prefixes)
        for syntax in (True, False)
        for prefixes in (True, False)
    ]
    parts += [net_printer.to_string(step) for step in steps]
    for defined in ((), ("x",), ("x", "st")):
        for step in steps:
            analyzer = net_printer.Analyzer()
            with analyzer.set_workspace(node="node"):
                for blob in defined:
                    analyzer.define_blob(blob)
                try:
                    analyzer(step)
                    parts.append(" ".join(sorted(analyzer.workspace)))
                except AssertionError as error:
                    parts.append(str(error))
    return "\n--\n".join(parts) + "\n"


if __name__ == "__main__":
    from caffe2.python import core, net_printer

    print(printed(core, net_printer), end="")
