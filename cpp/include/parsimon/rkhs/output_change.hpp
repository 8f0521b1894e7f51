#pragma once

#include <algorithm>
#include <vector>

#include "parsimon/types.hpp"

namespace parsimon {

// How the outputs of a function change when it is to have others, all at once:
//
//   f <- f map,   then the fresh outputs are `fresh_value` at the points of the basis.
//
// What samples have said about the old ones is kept: `curvature` is how much more a parabola over
// the new outputs bends, where the map shrinks or stretches them.
struct OutputChange {
  RowMatrix map;  // one row for each old output, one column for each new one
  double curvature = 1;
  std::vector<Index> fresh = {};  // columns, which are 0 in the map
  double fresh_value = 0;

  // Of a classifier: class i becomes class places[i] of so many; the others are new. With one
  // output, which is positive for class 1 and negative for class 0, f becomes -f / 2 and f / 2 once
  // there are more than two classes: the differences between classes stay what they were.
  static OutputChange of_classes(Index outputs, const std::vector<Index>& places, Index classes,
                                 Index outputs_then) {
    const auto known = static_cast<Index>(places.size());
    bool sensible = known > 0 && known <= classes && known <= std::max<Index>(outputs, 2);
    std::vector<bool> taken(static_cast<std::size_t>(std::max<Index>(classes, 0)), false);
    for (const Index place : places) {
      sensible =
          sensible && place >= 0 && place < classes && !taken[static_cast<std::size_t>(place)];
      if (sensible) taken[static_cast<std::size_t>(place)] = true;
    }
    require(sensible && classes >= 2 &&
                (outputs_then == classes || (outputs_then == 1 && classes == 2)),
            "Classes can be added to a model, and those there are given other places, but none can "
            "go.");
    OutputChange change{RowMatrix::Zero(outputs, outputs_then)};
    if (outputs_then == 1) {
      require(outputs == 1, "A model of several outputs cannot become one of a single output.");
      change.map(0, 0) = places[0] == 1 ? -1 : 1;
      return change;
    }
    for (Index i = 0; i < known; ++i) {
      const Index place = places[static_cast<std::size_t>(i)];
      if (outputs > 1) {
        change.map(i, place) = 1;
      } else {
        change.map(0, place) = i == 0 ? -0.5 : 0.5;
        change.curvature = 2;
      }
    }
    for (Index c = 0; c < classes; ++c) {
      if (!taken[static_cast<std::size_t>(c)]) change.fresh.push_back(c);
    }
    return change;
  }
};

}  // namespace parsimon
