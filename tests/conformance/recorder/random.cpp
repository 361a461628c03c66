// SPDX-License-Identifier: Apache-2.0
#include "random.h"
#include "world.h"

#include <random>

namespace recorder {

namespace {

class Draw {
 public:
  Draw(const std::string& mix, int seed) : engine_(seed), mix_(mix) {}

  const std::string& mix() const { return mix_; }

  // The raw engine is the same everywhere; the standard distributions are not.
  int below(int n) { return int(engine_() % uint32_t(n)); }
  template <typename T>
  T one_of(const std::vector<T>& values) { return values[below(int(values.size()))]; }

  std::string name() { return one_of<std::string>({"a", "b", "c", "d"}); }

  std::string type() {
    if (mix_ == "strings" && below(2)) return "string";
    // Few types often, so that buffers meet the type that they already have.
    if (below(3) != 0) return one_of<std::string>({"float32", "float32", "int64", "string"});
    return types()[below(int(types().size()))].name;
  }

  std::string plain_type() {
    std::string name = type();
    return name == "string" ? "float64" : name;
  }

  std::string dims() {
    const int rank = one_of<int>({0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3});
    std::string text;
    for (int i = 0; i < rank; ++i) {
      const int zeros = mix_ == "plain" ? 8 : 5;
      text += (i ? "," : "") + std::to_string(below(zeros) == 0 ? 0 : 1 + below(rank == 1 ? 12 : 4));
    }
    return rank == 0 ? "-" : text;
  }

  // Dims of the same number of elements, so that Reshape and ShareData succeed at times.
  std::string dims_of(int64_t numel) {
    if (below(4) == 0) return dims();
    if (numel % 2 == 0 && numel > 0 && below(2) == 0) return "2," + std::to_string(numel / 2);
    return below(3) == 0 ? "1," + std::to_string(numel) : std::to_string(numel);
  }

  std::string growth() { return one_of<std::string>({"0", "40", "40", "100", "33.3", "250"}); }

