#pragma once

#include <tuple>
#include <vector>

#include "parsimon/rkhs/expansion.hpp"
#include "parsimon/rkhs/sparse_function.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// Kernel orthogonal matching pursuit on a function that is no model's: the compressed one, the
// positions of the removed points in order, and the error spent.
inline std::tuple<KernelExpansion, std::vector<Index>, double> compress(
    const KernelExpansion& expansion, const Limit& limit, const std::vector<bool>& is_protected) {
  const Dictionary& dictionary = expansion.dictionary();
  SparseFunction function(dictionary.kernel_pointer(), dictionary.features(), expansion.outputs(),
                          expansion.outputs());
  function.insert(dictionary.points(), expansion.weights(), is_protected);
  const CompressionReport report = function.compress(limit);
  return {function.expansion_by_age(), report.removed, report.error};
}

}  // namespace parsimon
