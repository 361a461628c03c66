# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""TypeMeta: the table of element types, one row per type, with its name in every framework."""

import sys
import threading
from copy import deepcopy

from libc.stdint cimport uintptr_t

from bridge.c10.python_api cimport make_immortal, publish, published
from bridge.c10.slots cimport forbid_calling
from bridge.dlpack.abi cimport (
    DL_BFLOAT,
    DL_BOOL,
    DL_COMPLEX,
    DL_FLOAT,
    DL_INT,
    DL_UINT,
    DLDataType,
)

from bridge.c10.errors import EnforceTypeError, shown

cdef extern from *:
    """
    static void bridge_set_once(PyObject *owner, PyObject **field, PyObject *value) {
        BRIDGE_LOCK(owner);
        if (*field == Py_None) {
            BRIDGE_PUBLISH(field, Py_NewRef(value));
            Py_DECREF(Py_None);
        }
        BRIDGE_UNLOCK();
    }
    #define BRIDGE_NUMPY_OF(meta) Py_NewRef(BRIDGE_PUBLISHED(&(meta)->c_numpy))
    #define BRIDGE_TORCH_OF(meta) Py_NewRef(BRIDGE_PUBLISHED(&(meta)->c_torch))
    #define BRIDGE_SET_NUMPY(meta, found) \
        bridge_set_once((PyObject *)(meta), &(meta)->c_numpy, found)
    #define BRIDGE_SET_TORCH(meta, found) \
        bridge_set_once((PyObject *)(meta), &(meta)->c_torch, found)
    """
    # Fields that are set once and then stay, so that readers need no lock.
    object numpy_of "BRIDGE_NUMPY_OF"(TypeMeta meta)
    object torch_of "BRIDGE_TORCH_OF"(TypeMeta meta)
    void set_numpy "BRIDGE_SET_NUMPY"(TypeMeta meta, object found) noexcept
    void set_torch "BRIDGE_SET_TORCH"(TypeMeta meta, object found) noexcept


# pyi: from torch import dtype as TorchDtype


