# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np

from bridge.wrapper import Wrapper

def plain_elements(array: np.ndarray[Any, Any]) -> list[bytes] | None: ...
def put_elements(tensor: Wrapper, items: list[bytes]) -> None: ...
def fill_objects(array: np.ndarray[Any, Any], tensor: Wrapper) -> None: ...
