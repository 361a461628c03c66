# SPDX-License-Identifier: Apache-2.0
"""Numbers in few bits: rows quantized, read back, looked up and summed."""
