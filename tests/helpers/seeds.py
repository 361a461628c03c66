# SPDX-License-Identifier: Apache-2.0
"""Every test draws the same random numbers in every run."""

from __future__ import annotations

import random
import sys

import numpy as np

SEED = 0


def seed_generators() -> None:
    """Start the generators of Python, which Keras uses, of NumPy, and of torch where it is loaded.

    torch and Keras would else start from a number of the system.
    """
    random.seed(SEED)
    np.random.seed(SEED)
    if "torch" in sys.modules:
        import torch

        torch.default_generator.manual_seed(SEED)
