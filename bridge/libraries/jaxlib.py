# SPDX-License-Identifier: Apache-2.0
"""jaxlib, the package that defines the classes of JAX."""

from __future__ import annotations

from bridge.libraries import jax as jax
