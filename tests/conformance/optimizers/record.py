# SPDX-License-Identifier: Apache-2.0
"""Have the real Caffe2 train, and print a question and its answer a line; null where it raises.

    python3.8 tests/conformance/optimizers/record.py | gzip -9n > recorded.json.gz

With the interpreter that has the Caffe2 of PyTorch 1.8.1 (``pip install torch==1.8.1``).
"""

import json
import logging
import os
import sys
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
logging.disable(logging.CRITICAL)
# Caffe2's option `lars` calls what NumPy has no longer.
np.asscalar = lambda array: array.item()

if __name__ == "__main__":
    from caffe2.python import brew, model_helper, optimizer, workspace
    from scenario import QUESTIONS, answer

    modules = SimpleNamespace(
        brew=brew, model_helper=model_helper, optimizer=optimizer, workspace=workspace
    )
    for question in QUESTIONS:
        try:
            found = answer(modules, *question)
        except Exception:  # noqa: BLE001 - whatever it is, it is refused
            found = None
        print(json.dumps([question, found]))
