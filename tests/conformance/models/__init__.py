# SPDX-License-Identifier: Apache-2.0
"""The operators and parameters that layers add to a model, held against the real Caffe2's.

`scenario.py` builds models, on either; ``python3.8 record.py | gzip -9n > recorded.json.gz``,
with an interpreter that has ``torch==1.8.1``, writes what the real one gave.
"""
