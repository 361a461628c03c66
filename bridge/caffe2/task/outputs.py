# SPDX-License-Identifier: Apache-2.0
"""TaskOutput: an output of a task, to be fetched from the session that ran it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.annotation import Any
from bridge.caffe2.schema.columns import from_blob_list
from bridge.caffe2.schema.field import Field
from bridge.caffe2.task.builder import require


class TaskOutput:
    """The output of a task: a blob, a list of blobs or a record."""

    def __init__(self, names: Any) -> None:
        self._schema = names if isinstance(names, Field) else None
        given = names.field_blobs() if isinstance(names, Field) else names
        self._is_scalar = type(given) not in (tuple, list)
        self.names: Any = [given] if self._is_scalar else given
        self._values: Any = None
        self._fetch_func: Callable[[Any], Any] | None = None

    def set(self, values: Any, _fetch_func: Callable[[Any], Any] | None = None) -> None:
        """Set the blobs that hold the output, and the function that fetches one."""
        require(len(values) == len(self.names), "There is one value per name.", "TaskOutput.set")
        self._values, self._fetch_func = values, _fetch_func

    def get(self) -> Any:
        """Return the blobs that hold the output.

        Raises EnforceNotMet, also an AssertionError: no session has run the task.
        """
        require(self._values is not None, "Output value not set yet.", "TaskOutput.get")
        return self._shaped(self._values)

    def fetch(self) -> Any:
        """Return the values of the blobs, as arrays.

        Raises EnforceNotMet, also an AssertionError: no session has run the task.
        """
        fetch = self._fetch_func
        if fetch is None:
            require(False, "Cannot fetch value for this output.", "TaskOutput.fetch")
            return None
        return self._shaped([fetch(blob) for blob in self._values])

    def _shaped(self, values: Any) -> Any:
        """Return values as the blob, the list or the record that the output was made from."""
        if self._schema is not None:
            return from_blob_list(self._schema, values)
        return values[0] if self._is_scalar else values

    def __repr__(self) -> str:
        return f"TaskOutput(names={self.names}, values={self._values})"


class TaskOutputList:
    """The outputs of a task."""

    def __init__(self, outputs: Iterable[TaskOutput] | None = None) -> None:
        self.outputs = list(outputs or ())

    def names(self) -> list[Any]:
        """Return the names of all blobs."""
        return [name for output in self.outputs for name in output.names]

    def set_values(self, values: Any, _fetch_func: Callable[[Any], Any] | None = None) -> None:
        """Set the blobs of all outputs, in the order of `names`."""
        require(
            len(values) == len(self.names()), "Wrong number of output values.", "TaskOutputList"
        )
        start = 0
        for output in self.outputs:
            end = start + len(output.names)
            output.set(values[start:end], _fetch_func)
            start = end

    def __repr__(self) -> str:
        return f"TaskOutputList(outputs={self.outputs})"
