# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's gradient operators, and of others missing in `schema_table`."""

__all__ = ["GRADIENTS"]

GRADIENTS = """
AbsGradient:2:1: AcosGradient:2:1: AddGradient:3:2:0>0,0>1
AsinGradient:2:1: AtanGradient:2:1:
BatchGatherGradient:3:1:
BooleanMaskGradient:2:1: CbrtGradient:2:1:0>0
ClipGradient:2:1:1>0 ColwiseMaxGradient:0-*:0-*:
CopyRowsToTensorGradient:1:1:0>0 CosGradient:2:1: CoshGradient:2:1:
CubeGradient:2:1: DivGradient:3-4:2:0>0 DotProductWithPaddingGradient:3:2:
EluGradient:2:1:1>0 ErfGradient:2:1:
ExpandGradient:2:1: FlexibleTopKGradient:4:1:
GeluGradient:2:1: HSoftmaxGradient:6:4:
HardSigmoidGradient:2:1:1>0
LeakyReluGradient:2:1:1>0
LengthsIndicesInGradientMeanGradient:3:1: LengthsIndicesInGradientSumGradient:3:1:
LengthsMaxWithMainInputAndForwardOutputGradient:4:1-*: LengthsMeanGradient:2:1:
LengthsSumGradient:2:1: LengthsTopKGradient:3:1: LengthsWeightedSumGradient:3:1:
LengthsWeightedSumWithMainInputGradient:4:1-*: LogitGradient:2:1: LpNormGradient:2:1:
MaxGradient:3-*:1-*:
MeanGradient:1:1-*:0>0 MergeMultiListFeatureTensorsGradient:2n+1:1-*:
MergeMultiMapFeatureTensorsGradient:2n+1:1-*: MergeMultiScalarFeatureTensorsGradient:2-*:1-*:
MergeSingleListFeatureTensorsGradient:2n+1:1-*:
MergeSingleMapFeatureTensorsGradient:2n+1:1-*: MergeSingleScalarFeatureTensorsGradient:2-*:1-*:
MinGradient:3-*:1-*: MishGradient:3:1: MomentsGradient:4:1: MulGradient:3:2:0>0,0>1
NegateGradient:1:1:0>0 PReluGradient:4:2:
PythonDLPackGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
PythonGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
QuantDecodeGradient:2n+1:1: ReciprocalGradient:2:1:1>0
RecurrentNetworkGradient:0-*:0-*: ReduceBackMaxGradient:3-4:1: ReduceBackMeanGradient:2-3:1:
ReduceBackSumGradient:2-3:1: ReduceFrontMaxGradient:3-4:1: ReduceFrontMeanGradient:2-3:1:
ReduceFrontSumGradient:2-3:1: ReduceFrontWeightedSumGradient:3:1: ReduceL1Gradient:3:1:
ReduceL2Gradient:3:1: ReduceMaxGradient:3:1: ReduceMeanGradient:3:1: ReduceMinGradient:3:1:
ReduceSumGradient:3:1: ReluGradient:2:1:1>0 ReluNGradient:2:1:1>0
RoIAlignGradient:3:1: RoIPoolGradient:4:1:
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradient:7:3:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox:7:3:0>0!,1>1!
RowwiseMaxGradient:3:1: RsqrtGradient:2:1:0>0 SeluGradient:2:1:1>0
SigmoidGradient:2:1:1>0 SinGradient:2:1:
SinhGradient:2:1: SliceGradient:0-*:0-*:
SoftplusGradient:2:1:1>0 SoftsignGradient:2:1:1>0 SortedSegmentMeanGradient:2:1:
SortedSegmentRangeLogMeanExpGradient:4:1: SortedSegmentRangeLogSumExpGradient:4:1:
SortedSegmentRangeMaxGradient:4:1: SortedSegmentRangeMeanGradient:4:1:
SortedSegmentRangeSumGradient:4:1: SortedSegmentSumGradient:2:1:
SortedSegmentWeightedSumGradient:3:1:
SparseAdagradFusedWithSparseLengthsMeanGradient:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsMeanGradientApprox:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsSumGradient:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsSumGradientApprox:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsWeightedSumGradient:7:3:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox:7:3:0>0!,1>1!
SparseLengthsIndicesInGradientMeanGradient:3:1:
SparseLengthsIndicesInGradientSumGradient:3:1:
SparseLengthsIndicesInGradientWeightedSumGradient:4:1:
SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient:5:2: SparseLengthsMeanGradient:2:1:
SparseLengthsSumGradient:2:1: SparseLengthsWeightedSumGradient:3:1:
SparseLengthsWeightedSumWithMainInputGradient:5:1-*: SparseSortedSegmentMeanGradient:2:1:
SparseSortedSegmentSumGradient:2:1: SparseSortedSegmentWeightedSumGradient:3:1:
SparseToDenseMaskGradient:2-3:1: SparseUnsortedSegmentMeanGradient:2:1:
SparseUnsortedSegmentSumGradient:2:1: SparseUnsortedSegmentWeightedSumGradient:3:1:
StopGradient:1:1:0>0 SubGradient:3:2:0>0,0>1
SumElementsGradient:2:1: SwishGradient:3:1:2>0 TTLinearGradient:0-*:0-*:
TTSparseLengthsSumGradient:8:3: TanGradient:2:1: TanhGradient:2:1:1>0
ThresholdedReluGradient:2:1:1>0 TileGradient:1-3:1: TopKGradient:3:1:
UnsortedSegmentMeanGradient:2:1: UnsortedSegmentSumGradient:2:1:
UnsortedSegmentWeightedSumGradient:3:1:
WeightedSumGradient:2n-1:1-*:
ZeroGradient:1:0:
"""
