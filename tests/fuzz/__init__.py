# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of what others give the bridge; `corpus/` holds the inputs that are kept, in binary files
that `corpus.py` reads and writes.
"""
