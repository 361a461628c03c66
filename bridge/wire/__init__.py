# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers' wire format: fields, varints and packed numbers, read and written in place."""
