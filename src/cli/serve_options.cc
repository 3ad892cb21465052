#include "cli/serve_options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "base/units.h"
#include "cli/access_flags.h"
#include "cli/environment.h"
#include "cli/value_flags.h"
#include "quant/quantize.h"

namespace vivace::cli {
namespace {

template <typename T>
struct NumberOf {
  using Type = T;
};
template <typename T>
struct NumberOf<std::optional<T>> {
  using Type = T;
};

// A number that fits the field; its range is Validate's business.
template <typename Field>
Flag Count(std::string name, std::string default_text, std::string help, Field* to) {
  using T = typename NumberOf<Field>::Type;
  auto store = [name, to](const std::string& text) -> Status {
    VIVACE_ASSIGN(const int64_t value, ParseCount(text, name));
    if (std::cmp_greater(value, std::numeric_limits<T>::max())) {
      return BadValue(name, text, fmt::format("at most {}", std::numeric_limits<T>::max()));
    }
    *to = static_cast<T>(value);
    return {};
  };
  return {std::move(name), "N", std::move(default_text), std::move(help), std::move(store)};
}

// Milliseconds with or without a fraction; their range is Validate's business.
Status StoreMaxItl(const std::string& text, EngineConfig* config) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return BadValue("max-itl", text, "milliseconds, such as 50, or 0 for no limit");
  }
  config->max_itl_ms = value;
  return {};
}

Status StoreIsa(const std::string& text, EngineConfig* config) {
  if (text == "auto") {
    config->isa.reset();
    return {};
  }
  config->isa = ParseIsa(text);
  if (!config->isa) {
    return BadValue("isa", text, "auto, avx512bf16, avx512, avxvnni, avx2 or reference");
  }
  return {};
}

Status StoreKvDType(const std::string& text, EngineConfig* config) {
  if (text == "auto") {
    config->kv_cache_dtype.reset();
    return {};
  }
  config->kv_cache_dtype = kernels::ParseKvDType(text);
  if (!config->kv_cache_dtype) return BadValue("kv-cache-dtype", text, "auto, bf16, int8 or f32");
  return {};
}

Status StoreQuantization(const std::string& text, EngineConfig* config) {
  config->quantization = quant::ParseQuantization(text);
  if (text == "none" || config->quantization) return {};
  return BadValue("quantization", text, "none, q8_0, q5_1, q5_0, q4_1 or q4_0");
}

Status StorePingInterval(const std::string& text, ServeOptions* options) {
  constexpr int kMostSeconds = 3600;
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0 ||
      seconds > kMostSeconds) {
    return BadValue("sse-ping-interval", text, "seconds from 0 to 3600");
  }
  options->server.service.ping_interval_ms = seconds * 1000;
  return {};
}

Status StoreLogFormat(const std::string& text, log::Format* format) {
  if (text != "text" && text != "json") return BadValue("log-format", text, "text or json");
  *format = text == "json" ? log::Format::kJson : log::Format::kText;
  return {};
}

constexpr const char* kExamples =
    R"(Numbers take suffixes: 32k is 32,000, 32K and 32Ki are 32,768; bytes also 4GiB, 512MiB.

Examples:
  vivace serve model.gguf
  vivace serve org/name                  from the hub, by way of its cache; also org/name:FILE
  vivace serve model.gguf --host 0.0.0.0 --port 9000 --max-model-len 4096 --max-num-seqs 32
  vivace serve model.gguf --kv-cache-memory-bytes 2GiB --threads 8
  vivace serve --config tuned/vivace.json         as `vivace tune` writes it

Then, from anywhere an OpenAI client runs:
  curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"messages": [{"role": "user", "content": "Hello"}]}'

SIGTERM or Ctrl-C lets running answers finish; a second one ends at once.)";

}  // namespace

std::vector<Flag> EngineFlags(EngineConfig* config) {
  return {
      Count("max-model-len", "the model's", "most tokens of one sequence, prompt and output",
            &config->max_model_len),
      Count("max-num-seqs", "64, fewer where recurrent states would take too much",
            "sequences computed in one step", &config->max_num_seqs),
      Count("max-num-batched-tokens", fmt::to_string(config->max_num_batched_tokens),
            "tokens computed in one step; long prompts are cut into chunks",
            &config->max_num_batched_tokens),
      {"max-itl", "MS", fmt::to_string(config->max_itl_ms),
       "most milliseconds between a stream's tokens while prompts arrive; 0: any",
       [config](const std::string& text) { return StoreMaxItl(text, config); }},
      {"kv-cache-memory-bytes", "BYTES", "from free memory", "memory of the KV cache",
       [config](const std::string& text) -> Status {
         VIVACE_ASSIGN(config->kv_cache_memory_bytes, ParseBytes(text, "kv-cache-memory-bytes"));
         return {};
       }},
      Count("num-kv-blocks", "from the memory", "size of the KV cache in blocks instead",
            &config->num_kv_blocks),
      Count("block-size", fmt::to_string(config->block_size), "tokens of a KV block",
            &config->block_size),
      {"kv-cache-dtype", "TYPE", "auto",
       "auto, bf16, int8 (half the memory, and faster at long contexts) or f32",
       [config](const std::string& text) { return StoreKvDType(text, config); }},
      {"quantization", "TYPE", "none",
       "quantise full-precision weights at load: q8_0, q5_1, q5_0, q4_1 or q4_0",
       [config](const std::string& text) { return StoreQuantization(text, config); }},
      {"enable-prefix-caching", "", "on", "share the KV cache of equal prompt beginnings",
       StoreSwitch(&config->enable_prefix_caching)},
      Count("threads", "usable CPUs", "compute threads", &config->threads),
      {"isa", "TIER", "auto",
       "auto, avx512bf16, avx512, avxvnni, avx2, or reference (fp32 throughout, slow)",
       [config](const std::string& text) { return StoreIsa(text, config); }},
      Count("seed", "random", "seed of requests that bring none", &config->seed),
  };
}

