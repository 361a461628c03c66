// SPDX-License-Identifier: Apache-2.0
//
// Memory that tells what was done to it: a CPU allocator that never gives out one address twice,
// and external blocks whose deleters are counted.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

namespace recorder {

constexpr size_t kGuard = 64;
constexpr uint8_t kGuardByte = 0xFB;

// One block that was handed out. It stays taken after release, so that an address is an identity.
struct Block {
  char* base = nullptr;
  size_t nbytes = 0;
  bool live = true;
  bool external = false;
  char* data() const { return base + kGuard; }
};

// All blocks of one run. `poison` fills fresh memory: bytes that differ between two runs with
// different poison were never written.
class Memory {
 public:
  static Memory& get() {
    static Memory memory;
    return memory;
  }

  void begin(uint8_t poison) {
    for (auto& entry : blocks_) std::free(entry.second.base);
    blocks_.clear();
    released_.clear();
    deleted_.clear();
    external_ids_.clear();
    poison_ = poison;
  }

  void* take(size_t nbytes, bool external) {
    if (nbytes == 0) return nullptr;
    Block block;
    void* base = nullptr;
    if (posix_memalign(&base, 64, nbytes + 2 * kGuard) != 0) throw std::bad_alloc();
    block.base = static_cast<char*>(base);
    block.nbytes = nbytes;
    block.external = external;
    std::memset(block.base, kGuardByte, nbytes + 2 * kGuard);
    std::memset(block.data(), poison_, nbytes);
    blocks_[block.data()] = block;
    return block.data();
  }

  // The deleter of the allocator.
  static void release(void* data) {
    if (data == nullptr) return;
    get().drop(data);
    get().released_.push_back(data);
  }

  void* take_external(int id, size_t nbytes) {
    void* data = take(nbytes, true);
    external_ids_[data] = id;
    return data;
  }

  // The deleter of external memory.
  static void delete_external(void* data) {
    get().drop(data);
    get().deleted_.push_back(get().external_ids_.at(data));
  }

  std::vector<void*> take_released() { return std::exchange(released_, {}); }
  std::vector<int> take_deleted() { return std::exchange(deleted_, {}); }

  const Block& block(void* data) const { return blocks_.at(data); }

  // True where nothing wrote outside a block or into a released one.
  bool intact() const {
    for (const auto& entry : blocks_) {
      const Block& block = entry.second;
      for (size_t i = 0; i < kGuard; ++i) {
        if (uint8_t(block.base[i]) != kGuardByte) return false;
        if (uint8_t(block.data()[block.nbytes + i]) != kGuardByte) return false;
      }
      if (block.live) continue;
      for (size_t i = 0; i < block.nbytes; ++i) {
        if (uint8_t(block.data()[i]) != kReleasedByte) return false;
      }
    }
    return true;
  }

 private:
  static constexpr uint8_t kReleasedByte = 0xDD;

  void drop(void* data) {
    Block& block = blocks_.at(data);
    if (!block.live) throw std::logic_error("released twice");
    block.live = false;
    std::memset(block.data(), kReleasedByte, block.nbytes);
  }

  std::map<void*, Block> blocks_;
  std::map<void*, int> external_ids_;
  std::vector<void*> released_;
  std::vector<int> deleted_;
  uint8_t poison_ = 0;
};

struct RecordingAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t nbytes) const override {
    void* data = Memory::get().take(nbytes, false);
    return {data, data, &Memory::release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Memory::release; }
};

} // namespace recorder
