# SPDX-License-Identifier: Apache-2.0
"""The names of four modules of ``caffe2.python.modeling`` that add operators to watch blobs.

compute_histogram_for_blobs, compute_norm_for_blobs, compute_statistics_for_blobs and
get_entry_from_blobs, PyTorch 1.8.1: the operators and the names of their blobs are the same.

>>> from bridge.caffe2 import brew, model_helper
>>> from bridge.caffe2.modeling.watched_blobs import ComputeNormForBlobs
>>> model = model_helper.ModelHelper(name="watched_doc")
>>> _ = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
>>> ComputeNormForBlobs(["y_w"], logging_frequency=0)(model.net)
>>> [(operator.type, operator.output[0]) for operator in model.net.Proto().op[1:]]
[('Cast', 'y_w_float'), ('LpNorm', 'y_w_l2_norm'), ('StopGradient', 'y_w_l2_norm_stop_gradient')]
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceValueError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.definitions.scope import DeviceScope
from bridge.caffe2.modeling.net_modifier import NetModifier
from bridge.caffe2.schema.containers import Struct
from bridge.caffe2.schema.field import Scalar

__all__ = [
    "ComputeHistogramForBlobs",
    "ComputeNormForBlobs",
    "ComputeStatisticsForBlobs",
    "GetEntryFromBlobs",
]


class _Watcher(NetModifier):
    """Adds a blob for each of `blobs`, named with a suffix, and prints it.

    logging_frequency: after how many runs it is printed; 0 is never. With `modify_output_record` it
    is a field of the net's output record, named as the watched blob, with the suffix.
    Raises EnforceNotMet, also an AssertionError: a blob that the net does not have.
    """

    # The type of the new field.
    _field: Any = (np.float64, (1,))

    def __init__(self, blobs: Sequence[Any], logging_frequency: int, suffix: str) -> None:
        self._blobs = blobs
        self._logging_frequency = logging_frequency
        self._field_name_suffix = suffix

    @abstractmethod
    def _watched(self, net: Any, blob: BlobReference) -> tuple[BlobReference, BlobReference]:
        """Add operators for a blob; return the blob that names the field, and the new one."""

    def modify_net(
        self,
        net: Any,
        init_net: Any = None,
        grad_map: Any = None,
        blob_to_device: Any = None,
        modify_output_record: bool = False,
    ) -> None:
        """Add the operators to `net`; see NetModifier and the class."""
        for name in self._blobs:
            blob = BlobReference(name)
            if not net.BlobIsDefined(blob):
                raise EnforceAssertionError(
                    f"Net {net.Name()} has no blob {str(blob)!r}.", type(self).__name__
                )
            with self._place(blob, blob_to_device or {}):
                named, found = self._watched(net, blob)
                if self._logging_frequency >= 1:
                    net.Print(found, [], every_n=self._logging_frequency)
            if modify_output_record:
                field = f"{named}{self._field_name_suffix}", Scalar(self._field, found)
                if net.output_record() is None:
                    net.set_output_record(Struct(field))
                else:
                    net.AppendOutputRecordField(*field)

    def _place(self, blob: BlobReference, devices: Any) -> AbstractContextManager[object]:
        """Return a context in which the operators for a blob get their device."""
        return nullcontext()

    def field_name_suffix(self) -> str:
        """Return what is added to a blob's name."""
        return self._field_name_suffix


def _as_float(net: Any, blob: BlobReference) -> Any:
    return net.Cast(blob, net.NextScopedBlob(prefix=f"{blob}_float"), to=DataType.FLOAT)


class ComputeNormForBlobs(_Watcher):
    """Computes norms, by default L2, on the CPU or the blob's device in `blob_to_device`.

    p: 1 or 2. compute_averaged_norm: the norm over the number of elements. row_index: the row, from
    1 on; 0 and None are all rows. Raises EnforceNotMet: a negative row.
    """

    def __init__(
        self,
        blobs: Sequence[Any],
        logging_frequency: int,
        p: int = 2,
        compute_averaged_norm: bool = False,
        row_index: int | None = None,
    ) -> None:
        if row_index is not None and row_index < 0:
            raise EnforceNotMet(
                f"A row index is not negative, as {row_index} is.", "ComputeNormForBlobs"
            )
        averaged = "_averaged" if compute_averaged_norm else ""
        super().__init__(blobs, logging_frequency, f"{averaged}_l{p}_norm")
        self._norm = {"p": p, "average": compute_averaged_norm}
        self.row_index = row_index

    def _place(self, blob: BlobReference, devices: Any) -> AbstractContextManager[object]:
        return DeviceScope(devices[blob] if blob in devices else DeviceOption(0))

    def _watched(self, net: Any, blob: BlobReference) -> tuple[BlobReference, BlobReference]:
        row = self.row_index
        if row:
            name = net.NextScopedBlob(prefix=f"{blob}_row_{row}")
            blob = net.Slice([blob], name, starts=[row, 0], ends=[row + 1, -1])
        values = _as_float(net, blob)
        name = net.NextScopedBlob(prefix=f"{blob}{self._field_name_suffix}")
        norm = net.LpNorm(values, name, **self._norm)
        net.StopGradient(norm, net.NextScopedBlob(f"{name}_stop_gradient"))
        return blob, norm


