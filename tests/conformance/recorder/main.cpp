// SPDX-License-Identifier: Apache-2.0
//
// record script FILE
//     Every `# name` in the file starts a sequence, every other line is a step; `//` for comments.
// record random FIRST COUNT STEPS [MIX]
//     Sequences of the seeds FIRST .. FIRST + COUNT - 1. MIX says what is drawn: "plain", "storage"
//     (also what is done to a storage itself), "strings" (that, with strings half of the time).
//
// Writes a JSON array, one sequence a line, to standard output.
#include "random.h"
#include "world.h"

#include <fstream>
#include <iostream>

namespace recorder {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += (c == '\t' || c == '\n') ? ' ' : c;
  }
  return result + "\"";
}

std::vector<Step> run_all(const std::vector<std::string>& operations, uint8_t poison) {
  Memory::get().begin(poison);
  std::vector<Step> steps;
  World world;
  for (const auto& operation : operations) {
    const std::string before = world.danger_before(operation);
    if (!before.empty()) throw std::runtime_error("refused `" + operation + "`: " + before);
    steps.push_back(world.run(operation));
    const std::string after = world.danger_after();
    if (!after.empty()) throw std::runtime_error("unsafe after `" + operation + "`: " + after);
  }
  return steps;
}

// The elements as hexadecimal; `..` for bytes that nothing has written, which the runs show by
// having different poison there.
std::string known_bytes(const std::vector<uint8_t>& one, const std::vector<uint8_t>& two) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i] != two[i]) { text += ".."; continue; }
    text += digits[one[i] >> 4];
    text += digits[one[i] & 15];
  }
  return text;
}

std::string ids(const std::vector<int>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
  return text + "]";
}

bool first_sequence = true;

// One sequence as a line of JSON. A step names only the tensors that it changed.
void write(const std::string& name, const std::vector<std::string>& operations) {
  const auto one = run_all(operations, 0xA5);
  const auto two = run_all(operations, 0x5A);
  std::map<std::string, std::string> seen;
  std::cout << (first_sequence ? "[\n" : ",\n") << "{\"name\":" << quoted(name) << ",\"steps\":[";
  for (size_t i = 0; i < one.size(); ++i) {
    const Step& step = one[i];
    std::cout << (i ? "," : "") << "{\"op\":" << quoted(step.operation);
    if (!step.error.empty()) std::cout << ",\"error\":" << quoted(step.error);
    if (!step.deleted.empty()) std::cout << ",\"deleted\":" << ids(step.deleted);
    if (!step.released.empty()) std::cout << ",\"released\":" << ids(step.released);
    std::cout << ",\"tensors\":{";
    std::map<std::string, std::string> now;
    bool first = true;
    for (size_t k = 0; k < step.tensors.size(); ++k) {
      const TensorState& tensor = step.tensors[k];
      std::string text = "{" + tensor.fields;
      if (!tensor.bytes.empty()) {
        text += ",\"bytes\":\"" + known_bytes(tensor.bytes, two[i].tensors[k].bytes) + "\"";
      }
      text += "}";
      now[tensor.name] = text;
      if (seen[tensor.name] == text) continue;
      std::cout << (first ? "" : ",") << quoted(tensor.name) << ":" << text;
      first = false;
    }
    for (const auto& entry : seen) {
      if (entry.second.empty() || now.count(entry.first)) continue;
      std::cout << (first ? "" : ",") << quoted(entry.first) << ":null";
      first = false;
    }
    seen = now;
    std::cout << "}}";
  }
  std::cout << "]}";
  first_sequence = false;
}

void write_script(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string line, name;
  std::vector<std::string> operations;
  while (std::getline(file, line)) {
    if (line.empty() || line.compare(0, 2, "//") == 0) continue;
    if (line[0] != '#') { operations.push_back(line); continue; }
    if (!operations.empty()) write(name, operations);
    operations.clear();
    name = line.substr(2);
  }
  if (!operations.empty()) write(name, operations);
}

} // namespace recorder

int main(int argc, char** argv) {
  static recorder::RecordingAllocator allocator;
  c10::SetCPUAllocator(&allocator, 1);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "script" && argc == 3) {
    recorder::write_script(argv[2]);
    std::cout << "\n]" << std::endl;
    return 0;
  }
  if (mode == "random" && (argc == 5 || argc == 6)) {
    const std::string mix = argc == 6 ? argv[5] : "plain";
    const int first = std::stoi(argv[2]), count = std::stoi(argv[3]), steps = std::stoi(argv[4]);
    for (int seed = first; seed < first + count; ++seed) {
      const std::string name = (argc == 6 ? mix + " " : "") + "seed " + std::to_string(seed);
      recorder::write(name, recorder::random_operations(mix, seed, steps));
    }
    std::cout << "\n]" << std::endl;
    return 0;
  }
  std::cerr << "usage: record script FILE | record random FIRST COUNT STEPS [MIX]\n";
  return 2;
}
