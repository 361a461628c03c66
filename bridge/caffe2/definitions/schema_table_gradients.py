# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's gradient operators, and of others missing in `schema_table`."""

__all__ = ["GRADIENTS"]

GRADIENTS = """
AffineChannelGradient:2-3:1|3:0>0
AveragePool1DGradient:3:1: AveragePool2DGradient:3:1:
AveragePool3DGradient:3:1: AveragePoolGradient:3:1: AveragedLossGradient:2:1:
BatchMomentsGradient:3:1: BatchPermutationGradient:2:1:
BernoulliJSDGradient:3:1:
ChannelShuffleGradient:1:1:
Conv1DGradient:2-3:1-3: Conv2DGradient:2-3:1-3: Conv3DGradient:2-3:1-3: ConvGradient:2-3:1-3:
ConvTransposeGradient:3:1-3:
CosineEmbeddingCriterionGradient:3:1: CosineSimilarityGradient:3:2: CrossEntropyGradient:3:1:
DotProductGradient:3:2:
DropoutGrad:1-2:1:0>0 ElementwiseLinearGradient:3:3:
FCGradient:3:2-3: FCTransposedGradient:3:2-3: FlexibleTopKGradient:4:1:
GRUUnitGradient:5-6:2: GroupNormGradient:6:3: HSoftmaxGradient:6:4:
InstanceNormGradient:4-6:3: IntegralImageGradient:2:1:
L1DistanceGradient:3:2: LC1DGradient:2-3:1-3: LC2DGradient:2-3:1-3: LC3DGradient:2-3:1-3:
LCGradient:2-3:1-3: LRNGradient:3:1: LSTMUnitGradient:8-9:3: LabelCrossEntropyGradient:3:1:
LambdaRankNdcgGradient:4:1: LayerNormGradient:5-*:1|3:
LengthsIndicesInGradientMeanGradient:3:1: LengthsIndicesInGradientSumGradient:3:1:
LengthsMaxWithMainInputAndForwardOutputGradient:4:1-*: LengthsMeanGradient:2:1:
LengthsSumGradient:2:1: LengthsTopKGradient:3:1: LengthsWeightedSumGradient:3:1:
LengthsWeightedSumWithMainInputGradient:4:1-*:
LpPoolGradient:3:1: MakeTwoClassGradient:1:1: MarginRankingCriterionGradient:4:2:
MaxPool1DGradient:3:1: MaxPool2DGradient:3:1: MaxPool3DGradient:3:1:
MaxPoolGradient:3:1: MergeMultiListFeatureTensorsGradient:2n+1:1-*:
MergeMultiMapFeatureTensorsGradient:2n+1:1-*: MergeMultiScalarFeatureTensorsGradient:2-*:1-*:
MergeSingleListFeatureTensorsGradient:2n+1:1-*:
MergeSingleMapFeatureTensorsGradient:2n+1:1-*: MergeSingleScalarFeatureTensorsGradient:2-*:1-*:
NormalizeGradient:2:1: PadImageGradient:1:1:
PairWiseLossGradient:3-4:1:
PythonDLPackGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
PythonGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
QuantDecodeGradient:2n+1:1: RMSNormGradient:4:3:
RecurrentNetworkGradient:0-*:0-*:
ReduceFrontWeightedSumGradient:3:1:
ResizeNearest3DGradient:2:1:
ResizeNearestGradient:2-3:1: RoIPoolGradient:4:1:
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradient:7:3:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox:7:3:0>0!,1>1!
SigmoidCrossEntropyWithLogitsGradient:3:1:
SoftmaxGradient:2:1: SoftmaxWithLossGradient:0-*:1:
SortedSegmentMeanGradient:2:1:
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
SparseMomentumSGDUpdate:5:3:0>0,1>1!,3>2! SparseLengthsIndicesInGradientMeanGradient:3:1:
SparseLengthsIndicesInGradientSumGradient:3:1:
SparseLengthsIndicesInGradientWeightedSumGradient:4:1:
SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient:5:2: SparseLengthsMeanGradient:2:1:
SparseLengthsSumGradient:2:1: SparseLengthsWeightedSumGradient:3:1:
SparseLengthsWeightedSumWithMainInputGradient:5:1-*: SparseSortedSegmentMeanGradient:2:1:
SparseSortedSegmentSumGradient:2:1: SparseSortedSegmentWeightedSumGradient:3:1:
SparseUnsortedSegmentMeanGradient:2:1:
SparseUnsortedSegmentSumGradient:2:1: SparseUnsortedSegmentWeightedSumGradient:3:1:
SpatialBNGradient:5|7:3:5>1,5>2 SpatialSoftmaxWithLossGradient:0-*:1:
SquaredL2DistanceGradient:3:2:
TTLinearGradient:0-*:0-*:
TTSparseLengthsSumGradient:8:3:
TopKGradient:3:1:
UnsortedSegmentMeanGradient:2:1: UnsortedSegmentSumGradient:2:1:
UnsortedSegmentWeightedSumGradient:3:1: UpsampleBilinearGradient:2-3:1:
WeightedSigmoidCrossEntropyWithLogitsGradient:4:1:

"""
