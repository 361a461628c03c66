# SPDX-License-Identifier: Apache-2.0
"""Ask the real Caffe2 all questions and print them with its answers, as JSON lines.

Each is asked in a process that may crash. What ends in an error has the answer null; types that
no gradient was given, and operators that the schema refuses, are left out.
"""

import json
import logging
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
logging.disable(logging.CRITICAL)


def main(schemas):
    from questions import Nets, about_operators

    nets = Nets(1)
    pending = about_operators(schemas) + [nets.one() for _ in range(1500)]
    while pending:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w", 1) as lines:
                for question in pending:
                    lines.write(json.dumps([question, answer(question)]) + "\n")
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            done = [line for line in lines if line.endswith("\n")]
        os.waitpid(child, 0)
        sys.stdout.writelines(line for line in done if json.loads(line)[1] != "unknown")
        pending = pending[len(done) + 1 :] if len(done) < len(pending) else []


def answer(question):
    from caffe2.python import core
    from questions import answer_about_net, answer_about_operator

    try:
        if isinstance(question, dict):
            return answer_about_net(core, question)
        return answer_about_operator(core, *question)
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no gradient
        left_out = ("GradientRegistry()->Has", "schema->Verify")
        return "unknown" if any(reason in str(error) for reason in left_out) else None


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        main(file.read())
