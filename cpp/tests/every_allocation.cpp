// With failing_allocations preloaded: for every algorithm, each of the allocations of a step fails
// once, on a copy of the model. The step must throw std::bad_alloc and leave the model as it was,
// or succeed in spite of it.
//
//   LD_PRELOAD=libfailing_allocations.so every_allocation [algorithm]

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "fuzz_models.hpp"

namespace {

using namespace parsimon;

using FailAfter = void (*)(long);
using Allocations = long (*)();
FailAfter fail_after = nullptr;
Allocations allocations = nullptr;

struct Tally {
  long injected = 0, thrown = 0, changed = 0, wrong = 0;
};

// Nothing if what is left of a model is no model.
template <class Model>
std::string bytes_of(const Model& model) {
  try {
    return to_archive(model).to_bytes();
  } catch (const Error&) {
    return "";
  }
}

// Steps from fresh models, whose buffers have to grow, and from trained ones.
template <class Model>
Tally attack(Model model, const std::string& name) {
  Tally tally;
  for (const Index trained : {Index{0}, Index{8}, Index{40}}) {
    if (trained > 0) fuzz::train(model, trained);
    const std::string before = bytes_of(model);
    Model free_run = model;
    fail_after(-1);
    fuzz::train(free_run, 8);
    const long all = allocations();
    const std::string after = bytes_of(free_run);
    for (long n = 0; n < all; ++n) {
      Model victim = model;
      bool thrown = false;
      fail_after(n);
      try {
        fuzz::train(victim, 8);
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      fail_after(-1);
      ++tally.injected;
      tally.thrown += thrown ? 1 : 0;
      const std::string now = bytes_of(victim);
      if (now != (thrown ? before : after)) ++tally.changed;
      // What is left must be usable.
      try {
        fuzz::train(victim, 16);
        if (!victim.expansion()(fuzz::samples(4)).allFinite()) ++tally.wrong;
      } catch (const std::exception&) {
        ++tally.wrong;
      }
    }
  }
  std::printf("%-18s %6ld failures, %6ld thrown, %4ld changed states, %4ld unusable\n",
              name.c_str(), tally.injected, tally.thrown, tally.changed, tally.wrong);
  std::fflush(stdout);
  return tally;
}

}  // namespace

int main(int argc, char** argv) {
  fail_after = reinterpret_cast<FailAfter>(dlsym(RTLD_DEFAULT, "parsimon_fail_after"));
  allocations = reinterpret_cast<Allocations>(dlsym(RTLD_DEFAULT, "parsimon_allocations"));
  if (fail_after == nullptr || allocations == nullptr) {
    std::fprintf(stderr, "failing_allocations is not preloaded\n");
    return 77;
  }
  set_num_threads(1);
  const std::string wanted = argc > 1 ? argv[1] : "";
  long bad = 0;
  const auto run = [&](const std::string& name, const auto& make) {
    if (!wanted.empty() && wanted != name) return;
    const Tally tally = attack(make(), name);
    bad += tally.changed + tally.wrong;
  };
  run("growing", [] { return fuzz::polk(fuzz::growing(), true, false); });
  run("nonparametric", [] { return fuzz::polk(fuzz::nonparametric(), false, false); });
  run("merge, solved", [] { return fuzz::polk(Compression(Way::merge, 6), false, true); });
  run("remove, solved", [] { return fuzz::polk(Compression(Way::remove, 6), false, true); });
  run("project, solved", [] { return fuzz::polk(Compression(Way::project, 6), false, true); });
  run("compositional", [] { return fuzz::compositional(); });
  run("solved_density", [] { return fuzz::solved_density(); });
  run("density on points", [] { return fuzz::solved_density_on_points(); });
  run("polk", [] { return fuzz::polk(BudgetSchedule::fixed(0.05), true, false); });
  run("newton", [] { return fuzz::polk(BudgetSchedule::fixed(0.05), false, true); });
  run("merge", [] { return fuzz::polk(Compression(Way::merge, 6), true, false); });
  run("remove", [] { return fuzz::polk(Compression(Way::remove, 6), false, false); });
  run("project", [] { return fuzz::polk(Compression(Way::project, 6), false, false); });
  run("no budget", [] { return fuzz::polk(BudgetSchedule::fixed(0), false, false); });
  run("colk", [] { return fuzz::colk(); });
  run("policy_evaluation", [] { return fuzz::policy_evaluation(); });
  run("spppot", [] { return fuzz::spppot(); });
  run("mirror_newton", [] { return fuzz::mirror_newton(); });
  run("hybrid", [] { return fuzz::hybrid(); });
  return bad == 0 ? 0 : 1;
}
