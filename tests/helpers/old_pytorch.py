# SPDX-License-Identifier: Apache-2.0
"""An old PyTorch: a real one if there is one, and a small tree like that of one.

The environment variable CAFFE2_LEGACY is the path of a real one that has Caffe2, such as the wheel
of PyTorch 1.8.1; `REAL` is "" without it. The small tree has a few modules, written as theirs are.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto

__all__ = ["FILES", "REAL", "write_folder", "write_wheel"]

REAL = os.environ.get("CAFFE2_LEGACY", "")


def _generated(constructor: str) -> str:
    """Return a module such as protoc generated, which today's protobuf cannot run."""
    file = FileDescriptorProto(name=f"caffe2/proto/old_{constructor}.proto", package="old")
    file.dependency.append("caffe2/proto/caffe2.proto")
    color = file.enum_type.add(name=f"{constructor}Color")
    color.value.add(name=f"{constructor.upper()}_RED", number=0)
    message = file.message_type.add(name=f"Of{constructor}")
    field = message.field.add(name="net", number=1, label=1, type=11)
    field.type_name = ".caffe2.NetDef"
    message.field.add(name="text", number=2, label=1, type=9)
    data = file.SerializeToString()
    value = {
        "Keyword": f"_descriptor.FileDescriptor(name='x', serialized_pb={data!r})",
        "Python2": "_descriptor.FileDescriptor(name='x', serialized_pb=_b("
        f"{data.decode('latin-1')!r}))",
        "Added": f"_descriptor_pool.Default().AddSerializedFile({data!r})",
    }[constructor]
    return f"from google.protobuf import nothing as _descriptor\nDESCRIPTOR = {value}\n"


FILES = {
    "caffe2/__init__.py": "raise ImportError('the bridge has its own')\n",
    "caffe2/proto/__init__.py": "raise ImportError('the bridge has its own')\n",
    "caffe2/proto/keyword_pb2.py": _generated("Keyword"),
    "caffe2/proto/python2_pb2.py": _generated("Python2"),
    "caffe2/proto/added_pb2.py": _generated("Added"),
    "caffe2/proto/empty_pb2.py": "",
    "caffe2/python/__init__.py": "raise ImportError('the bridge has its own')\n",
    "caffe2/python/core.py": "raise ImportError('the bridge has its own')\n",
    "caffe2/python/pipeline.py": (
        "from caffe2.python import core, workspace\n"
        "from caffe2.python.old_layers.fc import FC\n"
        "def make():\n"
        "    net = core.Net('pipeline')\n"
        "    net.Relu('x', 'y')\n"
        "    return net, FC\n"
    ),
    "caffe2/python/old_layers/__init__.py": (
        "import pkgutil\nnames = sorted(one.name for one in pkgutil.iter_modules(__path__))\n"
    ),
    "caffe2/python/old_layers/fc.py": "FC = 'a layer'\nhere = __file__\n",
    "caffe2/python/no_init/inner.py": "value = 3\n",
    "caffe2/python/raises.py": "def fail():\n    raise ValueError('from the old one')\n",
    "caffe2/python/needs.py": "import a_library_that_nobody_has\n",
    "caffe2/python/onnx/__init__.py": "",
    "caffe2/python/onnx/types.py": (
        "import onnx\nimport onnx.optimizer\nimport onnx.utils\nfrom onnx import mapping\n"
        "import numpy as np\nfrom onnx.mapping import TENSOR_TYPE_TO_NP_TYPE as types\n"
        "number = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype('int64')]\n"
        "names = mapping is onnx.mapping, types[7], onnx.optimizer.optimize.__name__\n"
        "polish = onnx.utils.polish_model\n"
    ),
    "caffe2/python/onnx/needs.py": "import onnx.a_module_of_the_past\n",
    "caffe2/python/needs_caffe2.py": "from caffe2.python import fb\n",
    "caffe2/python/numbers.py": (
        "import numpy as np\nfrom numpy import float as f\nimport numpy.testing as npt\n"
        "from numpy.testing import assert_array_equal\n"
        "kinds = [np.bool, np.int, np.float, np.object, np.str, np.complex, f]\n"
        "one = np.asscalar(np.array([1.5]))\n"
        "names = np.float_, np.unicode_, np.product([2, 3]), np.Inf\n"
        "array = np.zeros(3)\nis_array = isinstance(array, np.ndarray)\n"
        "np.mine = 1\nhas_testing = npt.assert_array_equal is assert_array_equal\n"
    ),
    "caffe2/python/python_2.py": (
        "import six\nfrom future.utils import viewitems, viewkeys, viewvalues, with_metaclass\n"
        "from past.builtins import basestring, long\nfrom six.moves import range, zip\n"
        "from six.moves.urllib.request import urlretrieve\nfrom six import StringIO\n"
        "import future.utils\nimport abc\n"
        "class Base(with_metaclass(abc.ABCMeta, dict)):\n    pass\n"
        "@six.add_metaclass(abc.ABCMeta)\nclass Other(object):\n    pass\n"
        "views = list(viewitems({1: 2})), list(viewkeys({1: 2})), list(viewvalues({1: 2}))\n"
        "kinds = isinstance('', basestring), long, six.string_types, future.utils.PY3\n"
        "classes = type(Base), Base.__mro__[1], type(Other)\n"
        "text = StringIO('a').read()\n"
    ),
}


def write_folder(folder: Path) -> Path:
    """Write the tree below a folder, as in site-packages; return the folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise ImportError('not needed')\n")
    return folder


def write_wheel(path: Path) -> Path:
    """Write the tree as a wheel; return its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
        wheel.writestr("torch/__init__.py", "raise ImportError('not needed')\n")
        wheel.writestr("torch-1.8.1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    return path
