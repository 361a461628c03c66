# SPDX-License-Identifier: Apache-2.0
# For other compiled modules only: nothing here is seen from Python.
