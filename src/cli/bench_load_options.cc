#include "cli/bench_load_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/value.hpp>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "base/limits.h"
#include "base/units.h"
#include "cli/environment.h"
#include "cli/value_flags.h"
#include "load/compat.h"
#include "server/json/strict_json.h"

namespace vivace::cli {
namespace {

constexpr std::string_view kCompletions = "/v1/completions", kChat = "/v1/chat/completions";
constexpr double kDay = limits::kMaxLoadSeconds;
constexpr int32_t kMostSeed = std::numeric_limits<int32_t>::max();

// Other tools' names for kinds of datasets, and what else they say.
struct DatasetAlias {
  std::string_view alias, name;
};
constexpr DatasetAlias kDatasetAliases[] = {
    {"prefix_repetition", "shared-prefix"},
    {"generated-shared-prefix", "shared-prefix"},
    {"timed_trace", "trace"},
    {"mooncake", "trace"},
    {"burstgpt", "trace"},
};

// Named presets of lengths.
struct Preset {
  std::string_view name;
  int32_t input, output;
};
constexpr Preset kPresets[] = {{"prefill-heavy", 768, 128}, {"decode-heavy", 128, 768}};

// What other tools call a protocol: only whether it is chat is of interest.
constexpr std::string_view kBackends[] = {"openai",   "vllm", "vivace",      "llama.cpp", "sglang",
                                          "lmdeploy", "tgi",  "openai-chat", "vllm-chat"};

Flag Text(std::string name, std::string value, std::string shown, std::string help, std::string* to,
          std::vector<std::string> aliases = {}) {
  return {std::move(name), std::move(value), std::move(shown),
          std::move(help), StoreText(to),    std::move(aliases)};
}

Flag Switch(std::string name, std::string shown, std::string help, bool* to) {
  return {std::move(name), "", std::move(shown), std::move(help), StoreSwitch(to)};
}

// ---- Values ----

Status StoreHeader(const std::string& text, std::vector<std::string>* headers) {
  const size_t at = text.find_first_of("=:");
  if (at == std::string::npos || at == 0) {
    return BadValue("header", text, "NAME=VALUE or 'NAME: VALUE'");
  }
  std::string value = text.substr(at + 1);
  value.erase(0, std::min(value.find_first_not_of(' '), value.size()));
  headers->push_back(text.substr(0, at) + ": " + value);
  return {};
}

Status StoreExtraBody(const std::string& text, boost::json::object* extra) {
  if (text.size() > limits::kMaxLoadExtraBodyBytes) {
    return BadValue("extra-body", text.substr(0, 32) + "...", "less than a mebibyte of JSON");
  }
  auto value = server::ParseStrictJson(text);
  if (!value || !value->is_object()) {
    return BadValue("extra-body", text,
                    fmt::format(R"(a JSON object such as {{"top_k": 20}}{}{})", value ? "" : "; ",
                                value ? "" : value.error().message));
  }
  for (auto& member : value->get_object()) (*extra)[member.key()] = std::move(member.value());
  return {};
}

Status StoreMetadata(const std::string& text, std::map<std::string, std::string>* metadata) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return BadValue("metadata", text, "KEY=VALUE");
  (*metadata)[text.substr(0, equals)] = text.substr(equals + 1);
  return {};
}

Status StoreDatasetName(const std::string& text, load::DatasetOptions* dataset) {
  dataset->name = text;
  for (const DatasetAlias& alias : kDatasetAliases) {
    if (alias.alias == text) dataset->name = alias.name;
  }
  std::vector<std::string> names;
  for (const load::DatasetKind& kind : load::Datasets()) names.emplace_back(kind.name);
  if (std::find(names.begin(), names.end(), dataset->name) != names.end()) return {};
  return BadValue("dataset-name", text, fmt::format("one of {}", fmt::join(names, ", ")));
}

Status StorePreset(const std::string& text, load::DatasetOptions* dataset) {
  for (const Preset& preset : kPresets) {
    if (preset.name != text) continue;
    dataset->input_len = preset.input;
    dataset->output_len = preset.output;
    dataset->output_len_given = true;
    return {};
  }
  return BadValue("preset", text, "prefill-heavy (768 in, 128 out) or decode-heavy (128, 768)");
}

Status StoreBackend(const std::string& text, LoadOptions* options) {
  if (std::find(std::begin(kBackends), std::end(kBackends), text) == std::end(kBackends)) {
    return BadValue("backend", text,
                    fmt::format("one of {} (all speak OpenAI's API)", fmt::join(kBackends, ", ")));
  }
  if (text.ends_with("-chat")) options->chat = true;
  return {};
}

Status StoreBurstiness(const std::string& text, load::ArrivalOptions* arrivals) {
  if (text == "inf") {
    arrivals->burstiness = std::numeric_limits<double>::infinity();
    return {};
  }
  const auto read = std::from_chars(text.data(), text.data() + text.size(), arrivals->burstiness);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() ||
      !(arrivals->burstiness > 0 && arrivals->burstiness <= 1e6)) {
    return BadValue("burstiness", text, "a number above 0, 1 for Poisson arrivals, or inf");
  }
  return {};
}