cdef class TypeMeta:
    """A type of tensor elements. There is one object per type, so ``is`` compares types.

    ``bool(meta)`` is False for the undefined type only. A TypeMeta is equal to all that
    ``TypeMeta.Make`` takes for it: ``x.dtype == torch.float32``, ``== np.float32`` and
    ``== "float32"``. Its hash is that of its ``torch.dtype``: ``x.dtype in {torch.float32}`` and
    ``{torch.float32: 1}[x.dtype]``; in a ``dict`` or ``set`` a NumPy dtype or a name, which have
    other hashes, do not find it. A hash never changes, and torch is not imported for it: a type
    that is hashed before torch is imported, or that torch lacks, keeps the hash of its name.

    It has the attributes of ``torch.dtype`` and of ``numpy.dtype``. ``np.dtype(meta)`` is its NumPy
    dtype; torch's own functions take no foreign types, so ``meta.torch`` is for them. Calling a
    TypeMeta returns it, so that ``x.dtype`` and ``x.dtype()`` are the same object.

    Returned by ``TypeMeta.Make(T)``, and by ``TypeMeta.Register(cls)`` for a class.

    Follows caffe2::TypeMeta, c10/util/typeid.h, PyTorch 1.8.1. Names are those
    of NumPy and ``ml_dtypes``.

    >>> from bridge.c10 import TypeMeta
    >>> meta = TypeMeta.Make("float32")
    >>> meta.name, meta.itemsize, meta.dlpack, meta.Match(float)
    ('float32', 4, (2, 32, 1), False)
    >>> meta.is_floating_point, meta.is_complex, meta.is_signed, meta.to_complex()
    (True, False, True, TypeMeta('complex64'))
    >>> meta.kind, meta.char, meta.byteorder, meta.alignment
    ('f', 'f', '=', 4)
    >>> import torch
    >>> torch.zeros(2, dtype=meta.torch).dtype == meta
    True
    """

    @staticmethod
    def Make(T: TypeLike) -> TypeMeta:
        """Return the TypeMeta that `T` names.

        `T` is a TypeMeta, a NumPy dtype or scalar type, a ``torch.dtype``, a name
        such as ``"float32"``, a Python type (``bool``, ``int`` = int64, ``float`` =
        float64, ``complex`` = complex128, ``bytes`` and ``str`` = string) or a
        registered class.

        Raises EnforceNotMet, also a TypeError: `T` does not name an element type.
        """
        return as_type(T)

    @staticmethod
    def Register(cls: type[Any]) -> TypeMeta:
        """Make the class `cls` an element type and return its TypeMeta, always the same one.

        A class that already names an element type, as ``float`` and ``numpy.float32`` do, keeps
        doing so. Elements are constructed by ``cls()`` when a tensor allocates, and copied by
        ``copy.deepcopy``.

        Raises EnforceNotMet, also a TypeError: `cls` is not a class.
        """
        cdef TypeMeta meta
        if not isinstance(cls, type):
            raise EnforceTypeError(
                f"An element type is a class, not {cls!r}.",
                "TypeMeta.Register", condition="isinstance(cls, type)")
        try:
            return as_type(cls)
        except EnforceTypeError:
            pass                # a class that does not name a type yet
        name = f"{cls.__module__}.{cls.__qualname__}"
        with _registering:
            named = _by_class.get(id(cls))
            if named is not None:       # by another thread
                return (<tuple>named)[1]
            meta = _new(name, 8, False)
            set_element_class(meta, cls, deepcopy)
        return meta

    def Match(self, T: TypeLike) -> bool:
        """Return whether this is the type that `T` names. Raises as `Make` does."""
        return as_type(T) is self

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; ``object`` for non-POD types. Imports NumPy (and ml_dtypes).

        Raises EnforceNotMet, also a TypeError, where NumPy has no such type.
        """
        if numpy_of(self) is None:
            set_numpy(self, _numpy_dtype(self))
        return numpy_of(self)

    @property
    def is_pod(self) -> bool:
        """Whether elements are plain memory: without constructor, destructor or Python object."""
        return self.c_is_pod

    @property
    def element_class(self) -> type[Any] | Any:
        """The Python class of non-POD elements; None for POD types."""
        return self.cls

    @property
    def torch(self) -> TorchDtype | None:
        """The ``torch.dtype``, or None if torch has no such type. Imports torch.

        For torch's functions, which take no types of other libraries:
        ``torch.zeros(2, dtype=x.dtype.torch)``.
        """
        if not published(&self.torch_known):
            import torch
            if not hasattr(torch, "dtype"):
                raise ImportError("torch is only partly imported.")
            found = getattr(torch, _TORCH_NAME.get(self.name, self.name), None)
            if self.c_is_pod and isinstance(found, torch.dtype):
                set_torch(self, found)
            publish(&self.torch_known, True)
        return torch_of(self)

    @property
    def dlpack(self) -> tuple[int, int, int] | None:
        """DLPack's (code, bits, lanes), None for non-POD types."""
        if not self.c_is_pod:
            return None
        return self.c_dlpack.code, self.c_dlpack.bits, self.c_dlpack.lanes

    def __dlpack_data_type__(self) -> tuple[int, int, int]:
        """Return DLPack's (code, bits, lanes). Raises EnforceNotMet: the type is not POD."""
        if not self.c_is_pod:
            raise EnforceTypeError(
                f"DLPack has no element type {self.name}.", "TypeMeta.__dlpack_data_type__",
                condition="is_pod")
        return self.dlpack

    @property
    def dtype(self) -> np.dtype[Any]:
        """The same as `numpy`; ``numpy.dtype(meta)`` reads it."""
        return self.numpy

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        return self.numpy

    # As torch.dtype has them.

    @property
    def is_floating_point(self) -> bool:
        """Whether elements are real floating-point numbers."""
        return _is_float(self)

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex numbers."""
        return self.c_is_pod and self.c_dlpack.code == DL_COMPLEX

    @property
    def is_signed(self) -> bool:
        """Whether elements can be negative; False for bool."""
        return self.is_complex or (self.c_is_pod and self.c_dlpack.code == DL_INT) or (
            _is_float(self) and self.name != "float8_e8m0fnu")

    def to_real(self) -> TypeMeta:
        """Return the type of the real part of an element; this type if it is not complex."""
        for real, full in _COMPLEX_OF.items():
            if full == self.name and real != "bfloat16":
                return _by_spec[real]
        return self

    def to_complex(self) -> TypeMeta:
        """Return the complex type whose parts are of this type; this type if it is complex.

        That of bfloat16 is complex64, as in torch before 2.14; bcomplex32, which torch has since,
        is not a type of DLPack.

        Raises EnforceNotMet, also a TypeError: there is none.
        """
        if self.is_complex:
            return self
        if self.name not in _COMPLEX_OF:
            raise EnforceTypeError(
                f"There is no complex type with parts of {self}. The types that have one are "
                f"{', '.join(_COMPLEX_OF)}.", "TypeMeta.to_complex")
        return _by_spec[_COMPLEX_OF[self.name]]

    # As numpy.dtype has them.

    @property
    def kind(self) -> builtins.str:
        """NumPy's letter for the kind of type, such as ``"f"``; ``"V"`` for those of ml_dtypes."""
        return _of_its_numpy(self, "kind")

    @property
    def byteorder(self) -> builtins.str:
        """NumPy's sign of the byte order: ``"="``, native, or ``"|"`` for elements of a byte."""
        return _of_its_numpy(self, "byteorder")

    @property
    def char(self) -> builtins.str:
        """NumPy's letter for the type, such as ``"d"`` for float64."""
        return _of_its_numpy(self, "char")

    @property
    def str(self) -> builtins.str:
        """NumPy's name with byte order and size, such as ``"<f4"``."""
        return _of_its_numpy(self, "str")

    @property
    def alignment(self) -> int:
        """The alignment of an element, in bytes, as NumPy has it."""
        return _of_its_numpy(self, "alignment")

    def __getattr__(self, name: builtins.str) -> Any:
        if name in _OTHERS_OF_NUMPY:
            return _of_its_numpy(self, name)
        raise AttributeError(f"A TypeMeta has no attribute {name!r}.")

    def __call__(self) -> Self:
        return self

    def __bool__(self) -> bool:
        return self is not undefined_type

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeMeta):
            return self is other
        try:
            return as_type(other) is self
        except EnforceTypeError:
            return NotImplemented

    def __hash__(self) -> int:
        known = _hashes.get(<uintptr_t><void*>self)
        if known is None:
            known = _hashes.setdefault(<uintptr_t><void*>self, _hash_now(self))
        return known

    def __repr__(self):
        if self is undefined_type:
            return "TypeMeta()"
        return f"TypeMeta({self.name!r})"

    def __str__(self):
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        if self is undefined_type:
            return _undefined, ()
        if self.name in _by_spec:
            return as_type, (self.name,)
        return _registered, (self.cls,)


