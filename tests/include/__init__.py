# SPDX-License-Identifier: Apache-2.0
"""The folder of bridge.h; test_c_api has its tests."""