Status CheckPercentiles(const std::string& text) {
  for (const std::string& word : CutList(text)) {
    if (word == "50" || word == "90" || word == "95" || word == "99") continue;
    return BadValue("metric-percentiles", word, "50, 90, 95 or 99, which are always reported");
  }
  return {};
}

// The first line of a file, for keys.
Result<std::string> ReadKey(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string key(limits::kMaxApiKeyBytes + 2, '\0');
  file.read(key.data(), static_cast<std::streamsize>(key.size()));
  key.resize(static_cast<size_t>(file.gcount()));
  key = key.substr(0, key.find_first_of("\r\n"));
  if (key.empty() || key.size() > limits::kMaxApiKeyBytes) {
    return BadValue("api-key-file", path, "a file whose first line is the key");
  }
  return key;
}

// ---- Tables ----

std::vector<Flag> ServerFlags(LoadOptions* o) {
  return {
      Text("base-url", "URL", "of --host and --port", "the server, with or without /v1",
           &o->base_url),
      Text("host", "NAME", o->host, "the server's host", &o->host),
      CountFlag("port", "and port", &o->port, 1, 65'535),
      Text("uds", "PATH", "", "the server's Unix socket, instead of host and port",
           &o->target.unix_socket),
      Text("endpoint", "PATH", std::string(kCompletions),
           "or /v1/chat/completions; under any prefix", &o->endpoint),
      {"backend",
       "NAME",
       o->backend,
       "as other tools name it; those that end in -chat are chat",
       [o](const std::string& text) { return StoreBackend(text, o); },
       {"endpoint-type"}},
      {"apply-chat-template", "", "off", "send chat messages: --endpoint /v1/chat/completions",
       [o](const std::string& on) -> Status {
         o->chat = on == "true";
         return {};
       }},
      Text("model", "NAME", "the server's only one", "what requests name as their model",
           &o->body.model, {"served-model-name"}),
      Text("tokenizer", "PATH", "the server's /tokenize",
           "a tokenizer.json, a folder or a GGUF file, to make prompts of exact lengths",
           &o->tokenizer),
      Text("api-key", "KEY", "$OPENAI_API_KEY", "sent as a bearer token", &o->target.api_key),
      Text("api-key-file", "PATH", "", "the same, from the first line of a file", &o->api_key_file),
      {"header", "NAME=VALUE", "", "sent with every request; several, or the flag several times",
       [o](const std::string& text) { return StoreHeader(text, &o->target.headers); }},
      Switch("insecure", "off", "do not check the server's TLS certificate", &o->target.insecure),
      {"extra-body", "JSON", "", "members of every request; they go before those of other flags",
       [o](const std::string& text) { return StoreExtraBody(text, &o->body.extra); }},
      NumberFlag("ready-check-timeout-sec", "S", "wait so long for the server to be ready",
                 &o->ready_timeout_s, 0, kDay),
      NumberFlag("request-timeout-sec", "S", "a request without a whole answer by then failed",
                 &o->request_timeout_s, 0.001, kDay),
      NumberFlag("drain-timeout-sec", "S",
                 "end so long after the last request was due; 0: wait for all", &o->drain_timeout_s,
                 0, kDay),
      Switch("server-metrics", "on", "read the server's /metrics once a second",
             &o->server_metrics)};
}

std::vector<Flag> SamplingFlags(load::BodyOptions* body) {
  return {NumberFlag("temperature", "0 is greedy", &body->temperature, 0, 100),
          NumberFlag("top-p", "", &body->top_p, 0, 1),
          {"top-k", "N", "the server's", "",
           [body](const std::string& text) -> Status {
             if (text == "-1") {
               body->top_k = -1;
               return {};
             }
             VIVACE_ASSIGN(body->top_k, ParseCount(text, "top-k"));
             return {};
           }},
          NumberFlag("min-p", "", &body->min_p, 0, 1),
          NumberFlag("frequency-penalty", "", &body->frequency_penalty, -2, 2),
          NumberFlag("presence-penalty", "", &body->presence_penalty, -2, 2),
          NumberFlag("repetition-penalty", "", &body->repetition_penalty, 0.001, 100),
          Switch("ignore-eos", "off", "generate to the full length, so that runs are comparable",
                 &body->ignore_eos)};
}

std::vector<Flag> DatasetFlags(LoadOptions* o) {
  load::DatasetOptions* d = &o->dataset;
  std::vector<std::string_view> kinds;
  for (const load::DatasetKind& kind : load::Datasets()) kinds.push_back(kind.name);
  Flag input = CountFlag("random-input-len", "tokens of a prompt", &d->input_len, 1,
                         limits::kMaxPromptTokens);
  input.aliases = {"input-len", "prefix-repetition-suffix-len"};
  Flag output = CountFlag("random-output-len", "tokens of an answer, at most", &d->output_len, 1,
                          limits::kMaxPromptTokens);
  output.aliases = {"output-len", "sharegpt-output-len", "custom-output-len",
                    "prefix-repetition-output-len"};
  output.store = [d, store = output.store](const std::string& text) -> Status {
    d->output_len_given = true;
    return store(text);
  };
  Flag prefix = CountFlag("random-prefix-len", "tokens in front that prompts share", &d->prefix_len,
                          0, limits::kMaxPromptTokens);
  prefix.aliases = {"prefix-len", "prefix-repetition-prefix-len"};
  Flag prefixes = CountFlag("num-prefixes", "how many such prefixes there are", &d->num_prefixes, 1,
                            static_cast<int32_t>(limits::kMaxDatasetRequests));
  prefixes.aliases = {"prefix-repetition-num-prefixes"};
  return {
      {"dataset-name", "NAME", d->name, fmt::format("{}", fmt::join(kinds, ", ")),
       [d](const std::string& text) { return StoreDatasetName(text, d); }},
      Text("dataset-path", "PATH", "", "the file of a dataset that is one", &d->path),
      CountFlag("num-prompts", "requests of a run", &o->num_prompts, 1, limits::kMaxLoadRequests),
      {"preset", "NAME", "", "lengths: prefill-heavy (768/128) or decode-heavy (128/768)",
       [d](const std::string& text) { return StorePreset(text, d); }},
      std::move(input),
      std::move(output),
      NumberFlag("random-range-ratio", "R", "lengths differ by up to this share", &d->range_ratio,
                 0, 1),
      NumberFlag("input-len-std", "N", "deviation of the prompts' lengths", &d->input_len_std, 0,
                 limits::kMaxPromptTokens),
      NumberFlag("output-len-std", "N", "of the answers' lengths", &d->output_len_std, 0,
                 limits::kMaxPromptTokens),
      std::move(prefix),
      std::move(prefixes),
      CountFlag("turns", "of a conversation, each after the answer to the last", &d->turns, 1,
                1'000),
      Switch("token-ids", "off", "send prompts as token ids (completions only)", &d->token_ids)};
}

std::vector<Flag> ArrivalFlags(LoadOptions* o) {
  load::ArrivalOptions* a = &o->arrivals;
  return {{"burstiness", "X", "1", "shape of the arrivals: 1 Poisson, below burstier, inf constant",
           [a](const std::string& text) { return StoreBurstiness(text, a); }},
          {"seed", "N", "0", "of prompts and arrivals",
           [o](const std::string& text) -> Status {
             VIVACE_ASSIGN(const int64_t seed, ParseCount(text, "seed"));
             if (seed < 0 || seed > kMostSeed) {
               return BadValue("seed", text, fmt::format("a number from 0 to {}", kMostSeed));
             }
             o->dataset.seed = o->arrivals.seed = static_cast<uint64_t>(seed);
             return {};
           }},
          CountFlag("num-warmups", "requests before the run, which are not measured",
                    &o->num_warmups, 0, limits::kMaxLoadRequests),
          {"disable-tqdm",
           "",
           "off",
           "no progress",
           [o](const std::string& on) -> Status {
             o->progress = on != "true";
             return {};
           },
           {"disable-progress"}}};
}

}  // namespace

std::vector<Flag> LoadFlags(LoadOptions* options) {
  std::vector<Flag> flags;
  for (auto&& table : {ServerFlags(options), DatasetFlags(options), SamplingFlags(&options->body),
                       ArrivalFlags(options)}) {
    flags.insert(flags.end(), table.begin(), table.end());
  }
  return flags;
}

std::vector<Flag> ReportFlags(ReportOptions* o) {
  const auto ignored = [](const std::string&) -> Status { return {}; };
  return {
      Text("output-json", "PATH", "", "all runs and their requests as one JSON file", &o->json),
      Text("output-csv", "PATH", "", "a row for each run", &o->csv),
      Text("output-html", "PATH", "", "one file with plots, for a browser", &o->html),
      Switch("save-result", "off", "a JSON file for each run, named as vLLM's", &o->save_result),
      Switch("save-detailed", "off", "with each of its requests in it", &o->save_detailed),
      Text("result-dir", "PATH", "here", "where they go", &o->result_dir),
      Text("result-filename", "NAME", "", "what a single one is called", &o->result_filename),
      Text("label", "TEXT", "", "a name of this run, in its report and file name", &o->label),
      {"metadata", "KEY=VALUE", "", "goes into the report; several",
       [o](const std::string& text) { return StoreMetadata(text, &o->metadata); }},
      {"compat", "TOOL", "", "print the columns of another tool by its definitions, too",
       [o](const std::string& text) -> Status {
         VIVACE_ASSIGN([[maybe_unused]] const load::CompatTool* tool, load::FindCompatTool(text));
         o->compat = text;
         return {};
       }},
      {"percentile-metrics", "LIST", "all", "taken for vLLM's sake: all are always reported",
       ignored},
      {"metric-percentiles", "LIST", "50,90,95,99", "the same", CheckPercentiles}};
}

Status FinishLoadOptions(LoadOptions* o) {
  load::Target& target = o->target;
  const bool v6 = o->host.find(':') != std::string::npos && !o->host.starts_with('[');
  target.base_url = !o->base_url.empty() ? o->base_url
                                         : fmt::format("http://{}{}{}:{}", v6 ? "[" : "", o->host,
                                                       v6 ? "]" : "", o->port);
  target.endpoint = !o->endpoint.empty()
                        ? o->endpoint
                        : std::string(o->chat.value_or(false) ? kChat : kCompletions);
  if (o->chat == true && !target.chat()) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "endpoint",
                "chat was asked for, and --endpoint is '{}': give {}", target.endpoint, kChat);
  }
  if (!o->api_key_file.empty()) {
    VIVACE_ASSIGN(target.api_key, ReadKey(o->api_key_file));
  } else if (target.api_key.empty()) {
    target.api_key = OpenAiKeyOfEnvironment();
  }
  o->body.chat = o->dataset.chat = target.chat();
  o->dataset.num_prompts = static_cast<size_t>(o->num_prompts);
  if (!o->dataset.path.empty() && o->dataset.name == "random") {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "dataset-name",
                "--dataset-path is given and --dataset-name is random, which reads no file: name "
                "its kind, such as --dataset-name jsonl, sharegpt or trace");
  }
  VIVACE_ASSIGN([[maybe_unused]] const load::BodyWriter body, load::BodyWriter::Create(o->body));
  return load::CheckTarget(target);
}

Result<std::vector<double>> ParseRates(std::string_view text, const std::string& flag) {
  std::vector<double> rates;
  for (const std::string& word : CutList(text)) {
    double rate = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), rate);
    const bool number = read.ec == std::errc() && read.ptr == word.data() + word.size();
    if (word == "inf") {
      rate = 0;
    } else if (!number || !(rate > 0 && rate <= limits::kMaxLoadRate)) {
      return BadValue(
          flag, word,
          fmt::format("requests a second above 0, at most {:g}, or inf", limits::kMaxLoadRate));
    }
    if (rates.size() == limits::kMaxBenchCases) {
      return BadValue(flag, std::string(text),
                      fmt::format("at most {} rates", limits::kMaxBenchCases));
    }
    rates.push_back(rate);
  }
  if (rates.empty()) return BadValue(flag, std::string(text), "rates such as 1,2,4 or inf");
  return rates;
}

}  // namespace vivace::cli