forbid_calling(TypeMeta)


def _undefined():
    return undefined_type


def _registered(cls):
    # When unpickled in another process, the class may not be an element type yet.
    return TypeMeta.Register(cls)


# The hash of each type that was hashed, by address: torch may be imported later.
cdef dict _hashes = {}
# The complex type with parts of a type, as torch has it.
cdef dict _COMPLEX_OF = {
    "float16": "complex32", "bfloat16": "complex64", "float32": "complex64",
    "float64": "complex128",
}
# Attributes of numpy.dtype that are passed on and not listed with the class.
cdef frozenset _OTHERS_OF_NUMPY = frozenset((
    "base", "descr", "fields", "flags", "hasobject", "isalignedstruct", "isbuiltin", "isnative",
    "metadata", "names", "ndim", "newbyteorder", "num", "shape", "subdtype", "type"))


cdef object _hash_now(TypeMeta meta):
    """Return the hash of the torch.dtype where torch is imported and has one, else of the name."""
    if meta.c_is_pod and sys.modules.get("torch") is not None:
        try:
            found = meta.torch
        except ImportError:             # torch is importing the module that asks
            found = None
        if found is not None:
            return hash(found)
    return hash(meta.name)


cdef bint _is_float(TypeMeta meta) noexcept:
    cdef int code = meta.c_dlpack.code
    return meta.c_is_pod and (code == DL_FLOAT or code == DL_BFLOAT or code >= 7)


cdef object _of_its_numpy(TypeMeta meta, name):
    """Return an attribute of the NumPy dtype; AttributeError where there is no such dtype."""
    try:
        dtype = meta.numpy
    except EnforceTypeError as error:
        raise AttributeError(f"{meta!r} has no {name}: {error}") from error
    return getattr(dtype, name)


