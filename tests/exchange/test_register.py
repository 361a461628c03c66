# SPDX-License-Identifier: Apache-2.0
"""`bridge.register`, and the entry points of the group ``bridge.adapters``."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import bridge
from bridge.caffe2 import workspace
from tests.helpers.isolate import isolated, run_python


class Signal:
    """An object with memory, and without a door."""

    def __init__(self, samples: Any) -> None:
        self.samples = samples


@isolated
def test_every_door_takes_a_registered_class() -> None:
    bridge.register("signal", types=[Signal], importer=lambda x: x.samples, exporter=Signal)
    samples = np.arange(3.0)
    x = Signal(samples)
    address = samples.ctypes.data
    assert bridge.from_dlpack(x, copy=False).data_ptr() == address
    assert bridge.asarray(x).data_ptr() == address
    assert bridge.to_numpy(x).ctypes.data == address
    assert bridge.to_torch(x).data_ptr() == address
    assert bridge.convert(x, "caffe2").raw_data() == address
    assert bridge.explain(x).address == address
    assert bridge.shares_memory(x, samples)
    workspace.FeedBlob("signal", x)
    assert workspace.FetchTorch("signal").data_ptr() == address
    assert bridge.from_dlpack(x, copy=True).data_ptr() != address
    assert bridge.convert(x, "signal") is x
    assert bridge.convert(samples, "signal", copy=False).samples.data_ptr() == address


@isolated
def test_a_derived_class_is_of_the_library() -> None:
    class Derived(Signal):
        pass

    bridge.register("signal", types=[Signal], importer=lambda x: x.samples)
    assert bridge.to_numpy(Derived(bytearray(b"a"))).tolist() == [97]
    with pytest.raises(ValueError, match="numpy"):
        bridge.convert(np.ones(1), "signal")  # it has no exporter


@isolated
def test_registering_again_replaces_the_importer() -> None:
    bridge.register("signal", types=[Signal], importer=lambda x: x.samples)
    x = Signal(np.arange(2.0))
    assert bridge.from_dlpack(x).tolist() == [0, 1]
    bridge.register("signal", types=[Signal], importer=lambda x: x.samples[1:])
    assert bridge.from_dlpack(x).tolist() == [1]
    bridge.register("signal", exporter=Signal)
    with pytest.raises(TypeError, match="samples"):
        bridge.from_dlpack(x)


@isolated
def test_dotted_names_import_nothing() -> None:
    bridge.register("later", types=["not_loaded.Thing"], importer=lambda x: x.held)
    with pytest.raises(TypeError):
        bridge.from_dlpack(object())
    assert "not_loaded" not in sys.modules
    module: Any = ModuleType("not_loaded")
    module.Thing = type("Hidden", (), {"__module__": "not_loaded._core"})
    sys.modules["not_loaded"] = module
    x = module.Thing()
    x.held = bytearray(b"ab")
    assert bridge.from_dlpack(x).tolist() == [97, 98]


@isolated
def test_a_registered_class_goes_before_its_own_protocols() -> None:
    class Doors:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise AssertionError("not asked")

    bridge.register("doors", types=[Doors], importer=lambda x: bytearray(b"a"))
    assert bridge.from_dlpack(Doors()).tolist() == [97]


@isolated
def test_an_importer_may_leave_it_to_the_protocols() -> None:
    class Doors:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.arange(2.0)

    bridge.register("doors", types=[Doors], importer=lambda x: x)
    assert bridge.from_dlpack(Doors()).tolist() == [0, 1]


@isolated
def test_the_object_is_kept() -> None:
    held = np.arange(3.0)

    class Address:
        """Memory that lives as long as the object, which nothing else refers to."""

        def __init__(self) -> None:
            self.__array_interface__ = dict(held.__array_interface__)

    class Thing:
        pass

    bridge.register("thing", types=[Thing], importer=lambda x: Address())
    x = Thing()
    alive = weakref.ref(x)
    array = bridge.to_numpy(x)
    del x
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None


@isolated
def test_a_copy_by_an_importer_is_noticed() -> None:
    bridge.register("signal", types=[Signal], importer=lambda x: np.array(x.samples))
    x = Signal(np.arange(3.0))
    with bridge.audit() as log:
        assert bridge.from_dlpack(x).tolist() == [0, 1, 2]
        bridge.from_dlpack(x, copy=True)
        bridge.to_numpy(x, copy=True)
    assert [record.nbytes for record in log.records if record.copied] == [24, 24, 24]
    with pytest.raises(BufferError, match="new memory"):
        bridge.from_dlpack(x, copy=False)
    with bridge.no_copy(), pytest.raises(BufferError, match="no_copy"):
        bridge.to_torch(x)
    assert not bridge.shares_memory(x, x.samples)


@isolated
def test_a_copy_by_an_exporter_is_noticed() -> None:
    bridge.register(
        "signal", types=[Signal], importer=lambda x: x.samples, exporter=lambda t: Signal(t.clone())
    )
    with bridge.audit() as log:
        bridge.convert(np.arange(3.0), "signal")
    assert log.copied_bytes == 24
    with pytest.raises(BufferError, match="signal"):
        bridge.convert(np.arange(3.0), "signal", copy=False)


@isolated
def test_errors_of_importers_and_exporters_name_the_library() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no samples")

    bridge.register("signal", types=[Signal], importer=fail, exporter=fail)
    with pytest.raises(BufferError, match=r"signal.*no samples"):
        bridge.from_dlpack(Signal(None))
    with pytest.raises(BufferError, match=r"signal.*no samples"):
        bridge.convert(np.ones(1), "signal")


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((5,), {}),
        (("",), {}),
        (("x",), {"types": "openvino.Tensor"}),
        (("x",), {"types": Signal}),
        (("x",), {"types": [5]}),
        (("x",), {"types": ["Tensor"]}),
        (("x",), {"types": ["not a name.x"]}),
        (("x",), {"types": None}),
        (("x",), {"importer": 5}),
        (("x",), {"exporter": "f"}),
        (("torch",), {}),
        (("x",), {"unknown": 1}),
    ],
)
def test_wrong_arguments_are_refused_and_register_nothing(
    arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        bridge.register(*arguments, **options)
    with pytest.raises(ValueError):
        bridge.convert(np.ones(1), "x")


PACKAGE = """
class Tensor:
    def __init__(self, held):
        self.held = held
