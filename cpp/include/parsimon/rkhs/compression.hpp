#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "parsimon/kernel/kernel.hpp"
#include "parsimon/schedule/budget.hpp"
#include "parsimon/text.hpp"
#include "parsimon/types.hpp"

namespace parsimon {

// How points go:
//
//   project:        the one that the others explain best, and they take over its weight (komp.hpp)
//   unite:          as `project`, or it and another one become a point between them, if that costs
//                   less (komp.hpp)
//   remove:         the one with the smallest weight, and its weight with it (remove.hpp)
//   merge:          the one with the smallest weight and a partner become one point between them
//                   (merge.hpp)
//   nonparametric:  as `remove`, or the cap grows by one instead, ever more often (NPBSGD; Le,
//                   Nguyen, Nguyen, Phung 2016)
enum class Way { remove, project, merge, nonparametric, unite };

// Whether it is KOMP: all others take over what goes, and errors are kept within a budget.
inline bool is_komp(Way way) { return way == Way::project || way == Way::unite; }

inline constexpr Index kUnlimited = std::numeric_limits<Index>::max();

// What one compression may do: spend an error, and keep so many points. More points than that go
// whatever it costs; without either limit nothing is compressed.
struct Limit {
  double budget = 0;
  Index points = kUnlimited;
  Way way = Way::project;
  // If there is one, it is asked for each point too many whether that one may stay.
  std::function<bool()> grows = nullptr;

  Limit() = default;
  Limit(double error_budget) : budget(error_budget) {}  // NOLINT: a budget is a limit
  Limit(double error_budget, Index most_points, Way how = Way::project)
      : budget(error_budget), points(most_points), way(how) {}

  bool caps_points() const { return points < kUnlimited; }
  // Whether there is nothing for KOMP to do, and so no need of a factor.
  bool needs_no_factor() const { return !is_komp(way) || (budget == 0 && !caps_points()); }
};

// What a compression did: the ids of the points it removed, in order, and the exact distance in
// Hilbert norm between the function before and after. |f(x) - g(x)| <= error * sqrt(k(x, x)).
// Points with ids from first_new on have joined the dictionary. floor: the smallest error that
// rounding lets this step measure, if the budget was below it; else 0.
struct CompressionReport {
  std::vector<Index> removed;
  Index first_new = 0;
  double error = 0;
  double floor = 0;
  Index model_order = 0;
};

// How a function is kept small while it learns: a budget for the error of each step, a cap on the
// number of points, or both; and how points beyond the cap go. Only KOMP spends a budget.
//
// A plain value; name() and parameters() are what a model file keeps of the cap, restore() their
// inverse.
class Compression {
 public:
  // By KOMP.
  Compression(BudgetSchedule budget, Index max_points = kUnlimited,  // NOLINT: a budget is one
              bool merges = false)
      : Compression(std::move(budget), merges ? Way::unite : Way::project, max_points) {}

  // Without a budget (BSGD; Wang, Crammer, Vucetic 2012). rate: with `nonparametric` a point beyond
  // the cap goes with probability min(1, rate / t), t the samples seen.
  Compression(Way way, Index max_points, double rate = 0, std::uint64_t seed = 0)
      : Compression(BudgetSchedule::fixed(0), way, max_points, rate, seed & kMask) {}

  // A cap for KOMP that grows from `max_points` on, like rate t^(2/3) after t samples, up to
  // kLargestGrown.
  static Compression growing(BudgetSchedule budget, Index max_points, double rate,
                             bool merges = false) {
    Compression compression(std::move(budget), merges ? Way::unite : Way::project, max_points,
                            rate);
    compression.cap_grows_ = true;
    return compression;
  }
  static constexpr Index kLargestGrown = 2200;

  const BudgetSchedule& budget() const { return budget_; }
  Way way() const { return way_; }
  Index max_points() const { return max_points_; }

  // What the step after `samples_seen` samples may do. Not to be used beyond the next change.
  Limit limit(double budget, Index samples_seen) {
    Limit limit(budget, cap_after(samples_seen), way_);
    tossed_ = stayed_ = 0;
    if (way_ == Way::nonparametric) {
      limit.grows = [this, samples_seen] { return grows(samples_seen); };
    }
    return limit;
  }

  // What a step was allowed to spend, given what it did: a cap takes what it needs.
  double allowed(double budget, double error) const {
    return max_points_ < kUnlimited ? std::max(budget, error) : budget;
  }

  // To be told the model order after each mini-batch. Until then, nothing has been decided.
  void observe(Index model_order) {
    budget_.observe(model_order);
    coins_ += tossed_;
    max_points_ += stayed_;
    tossed_ = stayed_ = 0;
  }