# Any name of a type -> TypeMeta; names that were looked up are added. Classes are compared by
# identity, since a metaclass may define any `==` and no hash: id -> (class, TypeMeta), which keeps
# the class alive, so that its id stays its own.
cdef dict _by_spec = {}
cdef dict _by_dtype = {}        # NumPy's of numbers: NumPy takes a microsecond for a name
cdef dict _by_class = {}
cdef dict _by_dlpack = {}
cdef object _registering = threading.RLock()    # held while a class is added to `_by_class`
cdef dict _TORCH_NAME = {}
# NumPy's kinds of types that are not element types, and their names in errors.
cdef dict _REFUSED_KINDS = {
    "O": "Python objects", "V": "structured or void elements",
    "M": "datetime64", "m": "timedelta64",
}
NO_FLOAT0 = (  # pyi: str
    "JAX's float0 is the type of the gradient of integers, which has no values: it is zero "
    "everywhere. Use numpy.zeros(x.shape).")


cdef TypeMeta _new(str name, int itemsize, bint is_pod):
    cdef TypeMeta meta = TypeMeta.__new__(TypeMeta)
    meta.name = name
    meta.itemsize = itemsize
    meta.c_is_pod = is_pod
    make_immortal(meta)     # `_by_spec` or `_by_class` keeps it
    return meta


cdef TypeMeta _row(str name, int itemsize, int code, int bits, bytes format=None,
                   str torch=None, int lanes=1):
    cdef TypeMeta meta = _new(name, itemsize, True)
    meta.c_dlpack.code = code
    meta.c_dlpack.bits = bits
    meta.c_dlpack.lanes = lanes
    meta.format = format
    if torch is not None:
        _TORCH_NAME[name] = torch
    _by_spec[name] = meta
    _by_dlpack[(code, bits, lanes)] = meta
    ROWS.append(meta)
    return meta


# Every row, in order. Elements of fewer than eight bits take one byte each, as in ml_dtypes; "_x2"
# is torch's pair of float4 in one byte.
ROWS = []  # pyi: list[TypeMeta]
_row("bool", 1, DL_BOOL, 8, b"?")
_row("int8", 1, DL_INT, 8, b"b")
_row("int16", 2, DL_INT, 16, b"h")
_row("int32", 4, DL_INT, 32, b"i")
_row("int64", 8, DL_INT, 64, b"l" if sizeof(long) == 8 else b"q")
cdef TypeMeta uint8_type = _row("uint8", 1, DL_UINT, 8, b"B")
_row("uint16", 2, DL_UINT, 16, b"H")
_row("uint32", 4, DL_UINT, 32, b"I")
_row("uint64", 8, DL_UINT, 64, b"L" if sizeof(long) == 8 else b"Q")
_row("float16", 2, DL_FLOAT, 16, b"e")
cdef TypeMeta float32_type = _row("float32", 4, DL_FLOAT, 32, b"f")
_row("float64", 8, DL_FLOAT, 64, b"d")
_row("bfloat16", 2, DL_BFLOAT, 16)
_row("complex32", 4, DL_COMPLEX, 32)
_row("complex64", 8, DL_COMPLEX, 64, b"Zf")
_row("complex128", 16, DL_COMPLEX, 128, b"Zd")
_row("float8_e3m4", 1, 7, 8)
_row("float8_e4m3", 1, 8, 8)
_row("float8_e4m3b11fnuz", 1, 9, 8)
_row("float8_e4m3fn", 1, 10, 8)
_row("float8_e4m3fnuz", 1, 11, 8)
_row("float8_e5m2", 1, 12, 8)
_row("float8_e5m2fnuz", 1, 13, 8)
_row("float8_e8m0fnu", 1, 14, 8)
_row("float6_e2m3fn", 1, 15, 6)
_row("float6_e3m2fn", 1, 16, 6)
_row("float4_e2m1fn", 1, 17, 4)
_row("float4_e2m1fn_x2", 1, 17, 4, None, "float4_e2m1fn_x2", 2)
for _bits in range(1, 8):
    _row(f"int{_bits}", 1, DL_INT, _bits)
    _row(f"uint{_bits}", 1, DL_UINT, _bits)

cdef TypeMeta undefined_type = _new("nullptr (uninitialized)", 0, False)
cdef TypeMeta string_type = _new("string", 8, False)
string_type.cls = bytes
_by_spec["string"] = string_type
cdef TypeMeta tensor_type = _new("tensor", 8, False)
_by_spec["tensor"] = tensor_type

