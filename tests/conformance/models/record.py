# SPDX-License-Identifier: Apache-2.0
"""Have the real Caffe2 add layers, and print a question and its answer a line.

The answer is the name of the exception where it raises one.

    python3.8 tests/conformance/models/record.py | gzip -9n > recorded.json.gz

With the interpreter that has the Caffe2 of PyTorch 1.8.1 (``pip install torch==1.8.1``).
"""

import json
import logging
import os
import sys
from types import SimpleNamespace

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
logging.disable(logging.CRITICAL)

if __name__ == "__main__":
    from caffe2.python import brew, cnn, model_helper
    from scenario import QUESTIONS, answer

    modules = SimpleNamespace(brew=brew, cnn=cnn, model_helper=model_helper)
    for question in QUESTIONS:
        try:
            found = answer(modules, *question)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is refused
            found = type(error).__name__
        print(json.dumps([question, found]))
