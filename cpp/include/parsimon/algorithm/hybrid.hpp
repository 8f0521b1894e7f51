#pragma once

#include <algorithm>
#include <utility>
#include <variant>

#include "parsimon/algorithm/mirror_newton.hpp"
#include "parsimon/algorithm/spppot.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// When a model order counts as stable: it has stayed within a band of width
// max(2, 2 % of its upper end) for `patience` mini-batches in a row, or there have been `cap` of
// them. A plain value.
struct OrderWatch {
  Index patience = 300;
  Index cap = 3000;
  Index low = 0;  // the band so far
  Index high = 0;
  Index inside = 0;  // mini-batches within it
  Index seen = 0;

  void observe(Index model_order) {
    seen += 1;
    const Index new_low = std::min(low, model_order);
    const Index new_high = std::max(high, model_order);
    const bool within = static_cast<double>(new_high - new_low) <=
                        std::max(2.0, 0.02 * static_cast<double>(new_high));
    if (inside > 0 && within) {
      low = new_low;
      high = new_high;
      inside += 1;
    } else {
      low = high = model_order;
      inside = 1;
    }
  }

  bool is_stable() const { return inside >= patience || seen >= cap; }
  bool may_be_stable_next() const { return inside + 1 >= patience || seen + 1 >= cap; }

  void check() const {
    require(patience > 0 && cap > 0,
            "The first phase needs a patience and a cap of at least one mini-batch.");
  }
};

// First Algorithm 1, which finds the dictionary, until its model order is stable; then Algorithm 3
// on that dictionary, from the density found (Algorithm 4, SPPPOT).
//
// The second phase integrates on more nodes than the dictionary has points: a direction that
// vanished on every node would cost nothing, and the loss would have no minimum.
// If a step throws, the model is as it was before that mini-batch or sample. Not thread safe.
class Hybrid {
 public:
  using Phase = std::variant<Spppot, MirrorNewton>;

  Hybrid(Spppot first, MirrorNewtonSettings second, OrderWatch watch)
      : Hybrid(Phase(std::move(first)), std::move(second), watch) {}

  // A model that is read back.
  Hybrid(Phase phase, MirrorNewtonSettings second, OrderWatch watch)
      : phase_(std::move(phase)), second_(std::move(second)), watch_(watch) {
    watch_.check();
    second_.check();
    const Spppot* first = std::get_if<Spppot>(&phase_);
    require(!first || first->settings().mirror.is_positive(),
            "The second phase is mirror descent with the KL map; so must be the first.");
  }

  const Phase& phase() const { return phase_; }
  bool in_second_phase() const { return std::holds_alternative<MirrorNewton>(phase_); }
  const MirrorNewtonSettings& second_settings() const { return second_; }
  const OrderWatch& watch() const { return watch_; }

  Index run(const ConstRows& samples, Index batch_size, const KeepGoing& keep_going) {
    domain().check(samples);
    MiniBatches part(samples.rows(), batch_size, keep_going);
    while (!in_second_phase()) {
      if (!part.next()) return part.taken();
      search(samples.middleRows(part.start(), part.count()), part.share());
    }
    const Index first = part.start() + part.count();
    auto& second = std::get<MirrorNewton>(phase_);
    return first + second.run(samples.bottomRows(samples.rows() - first), batch_size, keep_going);
  }

  // What the model of the current phase answers.
  template <typename Question>
  decltype(auto) ask(Question&& question) const {
    return std::visit(std::forward<Question>(question), phase_);
  }

  const Box& domain() const {
    return ask([](const auto& model) -> const Box& { return model.domain(); });
  }
  const Quadrature& quadrature() const {
    return ask([](const auto& model) -> const Quadrature& { return model.quadrature(); });
  }
  const Dictionary& dictionary() const {
    return ask([](const auto& model) -> const Dictionary& { return model.dictionary(); });
  }
  Index features() const { return domain().features(); }
  Index model_order() const {
    return ask([](const auto& model) { return model.model_order(); });
  }
  Index samples() const {
    return ask([](const auto& model) { return model.samples(); });
  }
  Index batches() const {
    return ask([](const auto& model) { return model.batches(); });
  }
  const Trace& trace() const {
    return ask([](const auto& model) -> const Trace& { return model.trace(); });
  }
  int target_out_of_reach() const {
    return ask([](const auto& model) { return model.target_out_of_reach(); });
  }
  KernelExpansion expansion() const {
    return ask([](const auto& model) { return model.expansion(); });
  }
  RowMatrix prediction_weights() const {
    return ask([](const auto& model) { return model.prediction_weights(); });
  }
  RowMatrix nodes() const {
    return ask([](const auto& model) { return RowMatrix(model.nodes()); });
  }
  void log_density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    ask([&](const auto& model) { model.log_density(points, values); });
  }
  void density(const ConstRows& points, Eigen::Ref<Vector> values) const {
    ask([&](const auto& model) { model.density(points, values); });
  }

 private:
  static constexpr Index kFineness = 2;

  // A mini-batch of the first phase.
  void search(const ConstRows& samples, double share) {
    if (!watch_.may_be_stable_next()) {
      watch_.observe(std::get<Spppot>(phase_).step(samples, share).model_order);
      return;
    }
    // The second phase begins with the mini-batch that ends the first: both happen, or neither.
    Spppot first = std::get<Spppot>(phase_);
    OrderWatch watch = watch_;
    watch.observe(first.step(samples, share).model_order);
    phase_ = watch.is_stable() ? Phase(second_phase(first)) : Phase(std::move(first));
    watch_ = watch;
  }

  MirrorNewton second_phase(const Spppot& first) const {
    MirrorNewton second(first.function().dictionary(), first.prediction_weights().col(0), second_,
                        first.domain(), first.quadrature().finer(kFineness * first.model_order()));
    second.follow(first.samples(), first.batches(), first.trace());
    return second;
  }

  Phase phase_;
  MirrorNewtonSettings second_;
  OrderWatch watch_;
};

}  // namespace parsimon
