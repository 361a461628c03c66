# SPDX-License-Identifier: Apache-2.0
"""What runs nets, orders them, and looks at blobs as such: files, printing, copies."""