"""
ADAPTER = """
import bridge
called = []
def offer():
    called.append(1)
    from offered import Tensor
    bridge.register("offered", types=[Tensor], importer=lambda x: x.held, exporter=Tensor)
"""
USE = """
import sys
sys.path.insert(0, sys.argv[1])
import bridge
import numpy as np
bridge.from_dlpack(np.ones(1))
assert "offered" not in sys.modules and "offered.bridging" not in sys.modules
"""


def package(path: Path, entry: str) -> str:
    """Write a package that offers an adapter, installed in `path`; return the path."""
    info = path / "offered-1.0.dist-info"
    for folder in (info, path / "offered"):
        folder.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[bridge.adapters]\n{entry}\n")
    (path / "offered" / "__init__.py").write_text(PACKAGE)
    (path / "offered" / "bridging.py").write_text(ADAPTER)
    (path / "elsewhere.py").write_text(ADAPTER)
    return str(path)


def test_an_entry_point_is_called_for_its_class(tmp_path: Path) -> None:
    run_python(
        USE
        + """
import offered
x = offered.Tensor(np.arange(3.0))
assert bridge.to_numpy(x) is not None
assert bridge.shares_memory(x, x.held)
bridge.to_numpy(x)
assert sys.modules["offered.bridging"].called == [1]
""",
        package(tmp_path, "offered = offered.bridging:offer"),
    )


def test_an_entry_point_is_called_for_its_name(tmp_path: Path) -> None:
    run_python(
        USE
        + """
assert type(bridge.convert(np.ones(1), "offered")).__module__ == "offered"
assert sys.modules["offered.bridging"].called == [1]
try:
    bridge.convert(np.ones(1), "unknown")
except ValueError as error:
    assert "offered" in str(error)
""",
        package(tmp_path, "offered = offered.bridging:offer"),
    )


def test_an_entry_point_of_another_name_and_module_is_called(tmp_path: Path) -> None:
    run_python(
        USE
        + """
import offered
assert bridge.asarray(offered.Tensor(bytearray(b"a"))).tolist() == [97]
""",
        package(tmp_path, "whatever = elsewhere:offer"),
    )


def test_an_entry_point_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    run_python(
        USE
        + """
try:
    bridge.convert(np.ones(1), "offered")
except ImportError as error:
    assert "offered.missing" in str(error)
else:
    raise AssertionError
assert bridge.from_dlpack(np.ones(1)).tolist() == [1]
""",
        package(tmp_path, "offered = offered.missing:offer"),
    )


def test_an_entry_point_that_fails_breaks_nothing_else(tmp_path: Path) -> None:
    # warnings are errors here
    run_python(
        USE
        + """
for call in (bridge.from_dlpack, bridge.asarray, bridge.explain):
    try:
        call(object())
    except TypeError as error:
        assert "no tensor's memory" in str(error)
        assert "offered.missing" in str(error)
        assert "\\n" not in str(error)
    else:
        raise AssertionError
assert bridge.convert(np.ones(1), "torch").tolist() == [1]
""",
        package(tmp_path, "offered = offered.missing:offer"),
    )


@pytest.mark.parametrize("body", ["sys.exit(3)", "raise ValueError('no\\n more')"])
def test_an_entry_point_that_raises_or_exits_is_an_import_error(tmp_path: Path, body: str) -> None:
    path = package(tmp_path, "offered = stops:offer")
    (tmp_path / "stops.py").write_text(f"import sys\ndef offer():\n    {body}\n")
    run_python(
        USE
        + """
for _ in range(2):
    try:
        bridge.convert(np.ones(1), "offered")
    except ImportError as error:
        assert "stops:offer" in str(error) and "\\n" not in str(error)
    else:
        raise AssertionError
""",
        path,
    )


def test_an_entry_point_that_registers_nothing_is_not_listed(tmp_path: Path) -> None:
    path = package(tmp_path, "offered = elsewhere:nothing")
    (tmp_path / "elsewhere.py").write_text("def nothing():\n    pass\n")
    run_python(
        USE
        + """
try:
    bridge.convert(np.ones(1), "offered")
except ValueError as error:
    known = str(error).partition("it converts to")[2]
    assert "warp" in known and "offered" not in known
else:
    raise AssertionError
""",
        path,
    )


@pytest.mark.parametrize("how", ["top_level.txt", "RECORD"])
def test_an_entry_point_goes_before_a_protocol_of_the_class(tmp_path: Path, how: str) -> None:
    # neither the name nor the module of the entry point is the package's
    path = package(tmp_path, "whatever = elsewhere:offer")
    with (tmp_path / "offered" / "__init__.py").open("a") as file:
        file.write("    def __array__(self, dtype=None, copy=None):\n        raise ValueError\n")
    info = tmp_path / "offered-1.0.dist-info"
    info.rename(tmp_path / "another-1.0.dist-info")
    info = tmp_path / "another-1.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    (info / how).write_text("offered" if how == "top_level.txt" else "offered/__init__.py,,\n")
    run_python(
        USE
        + """
import offered
assert bridge.asarray(offered.Tensor(bytearray(b"a"))).tolist() == [97]
""",
        path,
    )