_by_spec.update({"std::string": string_type, "str": string_type, "bytes": string_type})


cdef int _name_by_class(object cls, TypeMeta meta) except -1:
    _by_class[id(cls)] = (cls, meta)
    return 0


_name_by_class(bool, _by_spec["bool"])
_name_by_class(int, _by_spec["int64"])
_name_by_class(float, _by_spec["float64"])
_name_by_class(complex, _by_spec["complex128"])
_name_by_class(bytes, string_type)
_name_by_class(str, string_type)


cdef int set_element_class(
    TypeMeta meta, object cls, object copy_element, tuple aliases=(),
) except -1:
    """Set how elements of a non-POD type are constructed and copied.

    ``cls()`` constructs one, ``copy_element(element)`` copies one. `cls` and the classes in
    `aliases` name the type from then on. As the functions in TypeMetaData, c10/util/typeid.h,
    PyTorch 1.8.1: c10 knows no class of tensors, so the module of caffe2.Tensor calls this for
    `tensor_type`.
    """
    meta.cls = cls
    meta.copy_element = copy_element
    for named in (cls, *aliases):
        _name_by_class(named, meta)
    return 0


def undefined() -> TypeMeta:
    """Return the type of a tensor that has no type yet; it is False."""
    return undefined_type


cdef enum:
    CODES = 32
    WIDTHS = 129

# The rows of one lane by code and width; borrowed references, since rows are never freed.
cdef (void*)[CODES * WIDTHS] _one_lane

for (_code, _width, _lanes), _meta in _by_dlpack.items():
    if _lanes == 1:
        _one_lane[<int>_code * WIDTHS + <int>_width] = <void*>_meta


cdef TypeMeta from_dlpack_type(DLDataType dtype):
    """Return the row of a DLPack type, or None if there is none."""
    cdef void* row
    if dtype.lanes == 1:
        if dtype.code >= CODES or dtype.bits >= WIDTHS:
            return None
        row = _one_lane[dtype.code * WIDTHS + dtype.bits]
        return None if row == NULL else <TypeMeta>row
    return _by_dlpack.get((dtype.code, dtype.bits, dtype.lanes))


cpdef TypeMeta as_type(object spec: TypeLike):
    """Return the TypeMeta of a type or its name, as TypeMeta.Make."""
    if isinstance(spec, TypeMeta):
        return <TypeMeta>spec
    if isinstance(spec, type):
        named = _by_class.get(id(spec))
        if named is not None:
            return <TypeMeta>(<tuple>named)[1]
        found = _look_up(spec)
        _name_by_class(spec, found)
        return <TypeMeta>found
    try:
        found = _by_spec.get(spec)
    except (TypeError, ValueError):     # not hashable; a memoryview raises ValueError
        found = None
    if found is None:
        found = _look_up(spec)
        if len(_by_spec) < 65536:
            _by_spec[spec] = found
    return <TypeMeta>found


cdef TypeMeta _look_up(object spec):
    """Return the TypeMeta of a name that was not looked up before. Raises EnforceTypeError."""
    kind = type(spec)
    module = kind.__module__ or ""
    if kind.__name__ == "dtype" and module == "torch":
        name = str(spec).partition(".")[2]
        for row in ROWS:
            if _TORCH_NAME.get(row.name, row.name) == name:
                return row
        raise EnforceTypeError(
            f"{spec} is not an element type of the bridge: torch's quantized and bit types "
            "have a meaning that the memory alone does not carry.", "TypeMeta.Make")
    if isinstance(spec, type) and getattr(spec, "dtype", None) is not None \
            and (spec.__module__ or "").partition(".")[0] in ("numpy", "ml_dtypes"):
        import numpy
        return _of_numpy(numpy.dtype(spec))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(spec, numpy.dtype):
        return _of_numpy(spec)
    # jax.numpy.float32 and the like have a NumPy dtype as an attribute.
    inner = getattr(spec, "dtype", None) \
        if module.partition(".")[0] == "jax" and callable(spec) else None
    if numpy is not None and isinstance(inner, numpy.dtype):
        return _of_numpy(inner)
    described = getattr(kind, "__dlpack_data_type__", None)
    if described is not None:       # the element type of another library, such as Paddle
        answer = described(spec)        # (code, bits, lanes)
        found = _by_dlpack.get(tuple(answer)) if isinstance(answer, (tuple, list)) else None
        if found is not None:
            return found
    if isinstance(spec, str) and len(spec) < 64:
        import numpy
        try:
            return _of_numpy(numpy.dtype(spec))
        except EnforceTypeError:
            raise
        except (TypeError, ValueError, SyntaxError):
            pass                # not a name of NumPy's; the error below is raised
    raise EnforceTypeError(
        f"{shown(spec)} does not name an element type. Give a c10.TypeMeta, a NumPy dtype, a "
        "torch.dtype, a name such as 'float32', one of bool, int, float, complex, bytes, str, "
        "or a class after c10.TypeMeta.Register(cls).", "TypeMeta.Make")


