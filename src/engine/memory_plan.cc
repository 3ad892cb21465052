#include "engine/memory_plan.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/cgroup.h"
#include "base/units.h"
#include "engine/arena.h"
#include "engine/pooler.h"
#include "engine/rope_table.h"
#include "engine/row_sampler.h"
#include "engine/spec_check.h"

namespace vivace {
namespace {

constexpr size_t kLogitBytes = 32u << 20;  // logits computed at once stay about this small
constexpr int32_t kMinLogitRows = 8;
constexpr size_t kHeadroomBytes = 256u << 20;  // left for requests, text and the allocator
constexpr size_t kDefaultShare = 4;  // a quarter of the free memory for the cache, and for the
                                     // states of recurrent layers, if no flag says more
constexpr int32_t kDefaultSequences = 64;
constexpr int32_t kMaxDefaultModelLen =
    1 << 20;  // longer contexts are asked for with --max-model-len

std::optional<size_t> MemAvailable() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    size_t kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %zu kB", &kib) == 1) return kib << 10;
  }
  return std::nullopt;
}

std::optional<size_t> CgroupLeft() {
  std::ifstream file("/proc/self/cgroup");
  const std::string membership(std::istreambuf_iterator<char>(file), {});
  const auto left = CgroupMemoryLeft(membership, "/sys/fs/cgroup");
  // v1 says "no limit" with a number beyond any memory.
  return left && *left < 0x1p60 ? std::optional(static_cast<size_t>(*left)) : std::nullopt;
}

size_t FreeBeside(size_t taken, size_t available) {
  return available > taken + kHeadroomBytes ? available - taken - kHeadroomBytes : 0;
}

// Inputs of the output projection.
int32_t OutputCols(const model::LayerSpec& layer) {
  if (layer.recurrent) return layer.recurrent->geometry.inner();
  const model::AttentionSpec& a = layer.attention;
  return a.heads * (a.latent ? a.latent->value_dims : a.head_dim);
}

// One cache serves all layers with attention.
Result<kernels::KvGeometry> CommonGeometry(const model::ModelSpec& spec) {
  const kernels::KvGeometry first = LayerGeometry(spec.first_attention());
  for (const model::LayerSpec& layer : spec.layers) {
    if (layer.recurrent) continue;
    const kernels::KvGeometry own = LayerGeometry(layer.attention);
    if (own.kv_heads == first.kv_heads && own.head_dim == first.head_dim &&
        own.latent_dim == first.latent_dim) {
      continue;
    }
    return Fail(
        ErrorCode::kUnsupported, "unsupported_head", "",
        "layers with different heads in the KV cache ({} of {} dims, {} of {} dims) are not "
        "supported",
        first.kv_heads, first.head_dim, own.kv_heads, own.head_dim);
  }
  return first;
}

void AddLatent(const model::LatentSpec& latent, kernels::WorkspaceShape* shape) {
  const model::LinearSpec& first = latent.q_a.present() ? latent.q_a : latent.q_b;
  int32_t outputs = first.weight.rows + latent.kv_a.weight.rows;
  if (latent.q_a.present()) outputs += latent.q_b.weight.rows;
  shape->latent_outputs = std::max(shape->latent_outputs, outputs);
  shape->latent_cols = std::max({shape->latent_cols, latent.rank, latent.nope_dims});
  shape->max_cols = std::max({shape->max_cols, latent.q_a.weight.rows});
}

void AddRecurrent(const model::RecurrentSpec& recurrent, kernels::WorkspaceShape* shape) {
  int32_t outputs = 0;
  for (const model::LinearSpec& part : recurrent.input) outputs += part.weight.rows;
  shape->recurrent_outputs = std::max(shape->recurrent_outputs, outputs);
}

void AddMlp(const model::MlpSpec& mlp, kernels::WorkspaceShape* shape) {
  const bool raw = !kernels::Fused(mlp.activation);
  const auto add = [&](const model::FeedForwardSpec& ffn) {
    shape->ffn = std::max(shape->ffn, ffn.ffn);
    shape->max_cols = std::max(shape->max_cols, ffn.ffn);
    if (raw) shape->raw_ffn = std::max(shape->raw_ffn, 2 * ffn.ffn);
  };
  add(mlp.dense);
  if (!mlp.moe) return;
  add(mlp.moe->shared);
  add(mlp.moe->experts.front());
  shape->experts = std::max(shape->experts, mlp.moe->router.experts);
  shape->top_k = std::max(shape->top_k, mlp.moe->router.top_k);
}

void AddAttention(const model::AttentionSpec& a, kernels::WorkspaceShape* shape) {
  if (a.latent) return AddLatent(*a.latent, shape);
  shape->qkv_rows = std::max(shape->qkv_rows, (a.heads + 2 * a.kv_heads) * a.head_dim);
  if (a.gate.present()) shape->gate_rows = std::max(shape->gate_rows, a.gate.weight.rows);
}

