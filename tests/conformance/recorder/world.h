// SPDX-License-Identifier: Apache-2.0
//
// Named tensors, the operations on them, and what can be seen of them after each. One operation is
// one line of words, described in README.md.
#pragma once

#include "memory.h"

#include <ATen/ATen.h>
#include <caffe2/core/flags.h>
#include <caffe2/core/tensor.h>

#include <functional>
#include <limits>
#include <sstream>
#include <string>

C10_DECLARE_bool(caffe2_keep_on_shrink);
C10_DECLARE_int64(caffe2_max_keep_on_shrink_memory);

namespace recorder {

using caffe2::Tensor;
using caffe2::TypeMeta;
using Words = std::vector<std::string>;

inline Words split(const std::string& text, char separator) {
  Words words;
  std::string word;
  std::istringstream stream(text);
  while (std::getline(stream, word, separator)) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

// "2,3" -> {2, 3}; "-" is no number at all (the dims of a scalar, the values of an empty tensor).
inline std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> result;
  if (text == "-") return result;
  for (const auto& word : split(text, ',')) result.push_back(std::stoll(word));
  return result;
}

// Element `i` of the pattern that `fill` writes; tests/conformance/world.py makes the same.
template <typename T>
T pattern(int64_t seed, int64_t i) { return static_cast<T>((seed + i) % 100); }
template <>
inline bool pattern<bool>(int64_t seed, int64_t i) { return (seed + i) % 2 != 0; }
template <>
inline at::Half pattern<at::Half>(int64_t seed, int64_t i) { return float((seed + i) % 100); }
template <>
inline std::string pattern<std::string>(int64_t seed, int64_t i) {
  // Short ones, long ones and a NUL: all that a std::string can hold inside and outside itself.
  std::string text = "s" + std::to_string((seed + i) % 100);
  if ((seed + i) % 3 == 0) text += std::string(20, 'x');
  if ((seed + i) % 3 == 1) text += '\0';
  return text;
}

struct Type {
  std::string name;
  TypeMeta meta;
  std::function<void*(Tensor&)> mutable_data;
  std::function<void(void*, int64_t, int64_t)> fill;
  std::function<Tensor(at::IntArrayRef, const std::vector<int64_t>&)> from_values;
};

template <typename T>
Type make_type(const std::string& name) {
  return {
      name,
      TypeMeta::Make<T>(),
      [](Tensor& t) { return static_cast<void*>(t.mutable_data<T>()); },
      [](void* data, int64_t numel, int64_t seed) {
        for (int64_t i = 0; i < numel; ++i) static_cast<T*>(data)[i] = pattern<T>(seed, i);
      },
      [](at::IntArrayRef dims, const std::vector<int64_t>& seeds) {
        std::unique_ptr<T[]> values(new T[seeds.size() + 1]);
        for (size_t i = 0; i < seeds.size(); ++i) values[i] = pattern<T>(seeds[i], 0);
        return caffe2::TensorCPUFromValues<T>(dims, at::ArrayRef<T>(values.get(), seeds.size()));
      }};
}

inline const std::vector<Type>& types() {
  static const std::vector<Type> all = {
      make_type<float>("float32"), make_type<double>("float64"), make_type<int32_t>("int32"),
      make_type<int64_t>("int64"), make_type<uint8_t>("uint8"), make_type<int8_t>("int8"),
      make_type<int16_t>("int16"), make_type<bool>("bool"), make_type<at::Half>("float16"),
      make_type<std::string>("string")};
  return all;
}

inline const Type& type_named(const std::string& name) {
  for (const auto& type : types()) {
    if (type.name == name) return type;
  }
  throw std::invalid_argument("no type " + name);
}

inline std::string type_name(TypeMeta meta) {
  for (const auto& type : types()) {
    if (type.meta == meta) return type.name;
  }
  return "";
}

inline bool is_string(TypeMeta meta) { return meta == TypeMeta::Make<std::string>(); }

// How many strings were constructed in the memory of a storage, or -1 where it is plain memory.
inline int64_t constructed(const at::Storage& storage) {
  const auto deleter = storage.data_ptr().get_deleter();
  if (storage.data() == nullptr || deleter == nullptr || deleter == &c10::detail::deleteNothing ||
      deleter == &Memory::release || deleter == &Memory::delete_external) {
    return -1;
  }
  return static_cast<c10::PlacementDeleteContext*>(storage.data_ptr().get_context())->size_;
}

// What was seen of one tensor: `fields` is JSON, `bytes` its elements where they are plain memory.
struct TensorState {
  std::string name;
  std::string fields;
  std::vector<uint8_t> bytes;
};

struct Step {
  std::string operation;
  std::string error;
  std::vector<int> deleted;
  std::vector<int> released;
  std::vector<TensorState> tensors;
};

class World {
 public:
  World() {
    FLAGS_caffe2_keep_on_shrink = true;
    FLAGS_caffe2_max_keep_on_shrink_memory = std::numeric_limits<int64_t>::max();
  }

  // Why the real tensor must not be asked this (it would touch memory that is not its own), or "".
  std::string danger_before(const std::string& operation);
  // Runs one operation and looks at everything.
  Step run(const std::string& operation);
  // Why what can be reached now is not safe to touch, or "".
  std::string danger_after() const;

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  void execute(const Words& words);
  TensorState look(const std::string& name, const Tensor& tensor);
  int buffer_id(void* data);

  std::map<std::string, Tensor> tensors_;
  std::map<void*, int> buffer_ids_;
};

} // namespace recorder
