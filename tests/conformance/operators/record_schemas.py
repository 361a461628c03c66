# SPDX-License-Identifier: Apache-2.0
"""Print the counts and places of real operators, for `register_operator` and `schemas.txt`.

    python3.8 tests/conformance/operators/record_schemas.py Add Concat ...

One word each: ``Name:inputs:outputs:in-place``. Counts are ``2``, ``1-3``, ``1-*``, ``1|3`` or
``2n+1``; in-place is a list of ``input>output`` that may be one blob, with ``!`` where they must
be. Pairs that go on for all outputs are ``1>0*`` there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

MANY = 12  # more than any operator counts one by one


def main(names: list[str]) -> None:
    import torch
    from caffe2.python import core, dyndep, workspace

    workspace.GlobalInit(["caffe2", "--caffe2_log_level=3"])
    for library in Path(torch.__file__).parent.glob("lib/libcaffe2_detectron_ops*.so"):
        dyndep.InitOpsLibrary(str(library))
    for name in names or workspace.RegisteredOperators():
        schema = workspace.C.OpSchema.get(name)
        if schema is None or (not names and ("_ENGINE_" in name or "Gradient" in name)):
            continue

        needed = {argument.name: 1 for argument in schema.args if argument.required}

        def passes(inputs, outputs, name=name, needed=needed):
            # Of blobs that do not exist no operator is made; the question is what for.
            try:
                operator = core.CreateOperator(name, inputs, outputs, **needed)
                workspace.RunOperatorOnce(operator)
            except Exception as error:  # noqa: BLE001 - whatever it raises is recorded
                return "did not pass schema checking" not in str(error)
            return True

        # In a child: operators without inputs do run, and some are made to crash.
        child = os.fork()
        if not child:
            print(":".join([name, *described(schema, passes)]), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def described(schema, passes):
    """The counts of inputs and of outputs, and the places."""
    some_out = blobs("new", schema.min_output)
    forced = [(i, o) for i in range(MANY) for o in range(MANY) if schema.inplace_enforced(i, o)]

    def with_forced(inputs, outputs, but=None):
        outputs = list(outputs)
        for i, o in forced:
            if i < len(inputs) and o < len(outputs) and o != but:
                outputs[o] = inputs[i]
        return inputs, outputs

    in_counts = [
        n
        for n in range(min(schema.max_input, MANY) + 1)
        if any(
            passes(*with_forced(blobs("no", n), blobs("new", m)))
            for m in range(schema.min_output, min(schema.max_output, MANY) + 1)
        )
    ]
    n = in_counts[-1] if in_counts else schema.min_input
    out_counts = [
        m
        for m in range(min(schema.max_output, MANY) + 1)
        if any(passes(*with_forced(blobs("no", k), blobs("new", m))) for k in in_counts)
    ]
    places = []
    for i in range(min(n, 6)):
        for o in range(min(out_counts[-1] if out_counts else len(some_out), 4)):
            if (i, o) in forced:
                places.append(f"{i}>{o}!")
                continue
            for k in in_counts:
                for m in out_counts:
                    inputs, outputs = with_forced(blobs("no", k), blobs("new", m), o)
                    if i < k and o < m and passes(inputs, replaced(outputs, o, inputs[i])):
                        break
                else:
                    continue
                places.append(f"{i}>{o}")
                break
    return (
        counts(in_counts, schema.max_input),
        counts(out_counts, schema.max_output),
        ",".join(places),
    )


def blobs(name: str, n: int) -> list[str]:
    return [f"{name}{i}" for i in range(n)]


def replaced(items: list[str], place: int, item: str) -> list[str]:
    return [item if i == place else one for i, one in enumerate(items)]


def counts(numbers: list[int], most: int) -> str:
    """The numbers that are allowed, in short."""
    if not numbers:
        return "?"
    first, last = numbers[0], numbers[-1]
    steps = {numbers[i + 1] - numbers[i] for i in range(len(numbers) - 1)}
    step = min(steps) if len(steps) == 1 else 1
    if most > MANY and step > 1 and last + step > MANY:
        return f"{step}n{first - step:+}" if first != step else f"{step}n"
    if numbers != list(range(first, last + 1)):
        return "|".join(map(str, numbers))
    if most > MANY and last == MANY:
        return f"{first}-*" if most > 1000 else f"{first}-{most}"
    return str(first) if first == last else f"{first}-{last}"


if __name__ == "__main__":
    main(sys.argv[1:])
