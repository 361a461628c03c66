# SPDX-License-Identifier: Apache-2.0
"""The version, said once; the build reads it here."""

__version__ = "0.1.0"
