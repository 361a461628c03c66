# SPDX-License-Identifier: Apache-2.0
"""Have the real Caffe2 run the cases, and write down what came out.

    python3.8 tests/conformance/operators/record.py [--show] [group ...]

With the interpreter that has the Caffe2 of PyTorch 1.8.1 (``pip install torch==1.8.1``). Without
groups, all of them. One ``recorded/<group>.npz`` each, without pickles: the arrays by
``case/blob``, and under ``index`` a JSON text with, by case, the checksum of what was fed, the
error if there was one, and the blobs. Strings are stored as JSON of their Latin-1 texts.
`--show` prints the errors, which are to be looked at: a slip in a case is an error, too.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from operators.case import Case, cases, groups, recorded_path


def main(arguments: list[str]) -> None:
    import torch
    from caffe2.python import core, dyndep, workspace

    workspace.GlobalInit(["caffe2", "--caffe2_log_level=4"])
    for library in Path(torch.__file__).parent.glob("lib/libcaffe2_detectron_ops*.so"):
        dyndep.InitOpsLibrary(str(library))
    show = "--show" in arguments
    for group in [one for one in arguments if one != "--show"] or groups():
        index = {}
        arrays = {}
        for one in cases(group):
            index[one.name], found = record_in_child(one, core, workspace)
            arrays.update({f"{one.name}/{name}": array for name, array in found.items()})
            if show and index[one.name]["error"] is not None:
                print(f"{one.name}: {index[one.name]['error'][:150]}")
        text = np.frombuffer(json.dumps(index).encode(), np.uint8)
        recorded_path(group).parent.mkdir(exist_ok=True)
        np.savez_compressed(recorded_path(group), index=text, **arrays)
        failed = sum(one["error"] is not None for one in index.values())
        print(f"{group}: {len(index)} cases, {failed} of them errors")


def record_in_child(one: Case, core, workspace):
    """The same as `record`, in a process of its own: some cases crash the real Caffe2.

    Those are errors in the index; on the bridge they have to be refused.
    """
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if not child:
            pickle.dump(record(one, core, workspace), file)
            file.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            said = {"fed": one.checksum(), "error": "a crash", "step": len(one.steps) - 1}
            return {**said, "blobs": {}}, {}
        file.seek(0)
        return pickle.load(file)


def record(one: Case, core, workspace):
    """Run a case: what the index says of it, and the arrays."""
    said = {"fed": one.checksum(), "error": None, "step": len(one.steps), "blobs": {}}
    for name, value in one.feeds.items():
        workspace.FeedBlob(name, value)
    for number, (op_type, inputs, outputs, args) in enumerate(one.steps):
        try:
            workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, **args))
        except Exception as error:  # noqa: BLE001 - whatever it raises is recorded
            text = str(error).split("Error from operator")[0].split("\nframe #")[0]
            said["error"] = text.strip()[:200]
            said["step"] = number
            return said, {}
    arrays = {}
    for name in one.results:
        value = workspace.FetchBlob(name)
        if not isinstance(value, np.ndarray):
            native = isinstance(value, (str, bytes)) and "C++ native class" in str(value)
            said["blobs"][name] = "native" if native else "string"
            if not native:
                arrays[name] = np.frombuffer(value, np.uint8)
        elif value.dtype == object:
            texts = [text.decode("latin-1") for text in value.reshape(-1)]
            said["blobs"][name] = ["strings", list(value.shape), texts]
        else:
            said["blobs"][name] = "array"
            arrays[name] = value
    return said, arrays


if __name__ == "__main__":
    main(sys.argv[1:])
