// SPDX-License-Identifier: Apache-2.0
#include "world.h"

namespace recorder {

namespace {

std::string json_numbers(at::IntArrayRef values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
  return text + "]";
}

std::string hex(const void* data, size_t nbytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < nbytes; ++i) {
    const auto byte = static_cast<const uint8_t*>(data)[i];
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

// The first line, less where in PyTorch's sources the check stands.
std::string message_of(const c10::Error& error) {
  std::string line = split(error.what_without_backtrace(), '\n')[0];
  const std::string report = "please report a bug to PyTorch. ";
  const auto at = line.find(report);
  if (at != std::string::npos) line = line.substr(at + report.size());
  const auto end = line.find(" (Could this error message be improved?");
  return line.substr(0, end);
}

std::string json_bool(bool value) { return value ? "true" : "false"; }

int64_t product(at::IntArrayRef dims) {
  int64_t result = 1;
  for (auto d : dims) result *= d;
  return result;
}

bool any_negative(const std::vector<int64_t>& dims) {
  for (auto d : dims) {
    if (d < 0) return true;
  }
  return false;
}

// Operations that make their target anew, so that it may be undefined or absent before.
bool makes_target(const std::string& verb) {
  for (auto maker : {"new", "untyped", "undefined", "alias", "unsafe", "clone", "copy_construct",
                     "reinitialize", "reinitialize_copy", "empty", "values", "at", "destroy",
                     "flag"}) {
    if (verb == maker) return true;
  }
  return false;
}

} // namespace

std::string World::danger_before(const std::string& operation) {
  const Words w = split(operation, ' ');
  const std::string& verb = w[0];
  if (verb == "flag" || verb == "swap") return "";
  if (!makes_target(verb) && (!tensors_.count(w[1]) || !tensors_[w[1]].defined())) {
    return "undefined";
  }
  for (auto user : {"resize_like", "share", "alias", "unsafe", "clone", "copy_construct", "copy"}) {
    if (verb == user && (!tensors_.count(w[2]) || !tensors_[w[2]].defined())) return "absent";
  }
  for (auto copier : {"copy", "reinitialize_copy"}) {
    if (verb != copier) continue;
    const std::string& from = w.back();
    if (!tensors_.count(from) || !tensors_[from].defined()) continue;
    const Tensor& t = tensors_[from];
    if (t.numel() > 0 && t.storage_initialized() && !t.dtype_initialized()) {
      return "fails half-way";  // memory, put into the storage from outside, but no type yet
    }
  }
  if (verb == "reinitialize_copy") {
    if (!tensors_.count(w[3]) || !tensors_[w[3]].defined()) return "absent";
    const bool made = !tensors_.count(w[1]) || !tensors_[w[1]].defined();
    if (made && !tensors_[w[3]].storage_initialized()) return "fails half-way";
  }
  for (auto shaper : {"new", "resize", "reinitialize", "empty", "values"}) {
    if (verb == shaper && any_negative(numbers(w[2]))) return "negative dims are not caught";
  }
  if (verb == "shrink" || verb == "reserve") {
    if (std::stoll(w[2]) < 0) return "negative dims are not caught";
    if (verb == "reserve" && tensors_[w[1]].dim() == 0) return "writes size 0 of no dimension";
  }
  if (verb == "storage_external" && is_string(type_named(w[3]).meta)) {
    return "external memory holds no strings";
  }
  if (verb == "external") {
    const auto need = tensors_[w[1]].numel() * type_named(w[3]).meta.itemsize();
    const auto nbytes = std::stoull(w[4]);
    if (nbytes != 0 && nbytes < need) return "external memory too small";
    if (is_string(type_named(w[3]).meta)) return "external memory holds no strings";
  }
  if (verb == "extend" || verb == "extend_to") {
    Tensor& t = tensors_[w[1]];
    if (t.dim() == 0 || t.storage().data() == nullptr) return "";
    const int64_t rows = verb == "extend" ? t.size(0) + std::stoll(w[2]) : std::stoll(w[2]);
    if (rows < t.size(0)) return "";
    const int64_t row = product(t.sizes().slice(1));
    const bool fits = size_t(rows * row) * t.itemsize() <= t.storage().nbytes();
    const auto offset = t.unsafeGetTensorImpl()->storage_offset();
    if (offset != 0 && !(fits && (offset + rows * row) * t.itemsize() <= t.storage().nbytes())) {
      return "Extend forgets the offset";
    }
    if (!fits && !t.storage().unique()) return "Extend moves a shared storage";
  }
  if ((verb == "copy" || verb == "reinitialize_copy") && tensors_[w[1]].defined()) {
    // Emptied, then given another type: the buffer still is what the old type made it.
    const Tensor& to = tensors_[w[1]];
    const bool strings = constructed(to.storage()) >= 0;
    if (to.storage().data() != nullptr && is_string(to.dtype()) != strings) {
      return "copies strings over plain memory";
    }
  }
  if (verb == "copy") {
    const Tensor& to = tensors_[w[1]];
    const Tensor& from = tensors_[w[2]];
    const auto offset = to.unsafeGetTensorImpl()->storage_offset();
    if (!to.is_same(from) && to.storage().is_alias_of(from.storage()) &&
        offset != from.unsafeGetTensorImpl()->storage_offset()) {
      return "copies between overlapping memory";
    }
  }
  return "";
}

std::string World::danger_after() const {
  if (!Memory::get().intact()) return "memory written that is not the tensor's";
  for (const auto& entry : tensors_) {
    const Tensor& t = entry.second;
    if (!t.defined() || t.numel() == 0 || !t.dtype_initialized()) continue;
    if (t.storage().data() == nullptr) continue;
    const size_t end = t.unsafeGetTensorImpl()->storage_offset() + t.numel();
    const int64_t strings = constructed(t.storage());
    if (is_string(t.dtype()) ? int64_t(end) > strings : strings >= 0) {
      return "plain memory as strings";
    }
    if (end * t.itemsize() > t.storage().nbytes()) return "tensor larger than its storage";
    void* data = t.storage().data();
    const Block& block = Memory::get().block(data);
    if (end * t.itemsize() > block.nbytes) return "tensor larger than its memory";
    if (!block.live) return "tensor on released memory";
  }
  return "";
}

void World::execute(const Words& w) {
  const std::string& verb = w[0];
  if (verb == "flag") {
    if (w[1] == "keep") FLAGS_caffe2_keep_on_shrink = w[2] == "1";
    if (w[1] == "max") FLAGS_caffe2_max_keep_on_shrink_memory = std::stoll(w[2]);
    return;
  }
  const std::string& name = w[1];
  const auto cpu = at::Device(at::kCPU);
  const auto typed = [&](const std::string& type) {
    return at::TensorOptions(cpu).dtype(type_named(type).meta);
  };
  // Makers: a failing one leaves the name as it was.
  if (verb == "new") { tensors_[name] = Tensor(numbers(w[2]), cpu); return; }
  if (verb == "untyped") { tensors_[name] = Tensor(cpu); return; }
  if (verb == "undefined") { tensors_[name] = Tensor(); return; }
  if (verb == "alias") { tensors_[name] = tensors_.at(w[2]).Alias(); return; }
  if (verb == "unsafe") { tensors_[name] = tensors_.at(w[2]).UnsafeSharedInstance(); return; }
  if (verb == "clone") { tensors_[name] = tensors_.at(w[2]).Clone(); return; }
  if (verb == "copy_construct") { tensors_[name] = Tensor(tensors_.at(w[2]), at::kCPU); return; }
  if (verb == "empty") { tensors_[name] = caffe2::empty(numbers(w[2]), typed(w[3])); return; }
  if (verb == "values") {
    tensors_[name] = type_named(w[3]).from_values(numbers(w[2]), numbers(w[4]));
    return;
  }
  if (verb == "at") {
    const auto type = c10::typeMetaToScalarType(type_named(w[2]).meta);
    at::AutoNonVariableTypeMode no_autograd;  // whose views would hold on to the whole
    const auto whole = at::arange(int64_t(std::stoll(w[3])), at::kLong).to(type);
    tensors_[name] = Tensor(whole.slice(0, std::stoll(w[4]), std::stoll(w[5])));
    return;
  }
  if (verb == "destroy") { tensors_.erase(name); return; }
  if (verb == "swap") { std::swap(tensors_.at(name), tensors_.at(w[2])); return; }
  if (verb == "reinitialize") {
    caffe2::ReinitializeTensor(&tensors_[name], numbers(w[2]), typed(w[3]));
    return;
  }
  if (verb == "reinitialize_copy") {
    caffe2::ReinitializeAndCopyFrom(&tensors_[name], typed(w[2]), tensors_.at(w[3]));
    return;
  }
  // Methods of a tensor that is there.
  Tensor& t = tensors_.at(name);
  if (verb == "resize") { t.Resize(at::IntArrayRef(numbers(w[2]))); return; }
  if (verb == "resize_like") { t.ResizeLike(tensors_.at(w[2])); return; }
  if (verb == "reshape") { t.Reshape(numbers(w[2])); return; }
  if (verb == "mutable_data") { type_named(w[2]).mutable_data(t); return; }
  if (verb == "raw_mutable_data") {
    if (w.size() > 2) t.raw_mutable_data(type_named(w[2]).meta); else t.raw_mutable_data();
    return;
  }
  if (verb == "fill") {
    const Type& type = type_named(w[2]);
    void* data = type.mutable_data(t);
    if (danger_after().empty()) type.fill(data, t.numel(), std::stoll(w[3]));
    return;
  }
  if (verb == "extend") { t.Extend(std::stoll(w[2]), std::stof(w[3])); return; }
  if (verb == "extend_to") { t.ExtendTo(std::stoll(w[2]), std::stof(w[3])); return; }
  if (verb == "shrink") { t.ShrinkTo(std::stoll(w[2])); return; }
  if (verb == "reserve") { t.ReserveSpace(int64_t(std::stoll(w[2]))); return; }
  if (verb == "free") { t.FreeMemory(); return; }
  if (verb == "share") { t.ShareData(tensors_.at(w[2])); return; }
  if (verb == "copy") { t.CopyFrom(tensors_.at(w[2])); return; }
  if (verb == "storage_reset") { t.storage().unsafeGetStorageImpl()->reset(); return; }
  if (verb == "storage_external") {
    const Type& type = type_named(w[3]);
    const int id = std::stoi(w[2]);
    const size_t nbytes = std::stoull(w[4]);
    void* data = Memory::get().take_external(id, nbytes);
    type.fill(data, nbytes / type.meta.itemsize(), id);
    const auto deleter = w[5] == "1" ? &Memory::delete_external : nullptr;
    const_cast<at::Storage&>(t.storage())  // a copy of the handle would be a second user
        .UniqueStorageShareExternalPointer(data, nbytes, deleter);
    return;
  }
  if (verb == "external") {
    const Type& type = type_named(w[3]);
    const int id = std::stoi(w[2]);
    const size_t nbytes = std::stoull(w[4]);
    const int64_t numel = std::max<int64_t>(t.numel(), nbytes / type.meta.itemsize());
    void* data = Memory::get().take_external(id, std::max<size_t>(1, numel * type.meta.itemsize()));
    type.fill(data, numel, id);
    const auto deleter = w[5] == "1" ? &Memory::delete_external : nullptr;
    t.ShareExternalPointer(data, type.meta, nbytes, deleter);
    return;
  }
  throw std::invalid_argument("no operation " + verb);
}

int World::buffer_id(void* data) {
  return buffer_ids_.emplace(data, int(buffer_ids_.size())).first->second;
}

TensorState World::look(const std::string& name, const Tensor& t) {
  TensorState state;
  state.name = name;
  if (!t.defined()) {
    state.fields = "\"defined\":false";
    return state;
  }
  const at::Storage& storage = t.storage();
  std::string same_impl = name;
  for (auto other = tensors_.rbegin(); other != tensors_.rend(); ++other) {
    if (other->second.is_same(t)) same_impl = other->first;
  }
  const auto offset = t.unsafeGetTensorImpl()->storage_offset();
  std::ostringstream out;
  out << "\"defined\":true,\"sizes\":" << json_numbers(t.sizes()) << ",\"strides\":"
      << json_numbers(t.strides()) << ",\"numel\":" << t.numel() << ",\"dtype\":\""
      << type_name(t.dtype()) << "\",\"itemsize\":" << t.itemsize() << ",\"nbytes\":" << t.nbytes()
      << ",\"capacity\":" << storage.nbytes() << ",\"use_count\":" << storage.use_count()
      << ",\"offset\":" << offset
      << ",\"storage_initialized\":" << json_bool(t.storage_initialized())
      << ",\"dtype_initialized\":" << json_bool(t.dtype_initialized()) << ",\"contiguous\":"
      << json_bool(t.is_contiguous()) << ",\"same_as\":\"" << same_impl << "\",\"buffer\":";
  if (storage.data() == nullptr) {
    out << "null";
    state.fields = out.str();
    return state;
  }
  out << buffer_id(storage.data());
  if (t.dtype_initialized() && t.numel() > 0) {
    if (is_string(t.dtype())) {
      out << ",\"strings\":[";
      for (int64_t i = 0; i < t.numel(); ++i) {
        const auto& text = t.data<std::string>()[i];
        out << (i ? "," : "") << '"' << hex(text.data(), text.size()) << '"';
      }
      out << "]";
    } else {
      const auto* bytes = static_cast<const uint8_t*>(t.raw_data());
      state.bytes.assign(bytes, bytes + t.nbytes());
    }
  }
  state.fields = out.str();
  return state;
}

Step World::run(const std::string& operation) {
  Step step;
  step.operation = operation;
  try {
    execute(split(operation, ' '));
  } catch (const c10::Error& error) {
    step.error = message_of(error);
  }
  for (void* data : Memory::get().take_released()) {
    if (buffer_ids_.count(data)) step.released.push_back(buffer_ids_[data]);
  }
  step.deleted = Memory::get().take_deleted();
  if (!danger_after().empty()) return step;
  for (const auto& entry : tensors_) step.tensors.push_back(look(entry.first, entry.second));
  return step;
}

} // namespace recorder
