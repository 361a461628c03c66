# SPDX-License-Identifier: Apache-2.0
"""The same elements elsewhere: shapes, orders, parts, masks, scattering."""