kernels::WorkspaceShape MakeShape(const EngineConfig& config, const model::ModelSpec& spec,
                                  int threads, int32_t max_model_len, int32_t sequences) {
  kernels::WorkspaceShape shape{.max_rows = config.max_num_batched_tokens,
                                .hidden = spec.hidden,
                                .max_cols = spec.hidden,
                                .max_context = max_model_len,
                                .max_sequences = std::min(sequences, config.max_num_batched_tokens),
                                .threads = threads};
  for (const model::LayerSpec& layer : spec.layers) {
    shape.max_cols = std::max(shape.max_cols, OutputCols(layer));
    if (layer.recurrent) {
      AddRecurrent(*layer.recurrent, &shape);
    } else {
      AddAttention(layer.attention, &shape);
    }
    AddMlp(layer.mlp, &shape);
  }
  return shape;
}

size_t ActivationBytes(const MemoryPlan& plan) {
  const auto rows = static_cast<size_t>(plan.shape.max_rows);
  const auto hidden = static_cast<size_t>(plan.shape.hidden);
  const size_t floats[] = {
      rows * hidden,
      rows * static_cast<size_t>(plan.query_cols),
      rows * static_cast<size_t>(plan.attended_cols),
      rows * static_cast<size_t>(plan.shape.ffn),
      plan.shape.experts > 0 ? rows * hidden : 0,
      static_cast<size_t>(plan.logit_rows) * static_cast<size_t>(plan.logits_stride)};
  size_t bytes = 0;
  for (const size_t count : floats) bytes += Arena::Rounded(count * sizeof(float));
  return bytes;
}

size_t TableBytes(const MemoryPlan& plan, const model::ModelSpec& spec) {
  size_t bytes = RowSampler::Bytes(plan.limits, plan.shape.threads) + Pooler::Bytes(plan.limits);
  std::vector<const model::RopeSpec*> kinds;  // layers share a table of each
  for (const model::LayerSpec& layer : spec.layers) {
    if (layer.recurrent) continue;
    const model::RopeSpec& rope = layer.attention.rope;
    if (std::ranges::any_of(kinds, [&](const auto* kind) { return *kind == rope; })) continue;
    kinds.push_back(&rope);
    bytes += RopeTable::Bytes(rope, plan.shape.max_rows, plan.limits.max_model_len);
  }
  return bytes;
}

Result<int32_t> ChooseModelLen(const EngineConfig& config, const model::ModelSpec& spec) {
  const int32_t longest = std::max(spec.context, spec.longest_context);
  if (config.max_model_len > longest) {
    return Fail(ErrorCode::kInvalidArgument, "flag_range", "max-model-len",
                "--max-model-len is {} and the model was made for {} tokens; give at most that",
                config.max_model_len, longest);
  }
  return config.max_model_len > 0 ? config.max_model_len
                                  : std::min(spec.context, kMaxDefaultModelLen);
}

// Sequences that run at once: as many as the configuration says, or of the default those whose
// states fit well.
int32_t ChooseSequences(const EngineConfig& config, const model::ModelSpec& spec,
                        size_t weight_bytes, size_t available, std::vector<std::string>* notes) {
  if (config.max_num_seqs) return *config.max_num_seqs;
  const size_t each = StateBytes(spec, 1);
  if (each == 0 || available == 0) return kDefaultSequences;
  const size_t fit = FreeBeside(weight_bytes, available) / kDefaultShare / each;
  if (fit >= kDefaultSequences) return kDefaultSequences;
  const auto sequences = static_cast<int32_t>(std::max<size_t>(fit, 1));
  notes->push_back(
      fmt::format("{} sequences at once instead of {}: the recurrent layers keep {} of "
                  "each; --max-num-seqs says otherwise",
                  sequences, kDefaultSequences, FormatBytes(each)));
  return sequences;
}

// `fixed_bytes`: what is taken beside the states.
Status CheckStates(const EngineConfig& config, const MemoryPlan& plan, size_t fixed_bytes,
                   size_t available) {
  const size_t free = available - std::min(available, fixed_bytes);
  if (available == 0 || plan.state_bytes <= free) return {};
  return Fail(ErrorCode::kResourceExhausted, "no_memory", "max-num-seqs",
              "the recurrent states of {} sequences take {} and {} are free beside the weights; "
              "lower --max-num-seqs{}",
              plan.limits.max_sequences, FormatBytes(plan.state_bytes), FormatBytes(free),
              config.max_num_seqs.value_or(1) > 1 ? "" : " or free memory");
}

