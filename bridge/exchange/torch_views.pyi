# SPDX-License-Identifier: Apache-2.0
import torch

from bridge.c10.storage import Storage
from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta

def whole_storage(storage: Storage, dtype: TypeMeta) -> TensorImpl | None: ...
def torch_storage(storage: Storage) -> torch.UntypedStorage | None: ...
