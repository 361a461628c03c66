# SPDX-License-Identifier: Apache-2.0
"""Quantized numbers: rows in 1 to 8 bits, converted, looked up and summed."""
