# SPDX-License-Identifier: Apache-2.0
"""Messages of Caffe2's smaller files; the bytes were written by the real Caffe2's classes."""

from __future__ import annotations

import pickle

from bridge.caffe2.proto import caffe2_pb2, hsm_pb2, metanet_pb2, predictor_consts_pb2


def test_a_tree_of_words_has_the_bytes_of_caffe2() -> None:
    leaf = hsm_pb2.NodeProto(word_ids=[1, 2], offset=3, name="leaf", scores=[0.5])
    tree = hsm_pb2.TreeProto(root_node=hsm_pb2.NodeProto(children=[leaf], offset=0))
    expected = "0a150a1110011002180322046c6561662d0000003f1800"
    assert tree.SerializeToString().hex() == expected
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_paths_have_the_bytes_of_caffe2() -> None:
    node = hsm_pb2.PathNodeProto(index=1, length=2, target=3)
    path = hsm_pb2.PathProto(word_id=4, path_nodes=[node])
    hierarchy = hsm_pb2.HierarchyProto(size=1, paths=[path])
    assert hierarchy.SerializeToString().hex() == "0801120a08041206080110021803"


def test_nets_in_a_meta_net_are_messages_of_caffe2_pb2() -> None:
    net = caffe2_pb2.NetDef(name="n")
    message = metanet_pb2.MetaNetDef(nets=[metanet_pb2.NetsMap(key="k", value=net)])
    assert message.SerializeToString().hex() == "12080a016b12030a016e"
    assert isinstance(message.nets[0].value, caffe2_pb2.NetDef)


def test_names_are_the_defaults() -> None:
    constants = predictor_consts_pb2.PredictorConsts()
    assert constants.META_NET_DEF == "!!META_NET_DEF"
    assert constants.DEFERRED_BLOB_READER == "__DEFERRED_BLOB_READER__"
    assert constants.SerializeToString() == b""
