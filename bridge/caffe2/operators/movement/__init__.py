# SPDX-License-Identifier: Apache-2.0
"""Elements rearranged: reshaped, transposed, sliced, gathered, scattered, masked, split, joined."""
