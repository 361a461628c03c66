# SPDX-License-Identifier: Apache-2.0
"""What the operators of the real Caffe2 gave out, recorded, and the same asked of the bridge.

`cases_*.py` say what is run, `record.py` has the real Caffe2 run it and writes `recorded/*.npz`,
`test_operators.py` runs it on the bridge.
"""
