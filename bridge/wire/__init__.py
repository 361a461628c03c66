# SPDX-License-Identifier: Apache-2.0
"""The wire format of protocol buffers: fields, varints and tensor data, without message objects."""
