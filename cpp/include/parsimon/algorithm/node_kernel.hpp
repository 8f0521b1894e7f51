#pragma once

#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimon/algorithm/online.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// The kernel values k(d, u) between the points d of a dictionary and the nodes u of an integral.
// The nodes are points of the dictionary themselves, with the ids 0, 1, ..., and never leave it.
//
// Invariant: values() has one row for each point of the dictionary, in its order as of the last
// call, and one column for each node.
class NodeKernel {
 public:
  // Asks the kernel for all of them.
  void compute(const Dictionary& dictionary, const ConstRows& nodes) {
    std::vector<View> views;
    dictionary.make_views(nodes, views);
    auto values = values_.resize(dictionary.size(), nodes.rows());
    dictionary.kernel().block(dictionary.views(), views.data(), values);
    remember(dictionary);
  }

  auto values() const { return values_.all(); }
  Index nodes() const { return values_.columns(); }
  // The row of a node.
  Index position(Index node) const { return positions_[static_cast<std::size_t>(node)]; }

  // The rows of the nodes, in their order, of a matrix with one row for each dictionary point.
  RowMatrix of_nodes(const ConstRows& all) const {
    RowMatrix rows(nodes(), all.cols());
    for (Index u = 0; u < nodes(); ++u) rows.row(u) = all.row(position(u));
    return rows;
  }

  // The rows of the points that are not nodes.
  RowMatrix of_others() const {
    RowMatrix rows(values_.rows() - nodes(), nodes());
    Index row = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] >= nodes()) rows.row(row++) = values_.row(static_cast<Index>(i));
    }
    return rows;
  }

  // The engine has put its points into another order.
  void follow_order(const Dictionary& dictionary) {
    if (order_ != dictionary.ids()) follow(dictionary, dictionary.next_id(), Batch(), NewPoints());
  }

  // A step has removed points and added samples, with ids from first_new on, whose kernel values
  // with the nodes are known from the comparison before it. If this throws, it has changed nothing.
  void follow(const Dictionary& dictionary, Index first_new, const Batch& batch,
              const NewPoints& added) {
    const std::vector<Index>& ids = dictionary.ids();
    if (order_ == ids) return;
    std::unordered_map<Index, Index> rows;
    for (std::size_t i = 0; i < order_.size(); ++i) rows[order_[i]] = static_cast<Index>(i);
    auto values = next_.resize(dictionary.size(), nodes());
    for (Index i = 0; i < dictionary.size(); ++i) {
      const Index id = dictionary.id(i);
      if (id < first_new) {
        values.row(i) = values_.row(rows.at(id));
        continue;
      }
      const Index sample = added.sample(id - first_new);
      for (Index u = 0; u < nodes(); ++u) {
        values(i, u) = batch.kernel_values.all()(position(u), sample);
      }
    }
    remember(dictionary);
    std::swap(values_, next_);
  }

  // A model that is read back: its values to the last bit, which depends on the products of
  // matrices that they came from. of_nodes: as of_nodes(values()) was; of_others: as of_others()
  // was, or empty if the last bit does not matter.
  void restore(const ConstRows& of_nodes, const ConstRows& of_others) {
    for (Index u = 0; u < nodes(); ++u) values_.row(position(u)) = of_nodes.row(u);
    if (of_others.size() == 0) return;
    require_same(of_others);
    Index row = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] >= nodes()) values_.row(static_cast<Index>(i)) = of_others.row(row++);
    }
  }

 private:
  // Kernel values that are told apart from others by more than rounding.
  static constexpr double kForeign = 1e-9;

  void require_same(const ConstRows& others) const {
    const RowMatrix expected = of_others();
    bool same = others.rows() == expected.rows() && others.cols() == nodes();
    for (Index i = 0; same && i < expected.rows(); ++i) {
      for (Index u = 0; same && u < nodes(); ++u) {
        const double difference = std::abs(others(i, u) - expected(i, u));
        same = difference <= kForeign * (1 + std::abs(expected(i, u)));
      }
    }
    require(same, "The kernel values of the nodes do not belong to the dictionary.");
  }

  void remember(const Dictionary& dictionary) {
    positions_.resize(static_cast<std::size_t>(nodes()));
    std::vector<Index> order = dictionary.ids();
    order_.swap(order);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] < nodes()) {
        positions_[static_cast<std::size_t>(order_[i])] = static_cast<Index>(i);
      }
    }
  }

  RowBuffer values_;
  RowBuffer next_;
  std::vector<Index> order_;      // ids of the rows
  std::vector<Index> positions_;  // rows of the nodes
};

}  // namespace parsimon
