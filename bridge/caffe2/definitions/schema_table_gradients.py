# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's gradient operators, and of others missing in `schema_table`."""

__all__ = ["GRADIENTS"]

GRADIENTS = """
PythonDLPackGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
PythonGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
RecurrentNetworkGradient:0-*:0-*:
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradient:7:3:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox:7:3:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsMeanGradient:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsMeanGradientApprox:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsSumGradient:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsSumGradientApprox:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsWeightedSumGradient:7:3:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox:7:3:0>0!,1>1! """