class ComputeHistogramForBlobs(_Watcher):
    """Computes the share of elements in each of `num_buckets` parts of a range, and outside it.

    lower_bound, upper_bound: the range. accumulate: of all runs, not of the last one.
    Raises EnforceNotMet, also an AssertionError: no buckets.
    """

    def __init__(
        self,
        blobs: Sequence[Any],
        logging_frequency: int,
        num_buckets: int = 30,
        lower_bound: float = 0.0,
        upper_bound: float = 1.0,
        accumulate: bool = False,
    ) -> None:
        kind = "acc" if accumulate else "curr"
        super().__init__(blobs, logging_frequency, f"_{kind}_normalized_hist")
        if int(num_buckets) <= 0:
            raise EnforceAssertionError(
                f"num_buckets need to be greater than 0, got {num_buckets}",
                "ComputeHistogramForBlobs",
            )
        self._accumulate = accumulate
        self._range = {
            "num_buckets": int(num_buckets),
            "lower_bound": float(lower_bound),
            "upper_bound": float(upper_bound),
        }
        self._field = (np.float32, (int(num_buckets) + 2,))

    def _watched(self, net: Any, blob: BlobReference) -> tuple[BlobReference, BlobReference]:
        values = _as_float(net, blob)
        names = [net.NextScopedBlob(prefix=f"{blob}_{kind}_hist") for kind in ("curr", "acc")]
        histograms = net.AccumulateHistogram([values], names, **self._range)
        counts = net.Cast(
            histograms[1 if self._accumulate else 0],
            net.NextScopedBlob(prefix=f"{blob}_cast_hist"),
            to=DataType.FLOAT,
        )
        name = net.NextScopedBlob(prefix=f"{blob}{self._field_name_suffix}")
        return blob, net.NormalizeL1(counts, name)


class ComputeStatisticsForBlobs(_Watcher):
    """Computes the least and largest element, the mean and the standard deviation."""

    def __init__(self, blobs: Sequence[Any], logging_frequency: int) -> None:
        super().__init__(blobs, logging_frequency, "_summary")

    def _watched(self, net: Any, blob: BlobReference) -> tuple[BlobReference, BlobReference]:
        values = net.Cast(blob, to=DataType.FLOAT)
        name = net.NextScopedBlob(prefix=f"{blob}{self._field_name_suffix}")
        return blob, net.Summarize(values, name, to_file=0)


class GetEntryFromBlobs(_Watcher):
    """Takes the element in row `i1` and column `i2` of a matrix; -1: the whole row.

    Raises EnforceNotMet, also a ValueError, when it modifies a net: `i1` is negative.
    """

    _field = np.float64

    def __init__(
        self, blobs: Sequence[Any], logging_frequency: int, i1: int = 0, i2: int = 0
    ) -> None:
        super().__init__(blobs, logging_frequency, f"_{i1}_{i2 if i2 >= 0 else 'all'}")
        self._i1 = int(i1)
        self._i2 = int(i2)

    def _watched(self, net: Any, blob: BlobReference) -> tuple[BlobReference, BlobReference]:
        i1, i2 = self._i1, self._i2
        if i1 < 0:
            raise EnforceValueError(
                f"The index of a row is not negative, as {i1} is.", "GetEntryFromBlobs"
            )
        row = net.Slice([blob], starts=[i1, 0], ends=[i1 + 1, -1])
        name = net.NextScopedBlob(prefix=f"{blob}{self._field_name_suffix}")
        if i2 == -1:
            return blob, net.Copy([row], [name])
        return blob, net.Slice([row], name, starts=[0, i2], ends=[-1, i2 + 1])