 private:
  std::mt19937 engine_;
  std::string mix_;
};

struct Verb {
  const char* name;
  int weight;
};

// The mix "plain" is drawn from this alone; others know more verbs.
std::vector<Verb> verbs(const std::string& mix) {
  std::vector<Verb> all = {
      {"new", 3}, {"untyped", 1}, {"undefined", 1}, {"resize", 12}, {"resize_like", 3},
      {"reshape", 4}, {"mutable_data", 12}, {"raw_mutable_data", 3}, {"fill", 13}, {"extend", 10},
      {"extend_to", 4}, {"shrink", 5}, {"reserve", 6}, {"free", 3}, {"share", 10}, {"external", 4},
      {"alias", 9}, {"unsafe", 3}, {"clone", 3}, {"copy_construct", 1}, {"copy", 8},
      {"reinitialize", 5}, {"reinitialize_copy", 3}, {"empty", 4}, {"values", 3}, {"at", 3},
      {"swap", 2}, {"destroy", 3}, {"flag", 3}};
  if (mix != "plain") {
    for (auto& verb : all) {
      if (verb.name == std::string("flag") || verb.name == std::string("at")) verb.weight = 8;
    }
    all.push_back({"storage_external", 8});
    all.push_back({"storage_reset", 3});
  }
  return all;
}

std::string draw_verb(Draw& draw) {
  int total = 0;
  const auto all = verbs(draw.mix());
  for (const auto& verb : all) total += verb.weight;
  int ticket = draw.below(total);
  for (const auto& verb : all) {
    ticket -= verb.weight;
    if (ticket < 0) return verb.name;
  }
  return "";
}

int64_t numel_of(const World& world, const std::string& name) {
  const auto found = world.tensors().find(name);
  return found == world.tensors().end() || !found->second.defined() ? 1 : found->second.numel();
}

std::string draw_operation(Draw& draw, const World& world, int step) {
  const std::string verb = draw_verb(draw), name = draw.name(), other = draw.name();
  const std::string head = verb + " " + name;
  const int64_t numel = numel_of(world, name);
  if (verb == "new") return head + " " + draw.dims();
  if (verb == "resize") return head + " " + (draw.below(4) ? draw.dims() : draw.dims_of(numel));
  if (verb == "reshape") return head + " " + draw.dims_of(numel);
  if (verb == "mutable_data") return head + " " + draw.type();
  if (verb == "raw_mutable_data") return head + (draw.below(2) ? " " + draw.type() : "");
  if (verb == "fill") return head + " " + draw.type() + " " + std::to_string(7 * step + 1);
  if (verb == "extend" || verb == "extend_to") {
    const int rows = verb == "extend" ? draw.below(7) - 1 : draw.below(16);
    return head + " " + std::to_string(rows) + " " + draw.growth();
  }
  if (verb == "shrink") return head + " " + std::to_string(draw.below(6));
  if (verb == "reserve") return head + " " + std::to_string(draw.below(20));
  if (verb == "storage_external") {
    const std::string type = draw.plain_type();
    const int64_t room = (numel + draw.below(6)) * type_named(type).meta.itemsize();
    return head + " " + std::to_string(step) + " " + type + " " +
        std::to_string(std::max<int64_t>(room, 1)) + " " + std::to_string(draw.below(4) != 0);
  }
  if (verb == "external") {
    const std::string type = draw.plain_type();
    const int64_t itemsize = type_named(type).meta.itemsize();
    const int64_t nbytes = draw.below(2) ? 0 : (numel + draw.below(4)) * itemsize;
    const bool deleter = draw.below(4) != 0;
    return head + " " + std::to_string(step) + " " + type + " " + std::to_string(nbytes) + " " +
        std::to_string(deleter);
  }
  if (verb == "reinitialize" || verb == "empty") {
    const std::string dims = draw.dims();
    return head + " " + dims + " " + draw.type();
  }
  if (verb == "reinitialize_copy") return head + " " + draw.type() + " " + other;
  if (verb == "values") {
    const std::string dims = draw.dims();
    const int64_t wanted = numel_of(world, name);
    int64_t count = 1;
    for (auto d : numbers(dims)) count *= d;
    if (draw.below(8) == 0) count = wanted;
    std::string values;
    for (int64_t i = 0; i < count; ++i) values += (i ? "," : "") + std::to_string(draw.below(100));
    const std::string type = draw.type();
    return head + " " + dims + " " + type + " " + (count ? values : "-");
  }
  if (verb == "at") {
    const int whole = 1 + draw.below(12), start = draw.below(whole);
    const int end = start + draw.below(whole - start + 1);
    const auto type = draw.one_of<std::string>({"float32", "int64", "uint8"});
    return head + " " + type + " " + std::to_string(whole) + " " + std::to_string(start) + " " +
        std::to_string(end);
  }
  if (verb == "flag") {
    if (draw.below(2)) return "flag keep " + std::to_string(draw.below(2));
    return "flag max " + draw.one_of<std::string>({"0", "16", "64", "9223372036854775807"});
  }
  if (verb == "share" && numel != numel_of(world, other) && draw.below(3)) {
    return "resize_like " + name + " " + other;
  }
  for (auto pair : {"resize_like", "share", "alias", "unsafe", "clone", "copy_construct", "copy",
                    "swap"}) {
    if (verb == pair) return head + " " + other;
  }
  return head;
}

// Builds `operations` again in `world`; false where the last one leaves danger behind.
bool rebuild(World& world, const std::vector<std::string>& operations) {
  for (const auto& operation : operations) world.run(operation);
  return world.danger_after().empty();
}

} // namespace

std::vector<std::string> random_operations(const std::string& mix, int seed, int steps) {
  Draw draw(mix, seed);
  std::vector<std::string> operations;
  for (const char* name : {"a", "b"}) {
    operations.push_back(std::string("new ") + name + " " + draw.dims());
    if (*name == 'a' || draw.below(3)) {
      operations.push_back(std::string("fill ") + name + " " + draw.type() + " 1");
    }
  }
  const int company = draw.below(4);
  if (company > 0) operations.push_back("alias c a");
  if (company > 1) operations.push_back("alias d c");
  if (company > 2) operations.push_back("unsafe b a");
  while (int(operations.size()) < steps) {
    Memory::get().begin(0xA5);
    World world;
    rebuild(world, operations);
    std::string operation = draw_operation(draw, world, int(operations.size()));
    const auto words = split(operation, ' ');
    const auto there = [&](const std::string& name) { return world.tensors().count(name) != 0; };
    if (words[0] == "swap" && !(there(words[1]) && there(words[2]))) continue;
    if (words[0] == "destroy" && !there(words[1])) continue;
    if (!world.danger_before(operation).empty()) continue;
    world.run(operation);
    if (world.danger_after().empty()) operations.push_back(operation);
  }
  return operations;
}

} // namespace recorder
