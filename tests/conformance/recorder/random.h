// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace recorder {

// A sequence of operations that follows from the seed alone. Operations that are dangerous for the
// real tensor, by themselves or in what they leave behind, are left out.
std::vector<std::string> random_operations(const std::string& mix, int seed, int steps);

} // namespace recorder
