// SPDX-License-Identifier: Apache-2.0
//
// Stands in for the header of this name, which needs the protobuf headers that PyTorch was built
// with and the wheel does not carry. The recorder touches no message: Caffe2's headers only name
// these, in inline functions that are never called here.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

namespace caffe2 {

using DeviceType = at::DeviceType;
constexpr DeviceType CPU = DeviceType::CPU;
constexpr DeviceType CUDA = DeviceType::CUDA;

enum DeviceTypeProto : int {
  PROTO_CPU = 0,
  PROTO_CUDA = 1,
  PROTO_COMPILE_TIME_MAX_DEVICE_TYPES = 11
};

DeviceTypeProto TypeToProto(const DeviceType& type);
DeviceType ProtoToType(int type);
DeviceType ProtoToType(DeviceTypeProto type);

class DeviceOption {
 public:
  bool has_random_seed() const;
  uint32_t random_seed() const;
  int device_type() const;
  int device_id() const;
};

DeviceOption DeviceToOption(const at::Device& device);

} // namespace caffe2
