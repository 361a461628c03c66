# SPDX-License-Identifier: Apache-2.0
"""Names, errors, messages, element types and devices: what every other folder uses."""
