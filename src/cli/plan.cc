#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/resident_memory.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_argument.h"
#include "cli/serve_options.h"
#include "engine/load_engine.h"
#include "engine/load_plan.h"
#include "engine/model_text.h"
#include "grammar/vocabulary.h"

namespace vivace::cli {
namespace {

// Flags of `serve` that change what it takes.
constexpr std::string_view kFlags[] = {
    "max-model-len", "max-num-seqs", "max-num-batched-tokens", "kv-cache-memory-bytes",
    "num-kv-blocks", "block-size",   "kv-cache-dtype",         "quantization",
    "threads",       "isa"};

struct PlanOptions {
  EngineConfig engine;
  HubOptions hub;
  bool json = false;
};

Command PlanCommand(PlanOptions* options) {
  Command command = {
      .name = "plan",
      .positional = "MODEL",
      .summary = "Says what serving a model takes, and what fits, without reading its weights.",
      .details =
          "The flags are those of `vivace serve`, and the figures what it then takes once "
          "all of its\ncaches are in use. Exits 1 where `serve` would refuse to start.\n\n"
          "Examples:\n  vivace plan model.gguf\n"
          "  vivace plan model.gguf --max-model-len 8K --max-num-seqs 16\n"
          "  vivace plan org/name --kv-cache-dtype int8 --json",
      .flags = {}};
  command.flags = EngineFlags(&options->engine, kFlags);
  for (Flag& flag : HubFlags(&options->hub)) command.flags.push_back(std::move(flag));
  command.flags.push_back(
      {"json", "", "off", "one JSON object instead of text", StoreSwitch(&options->json)});
  return command;
}

struct Figures {
  size_t weights, kv, states, work, program, total;
  int64_t bytes_per_token;    // of a sequence that every layer sees whole
  int64_t longest_sequences;  // of max_model_len tokens, at once
};

Figures FiguresOf(const LoadPlan& plan, size_t program) {
  const MemoryPlan& memory = plan.memory;
  const ExecutorLimits& limits = memory.limits;
  Figures f;
  f.weights = plan.weight_bytes;
  f.kv = memory.kv_bytes;
  f.states = memory.state_bytes;
  f.work = plan.bytes() - f.weights - f.kv - f.states;
  f.program = program;
  f.total = plan.bytes() + program;
  const auto groups = static_cast<size_t>(limits.kv_windows.size());
  f.bytes_per_token = static_cast<int64_t>(memory.kv_block_bytes * groups *
                                           static_cast<size_t>(memory.groups.layers_per_block) /
                                           static_cast<size_t>(limits.block_size));
  f.longest_sequences =
      limits.num_blocks / MostBlocks(limits.kv_windows, limits.block_size, limits.max_model_len,
                                     limits.max_batched_tokens);
  return f;
}

void PrintPlanText(const std::string& model, const LoadPlan& plan, const Figures& f,
                   size_t available) {
  fmt::print("{} with {} kernels, {} threads, {} cache\n\n", model, Name(plan.ops->isa),
             plan.threads, kernels::Name(plan.memory.kv.dtype));
  const auto line = [](std::string_view what, size_t bytes, const std::string& note) {
    fmt::print("  {:<12} {:>12}  {}\n", what, FormatBytes(bytes), note);
  };
  line("weights", f.weights, "packed for these kernels");
  line(
      "KV cache", f.kv,
      fmt::format("{} a token, all layers", FormatBytes(static_cast<uint64_t>(f.bytes_per_token))));
  if (f.states > 0) {
    line(
        "states", f.states,
        fmt::format("of recurrent layers, {} a sequence",
                    FormatBytes(f.states / static_cast<size_t>(plan.memory.limits.max_sequences))));
  }
  line("work space", f.work, "of one step, and tables");
  line("program", f.program, "code, vocabulary, grammars, chat template");
  line("total", f.total,
       available > 0 ? fmt::format("of {} free now", FormatBytes(available)) : "");
  fmt::print(
      "\nSequences may have {} tokens, prompt and output; {} run at once.\n"
      "The cache holds {} of that length together; shorter ones fit in greater number.\n",
      plan.memory.limits.max_model_len, plan.memory.limits.max_sequences, f.longest_sequences);
  for (const std::string& note : plan.memory.notes) fmt::print("{}\n", note);
}

void PrintPlanJson(const std::string& model, const LoadPlan& plan, const Figures& f,
                   size_t available) {
  const boost::json::object object = {{"model", model},
                                      {"isa", Name(plan.ops->isa)},
                                      {"threads", plan.threads},
                                      {"kv_cache_dtype", kernels::Name(plan.memory.kv.dtype)},
                                      {"weight_bytes", f.weights},
                                      {"kv_cache_bytes", f.kv},
                                      {"state_bytes", f.states},
                                      {"work_bytes", f.work},
                                      {"program_bytes", f.program},
                                      {"total_bytes", f.total},
                                      {"available_bytes", available},
                                      {"kv_bytes_per_token", f.bytes_per_token},
                                      {"kv_cache_tokens", plan.memory.limits.kv_tokens()},
                                      {"num_kv_blocks", plan.memory.limits.num_blocks},
                                      {"max_model_len", plan.memory.limits.max_model_len},
                                      {"max_num_seqs", plan.memory.limits.max_sequences},
                                      {"sequences_of_max_model_len", f.longest_sequences}};
  fmt::print("{}\n", boost::json::serialize(object));
}

Status RunPlan(PlanOptions options, const std::string& argument) {
  VIVACE_ASSIGN(const ModelArgument model, ResolveModel(argument, options.hub));
  options.engine.model = model.path;
  VIVACE_RETURN_IF_ERROR(Validate(options.engine));
  VIVACE_ASSIGN(const model::ModelFile file, OpenModel(options.engine));
  VIVACE_ASSIGN(const ModelText text, ReadModelText(file));
  const size_t available = AvailableMemory();
  VIVACE_ASSIGN(const LoadPlan plan, PlanLoad(options.engine, file, available));
  // Code, heap and the model's text: `serve` holds as much beside its memory.
  const size_t grammars = grammar::SharedGrammarBytes(text.tokenizer->vocab_size());
  const Figures figures = FiguresOf(plan, ResidentBytes() + grammars);
  (options.json ? PrintPlanJson : PrintPlanText)(argument, plan, figures, available);
  return {};
}

}  // namespace

int Plan(std::span<const std::string> args) {
  PlanOptions options;
  const auto words = ParseWords(PlanCommand(&options), args, {1, 1, "give one model"});
  if (!words) return words.error();
  const Status done = RunPlan(std::move(options), (*words)[0]);
  return done ? 0 : Refuse(done.error());
}

}  // namespace vivace::cli