// Blocks of the pool the configuration asks for, of which the longest sequence takes
// `per_sequence`, and up to `sequences` run.
Result<int64_t> ChooseBlocks(const EngineConfig& config, int64_t per_sequence, int32_t sequences,
                             size_t block_bytes, size_t fixed_bytes, size_t available) {
  const size_t free = FreeBeside(fixed_bytes, available);
  int64_t blocks = config.num_kv_blocks;
  if (blocks == 0 && config.kv_cache_memory_bytes > 0) {
    blocks = config.kv_cache_memory_bytes / static_cast<int64_t>(block_bytes);
  }
  const char* flag = config.num_kv_blocks > 0 ? "num-kv-blocks" : "kv-cache-memory-bytes";
  if (blocks > 0) {
    const auto wanted = static_cast<unsigned __int128>(blocks) * block_bytes;
    if (available > 0 && wanted > available - std::min(available, fixed_bytes)) {
      return Fail(
          ErrorCode::kResourceExhausted, "no_memory", flag,
          "a KV cache of {} blocks takes {} and {} are free beside the weights; lower --{}", blocks,
          FormatBytes(static_cast<uint64_t>(std::min<unsigned __int128>(wanted, UINT64_MAX))),
          FormatBytes(available - std::min(available, fixed_bytes)), flag);
    }
    return std::min<int64_t>(blocks, INT32_MAX);
  }
  if (config.kv_cache_memory_bytes > 0) {
    return Fail(ErrorCode::kInvalidArgument, "flag_range", flag,
                "--kv-cache-memory-bytes is {} and one block of {} tokens takes {}; give more",
                FormatBytes(static_cast<uint64_t>(config.kv_cache_memory_bytes)), config.block_size,
                FormatBytes(block_bytes));
  }
  // Where the system does not say what is free, one longest sequence is what a user surely wants.
  const int64_t affordable =
      available > 0 ? static_cast<int64_t>(free / kDefaultShare / block_bytes) : per_sequence;
  return std::min({affordable, per_sequence * sequences, int64_t{INT32_MAX}});
}

// The cache, in what the rest of `plan` leaves free.
Status PlanCache(const EngineConfig& config, size_t weight_bytes, size_t available,
                 int32_t max_model_len, MemoryPlan* plan) {
  plan->limits.kv_windows = KvWindows(plan->groups);
  const KvWindows& windows = plan->limits.kv_windows;
  const int32_t chunk = config.max_num_batched_tokens;
  const size_t block_bytes =
      plan->kv_block_bytes * static_cast<size_t>(plan->groups.layers_per_block);
  const size_t work = plan->workspace_bytes + plan->activation_bytes + plan->table_bytes;
  VIVACE_RETURN_IF_ERROR(CheckStates(config, *plan, weight_bytes + work, available));
  const size_t fixed = weight_bytes + work + plan->state_bytes;
  VIVACE_ASSIGN(const int64_t blocks,
                ChooseBlocks(config, MostBlocks(windows, config.block_size, max_model_len, chunk),
                             plan->limits.max_sequences, block_bytes, fixed, available));
  const int64_t tokens = LongestSequence(windows, config.block_size, blocks, chunk, max_model_len);
  if (blocks < 1 && config.max_model_len == 0) {
    return Fail(ErrorCode::kResourceExhausted, "no_memory", "max-num-batched-tokens",
                "{} are free; the weights take {} and steps of --max-num-batched-tokens {} take "
                "{}, which leaves "
                "nothing for a KV cache; lower that flag or free memory",
                FormatBytes(available), FormatBytes(weight_bytes), config.max_num_batched_tokens,
                FormatBytes(fixed - weight_bytes));
  }
  if (tokens < 1 || (config.max_model_len > 0 && tokens < max_model_len)) {
    return Fail(
        ErrorCode::kResourceExhausted, "no_memory", "max-model-len",
        "the KV cache holds {} tokens and --max-model-len {} needs more; lower it, or raise "
        "--{} ({} tokens take {})",
        tokens, max_model_len, config.num_kv_blocks > 0 ? "num-kv-blocks" : "kv-cache-memory-bytes",
        config.block_size, FormatBytes(block_bytes * plan->groups.groups.size()));
  }
  plan->kv_bytes = static_cast<size_t>(blocks) * block_bytes;
  plan->limits.max_model_len = static_cast<int32_t>(std::min<int64_t>(max_model_len, tokens));
  plan->limits.num_blocks = static_cast<int32_t>(blocks);
  return {};
}

}  // namespace

kernels::KvGeometry LayerGeometry(const model::AttentionSpec& a) {
  if (!a.latent) return {.kv_heads = a.kv_heads, .head_dim = a.head_dim};
  return {.kv_heads = 1,
          .head_dim = a.latent->rank + a.latent->rope_dims,
          .latent_dim = a.latent->rank};
}

