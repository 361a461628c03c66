# SPDX-License-Identifier: Apache-2.0
"""Names, errors, messages, element types and devices, for every other folder."""
