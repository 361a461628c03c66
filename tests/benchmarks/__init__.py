# SPDX-License-Identifier: Apache-2.0
"""The bridge's time over its peers', side by side in one run: `python -m tests.benchmarks`."""
