// A plan and a forward pass made by hand, for tests below the executor. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/forward.h"
#include "engine/memory_plan.h"
#include "engine/weights.h"
#include "model/loaded_model.h"

namespace vivace::testing {

// On a machine with 16 GiB left.
inline MemoryPlan MakePlan(const EngineConfig& config, const model::ModelSpec& spec,
                           const kernels::BlockOps& ops, int threads) {
  auto plan = PlanMemory(config, spec, ops, 0, threads, size_t{1} << 34);
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return std::move(plan).value();
}

// Of the file's weights; `spec` is the file's, or what a test made of it.
inline std::unique_ptr<Forward> MakeForward(const MemoryPlan& plan, const model::ModelSpec& spec,
                                            const model::ModelFile& file,
                                            const kernels::BlockOps& ops, ThreadPool* pool) {
  auto weights = LoadWeights({}, file, ops, *pool, {});
  EXPECT_TRUE(weights.has_value()) << weights.error().message;
  auto memory = Arena::Map(Forward::ArenaBytes(plan), "a test");
  EXPECT_TRUE(memory.has_value()) << memory.error().message;
  return std::make_unique<Forward>(plan, spec, ops, std::move(weights).value(),
                                   std::move(memory).value(), pool);
}

}  // namespace vivace::testing