  // Refuses kernels whose points cannot be merged.
  void check(const Kernel& kernel) const {
    require(way_ != Way::merge || kernel.merges_points(),
            "Points can only be merged with a Gaussian kernel, not with " + kernel.describe() +
                ": use another budget maintenance.");
    require(way_ != Way::unite || kernel.has_gradient(),
            "Points can only be merged with a kernel that has a gradient, which " +
                kernel.describe() + " does not: give it one, or only remove points.");
  }

  std::string name() const {
    if (cap_grows_) return way_ == Way::unite ? "growing, unite" : "growing";
    return max_points_ < kUnlimited || way_ == Way::unite ? names()[static_cast<std::size_t>(way_)]
                                                          : "none";
  }

  std::vector<double> parameters() const {
    if (max_points_ == kUnlimited) return {};
    return {static_cast<double>(max_points_), rate_, static_cast<double>(seed_),
            static_cast<double>(coins_)};
  }

  static Way parse(const std::string& name) {
    const auto found = std::find(names().begin(), names().end(), name);
    require(found != names().end(), "There is no budget maintenance \"" + name +
                                        "\": use remove, project, unite, merge or nonparametric.");
    return static_cast<Way>(found - names().begin());
  }

  static Compression restore(BudgetSchedule budget, const std::string& name,
                             const std::vector<double>& parameters) {
    if (name == "none" && parameters.empty()) return budget;
    if (name == "unite" && parameters.empty()) return {std::move(budget), kUnlimited, true};
    const bool merges = name == "growing, unite", cap_grows = merges || name == "growing";
    const Way way = cap_grows ? (merges ? Way::unite : Way::project) : parse(name);
    require(parameters.size() == 4, "A budget maintenance has 4 parameters; got " +
                                        std::to_string(parameters.size()) + ".");
    for (const double number : {parameters[0], parameters[2], parameters[3]}) {
      require_whole(number);
    }
    Compression compression(std::move(budget), way, static_cast<Index>(parameters[0]),
                            parameters[1], static_cast<std::uint64_t>(parameters[2]));
    compression.coins_ = static_cast<std::uint64_t>(parameters[3]);
    compression.cap_grows_ = cap_grows;
    return compression;
  }

 private:
  // Whole numbers that a double, and so a model file, holds.
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 53) - 1;

  Compression(BudgetSchedule budget, Way way, Index max_points, double rate = 0,
              std::uint64_t seed = 0)
      : budget_(std::move(budget)), way_(way), max_points_(max_points), rate_(rate), seed_(seed) {
    const Index least = way == Way::merge ? 2 : 1;
    require(max_points >= least, "The cap is " + std::to_string(max_points) +
                                     " points: give at least " + std::to_string(least) + ".");
    if (max_points < kUnlimited) require_whole(static_cast<double>(max_points));
    require(std::isfinite(rate) && rate >= 0, "The maintenance rate is " + format_number(rate) +
                                                  ": give a finite number that is not negative.");
    require(is_komp(way) || budget_.at(1) == 0,
            "Only projection spends a budget: give a cap on the points, or a budget, or project "
            "the points beyond the cap.");
  }

  static void require_whole(double number) {
    require(number >= 0 && number < 0x1p53 && number == std::floor(number),
            "A budget maintenance counts in whole numbers below 2^53; got " +
                format_number(number) + ".");
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all = {"remove", "project", "merge", "nonparametric",
                                                 "unite"};
    return all;
  }

  Index cap_after(Index samples) const {
    if (!cap_grows_) return max_points_;
    const double grown = rate_ * std::pow(static_cast<double>(samples), 2.0 / 3);
    const auto most = static_cast<double>(kLargestGrown);
    return std::max(max_points_, static_cast<Index>(std::min(grown, most)));
  }

  // One coin for each decision, from its number alone: a model that is read back throws the same.
  bool grows(Index samples_seen) {
    std::uint64_t bits = seed_ + 0x9e3779b97f4a7c15u * (coins_ + ++tossed_);
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    const double uniform = static_cast<double>(bits >> 11) * 0x1p-53;
    const bool stays = uniform * static_cast<double>(std::max<Index>(1, samples_seen)) >= rate_;
    stayed_ += stays ? 1 : 0;
    return stays;
  }

  BudgetSchedule budget_;
  Way way_;
  Index max_points_;
  double rate_;
  std::uint64_t seed_;
  std::uint64_t coins_ = 0;
  std::uint64_t tossed_ = 0;  // of the step that is going on
  Index stayed_ = 0;
  bool cap_grows_ = false;
};

}  // namespace parsimon