size_t AvailableMemory() {
  const auto system = MemAvailable(), cgroup = CgroupLeft();
  if (system && cgroup) return std::min(*system, *cgroup);
  return system.value_or(cgroup.value_or(0));
}

size_t StateBytes(const model::ModelSpec& spec, int32_t sequences) {
  size_t bytes = 0;
  for (const model::LayerSpec& layer : spec.layers) {
    if (!layer.recurrent) continue;
    const auto floats = static_cast<size_t>(layer.recurrent->geometry.state_floats());
    bytes += Arena::Rounded(static_cast<size_t>(sequences) * floats * sizeof(float));
  }
  return bytes;
}

KvGroups GroupsOf(const model::ModelSpec& spec, int32_t max_model_len) {
  std::vector<int32_t> windows, layers;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (spec.layers[i].recurrent) continue;
    const int32_t window = spec.layers[i].attention.window;
    windows.push_back(window < max_model_len ? window : 0);
    layers.push_back(static_cast<int32_t>(i));
  }
  KvGroups dealt = DealLayers(windows);
  for (KvGroup& group : dealt.groups) {
    for (int32_t& layer : group.layers) layer = layers[static_cast<size_t>(layer)];
  }
  return dealt;
}

Result<MemoryPlan> PlanMemory(const EngineConfig& config, const model::ModelSpec& spec,
                              const kernels::BlockOps& ops, size_t weight_bytes, int threads,
                              size_t available) {
  MemoryPlan plan;
  VIVACE_RETURN_IF_ERROR(CheckSpec(spec));
  VIVACE_ASSIGN(int32_t max_model_len, ChooseModelLen(config, spec));
  VIVACE_ASSIGN(plan.kv, CommonGeometry(spec));
  plan.kv.dtype = config.kv_cache_dtype.value_or(ops.default_kv_dtype);
  plan.kv.block_size = config.block_size;
  plan.kv_block_bytes = ops.kv_block_bytes(plan.kv);
  kernels::KvGeometry by_default = plan.kv;
  by_default.dtype = ops.default_kv_dtype;
  if (plan.kv_block_bytes == 0 && ops.kv_block_bytes(by_default) > 0) {
    return Fail(ErrorCode::kUnsupported, "unsupported_kv_dtype", "kv-cache-dtype",
                "the {} kernels have no {} KV cache; leave --kv-cache-dtype at auto ({}) or choose "
                "another --isa",
                Name(ops.isa), Name(plan.kv.dtype), Name(ops.default_kv_dtype));
  }
  if (plan.kv_block_bytes == 0) {
    return Fail(ErrorCode::kUnsupported, "unsupported_head", "",
                "attention heads of {} dims are not supported by the {} kernels", plan.kv.head_dim,
                Name(ops.isa));
  }
  // The workspace may depend on the context, so it is sized for the longest before blocks are
  // chosen.
  const int32_t sequences = ChooseSequences(config, spec, weight_bytes, available, &plan.notes);
  plan.shape = MakeShape(config, spec, threads, max_model_len, sequences);
  plan.state_bytes = StateBytes(spec, plan.shape.max_sequences);
  plan.workspace_bytes = ops.workspace_bytes(plan.shape);
  plan.logits_stride = (int64_t{spec.vocab} + 15) / 16 * 16;
  const auto fit =
      static_cast<int32_t>(kLogitBytes / (static_cast<size_t>(plan.logits_stride) * sizeof(float)));
  plan.logit_rows = std::max(std::min(plan.shape.max_sequences, std::max(fit, kMinLogitRows)), 1);
  for (const model::LayerSpec& layer : spec.layers) {
    const model::AttentionSpec& a = layer.attention;
    // Values out of the latent space lie where the queries were, and so do a recurrence's.
    plan.query_cols = std::max({plan.query_cols, a.heads * plan.kv.head_dim, OutputCols(layer)});
    plan.attended_cols = std::max(plan.attended_cols, a.heads * plan.kv.value_dim());
  }
  plan.activation_bytes = ActivationBytes(plan);
  plan.limits = {.vocab = spec.vocab,
                 .hidden = spec.hidden,
                 .max_sequences = plan.shape.max_sequences,
                 .max_batched_tokens = config.max_num_batched_tokens,
                 .max_model_len = max_model_len,
                 .block_size = config.block_size,
                 .recurrent = plan.state_bytes > 0,
                 .long_prompt = LongPrompt(spec)};
  plan.table_bytes = TableBytes(plan, spec);
  if (plan.limits.recurrent && config.enable_prefix_caching) {
    plan.notes.push_back(
        "no prefix caching: recurrent layers keep a sequence's last state, not those before it");
  }
  plan.groups = GroupsOf(spec, max_model_len);
  VIVACE_RETURN_IF_ERROR(PlanCache(config, weight_bytes, available, max_model_len, &plan));
  return plan;
}

}  // namespace vivace
