# SPDX-License-Identifier: Apache-2.0
"""Run the lines of the two scripts in the real Caffe2 and print what each gave, as JSON.

An empty line ends a sequence: the next begins in a new process.
"""

import json
import logging
import os
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))


def sequences():
    """Give the lines of the scripts, sequence by sequence."""
    text = ""
    for name in ("script.txt", "script_wide.txt"):
        with open(os.path.join(HERE, name)) as script:
            text += "\n".join(line for line in script.read().split("\n") if line[:1] != "#")
            text += "\n\n"
    return [one.strip().split("\n") for one in text.split("\n\n") if one.strip()]


def record(lines):
    """Run the lines of a sequence; give each with what it gave or raised."""
    import numpy as np
    from caffe2.proto import caffe2_pb2
    from caffe2.python import core, scope, utils, workspace
    from shown import shown  # beside this file

    names = {
        "np": np,
        "caffe2_pb2": caffe2_pb2,
        "core": core,
        "scope": scope,
        "utils": utils,
        "workspace": workspace,
    }
    steps = []
    for line in lines:
        step = {"line": line}
        try:
            try:
                code = compile(line, "line", "eval")
            except SyntaxError:
                exec(line, names)
            else:
                step["result"] = shown(eval(code, names))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is written down
            step["error"] = [one.__name__ for one in type(error).__mro__[:-2]]
        steps.append(step)
    return steps


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    every = []
    for lines in sequences():
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as out:
                out.write(json.dumps(record(lines)))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            every.append(json.loads(answer.read()))
        os.waitpid(child, 0)
    print(json.dumps(every, indent=0))