cdef TypeMeta _of_numpy(object dtype):
    """Return the TypeMeta of a NumPy dtype. Raises EnforceTypeError: there is none."""
    cdef TypeMeta found
    if dtype.kind in "SU":
        return string_type
    if dtype.names is None and not dtype.isnative:
        raise EnforceTypeError(
            f"{dtype!r} has foreign byte order; element types have native order. "
            "Use dtype.newbyteorder('=').", "TypeMeta.Make", condition="dtype.isnative")
    if dtype.kind == "O":
        raise EnforceTypeError(
            "NumPy's object dtype does not name an element type; register the class of the "
            "elements with c10.TypeMeta.Register(cls).", "TypeMeta.Make")
    if dtype.names is not None or dtype.subdtype is not None:
        found = None
    else:
        # By name, since int64 may be long or long long.
        found = _by_spec.get(dtype.name)
    if found is None:
        from bridge.c10.numpy_registry import code_and_bits
        found = _by_dlpack.get((*(code_and_bits(dtype) or (0, 0)), 1))
    if found is None or not found.c_is_pod or found.itemsize != dtype.itemsize:
        what = _REFUSED_KINDS.get(dtype.kind, f"{dtype.itemsize} bytes per element")
        more = f" {NO_FLOAT0}" if dtype.names == ("float0",) else ""
        raise EnforceTypeError(
            f"NumPy's {dtype!r} ({what}) is not an element type of the bridge.{more}",
            "TypeMeta.Make")
    return found


def type_of_elements(dtype: np.dtype[Any]) -> TypeMeta:
    """Return the TypeMeta of a NumPy dtype of any byte order.

    Raises EnforceTypeError: there is none.
    """
    cdef TypeMeta found = _by_dtype.get(dtype)
    if found is None:
        # A structure is refused in any order; NumPy 2.4's newbyteorder crashes on some.
        is_native = dtype.names is not None or dtype.isnative
        found = _of_numpy(dtype if is_native else dtype.newbyteorder("="))
        if dtype.kind in "biufc":
            _by_dtype[dtype] = found
    return found


cdef object _numpy_dtype(TypeMeta meta):
    import numpy
    if not meta.c_is_pod:
        if meta is undefined_type:
            raise EnforceTypeError(
                "The tensor has no element type yet; call mutable_data(T) first.", "TypeMeta.numpy",
                condition="dtype_initialized()")
        return numpy.dtype(object)
    try:
        return numpy.dtype(meta.name)
    except TypeError:
        dtype = None
    try:
        import ml_dtypes
        dtype = getattr(ml_dtypes, meta.name, None)
        missing = None
    except ImportError as error:
        missing = error
    if dtype is None and meta.c_dlpack.lanes == 1:
        from bridge.c10.numpy_registry import registered
        dtype = registered(meta.c_dlpack.code, meta.c_dlpack.bits)
        if dtype is not None and dtype.itemsize != meta.itemsize:
            dtype = None
    if dtype is None and missing is not None:
        raise EnforceTypeError(
            f"NumPy has {meta.name} only with the package ml_dtypes, which is not installed.",
            "TypeMeta.numpy") from missing
    if dtype is None:
        raise EnforceTypeError(
            f"Neither NumPy nor ml_dtypes has {meta.name}; view the tensor as bytes, or use "
            "to_torch().", "TypeMeta.numpy")
    return numpy.dtype(dtype)


# The names in pickles of a TypeMeta. Not `_registered`: a class is for its own module to allow.
REBUILDERS = (as_type, _undefined)  # pyi: tuple[Callable[..., TypeMeta], ...]
