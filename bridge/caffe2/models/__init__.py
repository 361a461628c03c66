# SPDX-License-Identifier: Apache-2.0
"""Models: layers with parameters (`brew`), and how parameters are initialized and optimized."""
