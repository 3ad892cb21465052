// vivace_sim: runs seeds until one fails or all are done.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "sim/simulation.h"

int main(int argc, char** argv) {
  CLI::App app("Random lives of the scheduler, checked after every step");
  uint64_t first_seed = 0;
  uint64_t seeds = 100'000;
  app.add_option("--first-seed", first_seed, "the first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "how many seeds")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  vivace::sim::SimulationReport total;
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    const vivace::sim::SimulationReport report = vivace::sim::Simulate(seed);
    if (!report.failure.empty()) {
      fmt::print(stderr, "seed {}: {}\nagain: vivace_sim --first-seed {} --seeds 1\n", seed,
                 report.failure, seed);
      return 1;
    }
    total.steps += report.steps;
    total.sequences += report.sequences;
    total.tokens += report.tokens;
    total.preemptions += report.preemptions;
    total.prefix_hits += report.prefix_hits;
    total.aborts += report.aborts;
  }
  fmt::print(
      "{} seeds: {} steps, {} sequences, {} tokens, {} aborts, {} preemptions, {} prefix hits\n",
      seeds, total.steps, total.sequences, total.tokens, total.aborts, total.preemptions,
      total.prefix_hits);
  return 0;
}
