#include "engine/cpu_executor.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "engine/forward.h"
#include "engine/load_plan.h"
#include "engine/pooler.h"
#include "engine/row_sampler.h"
#include "engine/weights.h"

namespace vivace {
namespace {

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(const MemoryPlan& plan, const model::ModelSpec& spec, const kernels::BlockOps& ops,
              std::unique_ptr<ThreadPool> pool, Weights weights, Arena memory,
              std::vector<TokenId> eos_ids)
      : limits_(plan.limits),
        pool_(std::move(pool)),
        forward_(plan, spec, ops, std::move(weights), std::move(memory), pool_.get()),
        sampler_(plan.limits, plan.logit_rows, kernels::GetVocabOps(ops.isa), pool_.get(),
                 std::move(eos_ids)),
        pooler_(plan.limits, pool_.get()) {}

  const ExecutorLimits& limits() const override { return limits_; }

  void BindSlot(SeqSlot slot, const SlotBinding& binding) override {
    forward_.Bind(slot, binding.prompt_len);
    sampler_.Bind(slot, binding);
  }
  void ReleaseSlot(SeqSlot slot) override { sampler_.Release(slot); }

  void Launch(const StepPlan& plan) override {
    const int64_t start = SteadyNanos();
    times_ = {};
    forward_.Prepare(plan);
    times_.kernel_ns = Timed([&] { forward_.Run(plan); });
    times_.sample_ns += Timed([&] { pooler_.Take(plan, &forward_); });
    sampler_.Begin(plan);
    if (const auto rows = sampler_.greedy_rows(); !rows.empty()) {
      times_.kernel_ns += Timed([&] { forward_.Argmax(rows, sampler_.best()); });
      times_.sample_ns += Timed([&] { sampler_.TakeBest(); });
    }
    // Logits in batches of rows, so that their memory does not grow with the step.
    for (std::span<const LogitRow> rows = sampler_.NextRows(); !rows.empty();
         rows = sampler_.NextRows()) {
      float* logits = nullptr;
      times_.kernel_ns += Timed([&] { logits = forward_.Logits(sampler_.row_indices()); });
      times_.sample_ns += Timed([&] { sampler_.Take(logits, forward_.logits_stride()); });
    }
    times_.total_ns = SteadyNanos() - start;
  }

  void Await(StepResult* result) override {
    sampler_.Finish(result);
    pooler_.Finish(result);
  }
  StepTimes last_times() const override { return times_; }

 private:
  template <typename Body>
  static int64_t Timed(Body&& body) {
    const int64_t start = SteadyNanos();
    body();
    return SteadyNanos() - start;
  }

  const ExecutorLimits limits_;
  const std::unique_ptr<ThreadPool> pool_;
  Forward forward_;
  RowSampler sampler_;
  Pooler pooler_;
  StepTimes times_;
};

}  // namespace

Result<std::unique_ptr<Executor>> CreateCpuExecutor(const EngineConfig& config,
                                                    const model::ModelFile& file,
                                                    std::vector<TokenId> eos_ids,
                                                    const LoadProgress& progress) {
  VIVACE_ASSIGN(const LoadPlan plan, PlanLoad(config, file, AvailableMemory()));
  for (const std::string& note : plan.memory.notes) log::Info(note);
  VIVACE_ASSIGN(Arena memory,
                Arena::Map(Forward::ArenaBytes(plan.memory), "the KV cache and work space"));
  auto pool = std::make_unique<ThreadPool>(plan.threads);
  VIVACE_ASSIGN(Weights weights, LoadWeights(config, file, *plan.ops, *pool, progress));
  return std::make_unique<CpuExecutor>(plan.memory, file.spec(), *plan.ops, std::move(pool),
                                       std::move(weights), std::move(memory), std::move(eos_ids));
}

}  // namespace vivace