std::vector<Flag> EngineFlags(EngineConfig* config, std::span<const std::string_view> names) {
  std::vector<Flag> flags = EngineFlags(config);
  std::erase_if(flags, [&](const Flag& flag) { return !std::ranges::count(names, flag.name); });
  return flags;
}

std::vector<Flag> WeightCacheFlags(EngineConfig* config) {
  config->weight_cache = UserCacheFolder();
  return {
      {"weight-cache", "DIR", "~/.cache/vivace",
       "folder where packed weights are kept, for a quick start; `off` for none",
       [config](const std::string& text) -> Status {
         if (text.empty()) return BadValue("weight-cache", text, "a folder, or off");
         config->weight_cache = text == "off" ? "" : text;
         return {};
       }},
      {"weight-cache-size", "BYTES", FormatBytes(static_cast<uint64_t>(config->weight_cache_size)),
       "most they may take; the least recently used go first",
       [config](const std::string& text) -> Status {
         VIVACE_ASSIGN(config->weight_cache_size, ParseBytes(text, "weight-cache-size"));
         return {};
       }}};
}

Command ServeCommand(ServeOptions* options) {
  Command command = {.name = "serve",
                     .positional = "MODEL",
                     .summary = "Serves a model, a file or a name on the hub, over the OpenAI API.",
                     .details = kExamples,
                     .flags = {},
                     .takes_config = true};
  command.flags = {
      {"host", "ADDRESS", options->server.http.host, "address to listen on; 0.0.0.0 for all",
       [options](const std::string& text) -> Status {
         if (text.empty()) return BadValue("host", text, "an address, such as 127.0.0.1");
         options->server.http.host = text;
         return {};
       }},
      Count("port", fmt::to_string(options->server.http.port),
            "port to listen on; 0 for any free one", &options->server.http.port),
      {"served-model-name", "NAME", "the file's name",
       "name in the API; may be given several times",
       [options](const std::string& text) -> Status {
         if (text.empty()) return BadValue("served-model-name", text, "a name");
         options->server.served_model_names.push_back(text);
         return {};
       }},
  };
  for (Flag& flag : EngineFlags(&options->engine)) command.flags.push_back(std::move(flag));
  for (Flag& flag : WeightCacheFlags(&options->engine)) command.flags.push_back(std::move(flag));
  for (Flag& flag : HubFlags(&options->hub)) command.flags.push_back(std::move(flag));
  command.flags.push_back(TextFlag("chat-template", "FILE", "the model's",
                                   "a Jinja chat template to use instead",
                                   &options->chat_template));
  command.flags.push_back(
      Count("max-queued-requests", fmt::to_string(options->engine.max_queued_requests),
            "waiting requests before new ones get 503", &options->engine.max_queued_requests));
  command.flags.back().aliases = {"max-num-queued-reqs"};
  command.flags.push_back(Count("max-queued-tokens",
                                fmt::to_string(options->engine.max_queued_tokens),
                                "their prompt tokens, all together; one alone may have more",
                                &options->engine.max_queued_tokens));
  command.flags.back().aliases = {"max-num-queued-tokens"};
  command.flags.push_back(
      Count("shutdown-timeout", fmt::to_string(options->server.shutdown_timeout_s),
            "seconds running answers may take after SIGTERM", &options->server.shutdown_timeout_s));
  command.flags.push_back(
      {"sse-ping-interval", "SECONDS",
       fmt::to_string(options->server.service.ping_interval_ms / 1000),
       "a stream that has nothing to say for so long sends a ping, so that proxies keep it; 0: "
       "none",
       [options](const std::string& text) { return StorePingInterval(text, options); }});
  for (Flag& flag : AccessFlags(&options->server)) command.flags.push_back(std::move(flag));
  command.flags.push_back(
      {"log-format", "FORMAT", "text", "text or json",
       [options](const std::string& text) { return StoreLogFormat(text, &options->log_format); }});
  return command;
}

}  // namespace vivace::cli
