# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's gradient operators, and of others missing in `schema_table`."""

__all__ = ["GRADIENTS"]

GRADIENTS = """
AbsGradient:2:1: AcosGradient:2:1: AddGradient:3:2:0>0,0>1 AffineChannelGradient:2-3:1|3:0>0
AsinGradient:2:1: AtanGradient:2:1: AveragePool1DGradient:3:1: AveragePool2DGradient:3:1:
AveragePool3DGradient:3:1: AveragePoolGradient:3:1: AveragedLossGradient:2:1:
BatchGatherGradient:3:1: BatchMomentsGradient:3:1: BatchPermutationGradient:2:1:
BernoulliJSDGradient:3:1: BooleanMaskGradient:2:1: CbrtGradient:2:1:0>0
ChannelShuffleGradient:1:1: ClipGradient:2:1:1>0 ColwiseMaxGradient:0-*:0-*:
Conv1DGradient:2-3:1-3: Conv2DGradient:2-3:1-3: Conv3DGradient:2-3:1-3: ConvGradient:2-3:1-3:
ConvTransposeGradient:3:1-3: CopyRowsToTensorGradient:1:1:0>0 CosGradient:2:1: CoshGradient:2:1:
CosineEmbeddingCriterionGradient:3:1: CosineSimilarityGradient:3:2: CrossEntropyGradient:3:1:
CubeGradient:2:1: DivGradient:3-4:2:0>0 DotProductGradient:3:2: DotProductWithPaddingGradient:3:2:
DropoutGrad:1-2:1:0>0 ElementwiseLinearGradient:3:3: EluGradient:2:1:1>0 ErfGradient:2:1:
ExpandGradient:2:1: FCGradient:3:2-3: FCTransposedGradient:3:2-3:
GRUUnitGradient:5-6:2: GeluGradient:2:1: GroupNormGradient:6:3: HSoftmaxGradient:6:4:
HardSigmoidGradient:2:1:1>0 InstanceNormGradient:4-6:3: IntegralImageGradient:2:1:
L1DistanceGradient:3:2: LC1DGradient:2-3:1-3: LC2DGradient:2-3:1-3: LC3DGradient:2-3:1-3:
LCGradient:2-3:1-3: LRNGradient:3:1: LSTMUnitGradient:8-9:3: LabelCrossEntropyGradient:3:1:
LambdaRankNdcgGradient:4:1: LayerNormGradient:5-*:1|3: LeakyReluGradient:2:1:1>0
LogitGradient:2:1: LpNormGradient:2:1:
LpPoolGradient:3:1: MakeTwoClassGradient:1:1: MarginRankingCriterionGradient:4:2:
MaxGradient:3-*:1-*: MaxPool1DGradient:3:1: MaxPool2DGradient:3:1: MaxPool3DGradient:3:1:
MaxPoolGradient:3:1: MeanGradient:1:1-*:0>0
MinGradient:3-*:1-*: MishGradient:3:1: MomentsGradient:4:1: MulGradient:3:2:0>0,0>1
NegateGradient:1:1:0>0 NormalizeGradient:2:1: PReluGradient:4:2: PadImageGradient:1:1:
PairWiseLossGradient:3-4:1:
PythonDLPackGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
PythonGradient:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
RMSNormGradient:4:3: ReciprocalGradient:2:1:1>0
RecurrentNetworkGradient:0-*:0-*: ReduceBackMaxGradient:3-4:1: ReduceBackMeanGradient:2-3:1:
ReduceBackSumGradient:2-3:1: ReduceFrontMaxGradient:3-4:1: ReduceFrontMeanGradient:2-3:1:
ReduceFrontSumGradient:2-3:1: ReduceL1Gradient:3:1:
ReduceL2Gradient:3:1: ReduceMaxGradient:3:1: ReduceMeanGradient:3:1: ReduceMinGradient:3:1:
ReduceSumGradient:3:1: ReluGradient:2:1:1>0 ReluNGradient:2:1:1>0 ResizeNearest3DGradient:2:1:
ResizeNearestGradient:2-3:1: RoIAlignGradient:3:1: RoIPoolGradient:4:1:
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsMeanGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradient:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsSumGradientApprox:6:2:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradient:7:3:0>0!,1>1!
RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox:7:3:0>0!,1>1!
RowwiseMaxGradient:3:1: RsqrtGradient:2:1:0>0 SeluGradient:2:1:1>0
SigmoidCrossEntropyWithLogitsGradient:3:1: SigmoidGradient:2:1:1>0 SinGradient:2:1:
SinhGradient:2:1: SliceGradient:0-*:0-*: SoftmaxGradient:2:1: SoftmaxWithLossGradient:0-*:1:
SoftplusGradient:2:1:1>0 SoftsignGradient:2:1:1>0
SparseAdagradFusedWithSparseLengthsMeanGradient:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsMeanGradientApprox:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsSumGradient:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsSumGradientApprox:6:2:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsWeightedSumGradient:7:3:0>0!,1>1!
SparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox:7:3:0>0!,1>1!
SparseMomentumSGDUpdate:5:3:0>0,1>1!,3>2!
SparseToDenseMaskGradient:2-3:1:
SpatialBNGradient:5|7:3:5>1,5>2 SpatialSoftmaxWithLossGradient:0-*:1:
SquaredL2DistanceGradient:3:2: StopGradient:1:1:0>0 SubGradient:3:2:0>0,0>1
SumElementsGradient:2:1: SwishGradient:3:1:2>0 TTLinearGradient:0-*:0-*:
TTSparseLengthsSumGradient:8:3: TanGradient:2:1: TanhGradient:2:1:1>0
ThresholdedReluGradient:2:1:1>0 TileGradient:1-3:1:
UpsampleBilinearGradient:2-3:1:
WeightedSigmoidCrossEntropyWithLogitsGradient:4:1: WeightedSumGradient:2n-1:1-*:
ZeroGradient:1:0:
"""
