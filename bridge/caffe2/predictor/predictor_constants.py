# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.predictor_constants``: names of blobs and nets in exported files.

>>> from bridge.caffe2.predictor.predictor_constants import predictor_constants
>>> predictor_constants.PREDICT_NET_TYPE
'PREDICT_NET_TYPE'
"""

from __future__ import annotations

from bridge.caffe2.proto import predictor_consts_pb2

__all__ = ["predictor_constants"]

predictor_constants = predictor_consts_pb2.PredictorConsts()
