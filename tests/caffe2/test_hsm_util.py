# SPDX-License-Identifier: Apache-2.0
"""Trees of words; the bytes are those of the real Caffe2."""

from bridge.caffe2 import hsm_util
from bridge.caffe2.proto import hsm_pb2

HIERARCHY = """
080d12120800120608001003180012060803100418001212080112060800100318001206080310041801121208
02120608001003180012060803100418021212080312060800100318001206080310041803121a080412060800
1003180112060807100218001206080910021800121a0805120608001003180112060807100218001206080910
021801121a0806120608001003180112060807100218011206080b10021800121a080712060800100318011206
0807100218011206080b10021801120a08081206080010031802
"""
TREE = """
0a3c0a0e1000100110021003180322026c310a200a0a10041005180922026c320a0c10061007180b22046e6f64
6518072202696e100818002204726f6f74
"""


def test_a_hierarchy_has_the_bytes_of_caffe2() -> None:
    leaves = [
        hsm_util.create_node_with_words(words, name)
        for words, name in (([0, 1, 2, 3], "l1"), ([4, 5], "l2"), ([6, 7], "node"))
    ]
    inner = hsm_util.create_node_with_nodes(leaves[1:], "in")
    root = hsm_util.create_node_with_nodes([leaves[0], inner], "root")
    root.word_ids.append(8)
    tree = hsm_pb2.TreeProto(root_node=root)
    hierarchy = hsm_util.create_hierarchy(tree)
    assert hierarchy.SerializeToString() == bytes.fromhex(HIERARCHY)
    assert tree.SerializeToString() == bytes.fromhex(TREE)
