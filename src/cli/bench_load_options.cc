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
#include "cli/traffic_flags.h"
#include "cli/value_flags.h"
#include "load/compat.h"
#include "server/json/strict_json.h"

namespace vivace::cli {
namespace {

constexpr std::string_view kCompletions = "/v1/completions", kChat = "/v1/chat/completions";
constexpr double kDay = limits::kMaxLoadSeconds;
constexpr int32_t kMostSeed = std::numeric_limits<int32_t>::max();

// What other tools call a protocol: only whether it is chat is of interest.
constexpr std::string_view kBackends[] = {"openai",   "vllm", "vivace",      "llama.cpp", "sglang",
                                          "lmdeploy", "tgi",  "openai-chat", "vllm-chat"};

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
      !(arrivals->burstiness >= load::kLeastBurstiness && arrivals->burstiness <= 1e6)) {
    return BadValue("burstiness", text,
                    fmt::format("a number of at least {:g}, 1 for Poisson arrivals, or inf",
                                load::kLeastBurstiness));
  }
  return {};
}

Status CheckMetrics(const std::string& text) {
  constexpr std::string_view kMetrics[] = {"ttft", "tpot", "itl", "e2el"};
  for (const std::string& word : CutList(text)) {
    if (std::find(std::begin(kMetrics), std::end(kMetrics), word) != std::end(kMetrics)) continue;
    return BadValue("percentile-metrics", word,
                    "ttft, tpot, itl or e2el, which are always reported");
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
      TextFlag("base-url", "URL", "of --host and --port", "the server, with or without /v1",
               &o->base_url),
      TextFlag("host", "NAME", o->host, "the server's host", &o->host),
      CountFlag("port", "and port", &o->port, 1, 65'535),
      TextFlag("uds", "PATH", "", "the server's Unix socket, instead of host and port",
               &o->target.unix_socket),
      TextFlag("endpoint", "PATH", std::string(kCompletions),
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
      TextFlag("model", "NAME", "the server's only one", "what requests name as their model",
               &o->body.model, {"served-model-name"}),
      TextFlag("tokenizer", "PATH", "the server's /tokenize",
               "a tokenizer.json, a folder or a GGUF file, to make prompts of exact lengths",
               &o->tokenizer),
      TextFlag("api-key", "KEY", "$OPENAI_API_KEY", "sent as a bearer token", &o->target.api_key),
      TextFlag("api-key-file", "PATH", "", "the same, from the first line of a file",
               &o->api_key_file),
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

std::vector<Flag> WorkloadFlags(load::DatasetOptions* dataset) {
  std::vector<Flag> flags = DatasetFlags(dataset);
  flags.push_back(PromptsFlag(&dataset->num_prompts, fmt::to_string(dataset->num_prompts),
                              "requests of a run"));
  flags.push_back(Switch("token-ids", "off", "send prompts as token ids (completions only)",
                         &dataset->token_ids));
  return flags;
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
  for (auto&& table : {ServerFlags(options), WorkloadFlags(&options->dataset),
                       SamplingFlags(&options->body), ArrivalFlags(options)}) {
    flags.insert(flags.end(), table.begin(), table.end());
  }
  return flags;
}

std::vector<Flag> ReportFlags(ReportOptions* o) {
  return {
      TextFlag("output-json", "PATH", "", "all runs and their requests as one JSON file", &o->json),
      TextFlag("output-csv", "PATH", "", "a row for each run", &o->csv),
      TextFlag("output-html", "PATH", "", "one file with plots, for a browser", &o->html),
      Switch("save-result", "off", "a JSON file for each run, named as vLLM's", &o->save_result),
      Switch("save-detailed", "off", "with each of its requests in it", &o->save_detailed),
      TextFlag("result-dir", "PATH", "here", "where they go", &o->result_dir),
      TextFlag("result-filename", "NAME", "", "what the first is called; further ones get -2, -3",
               &o->result_filename),
      TextFlag("label", "TEXT", "",
               "a name of this run, in its report and file name; lists keep theirs", &o->label),
      {"metadata", "KEY=VALUE", "", "goes into the report; several",
       [o](const std::string& text) { return StoreMetadata(text, &o->metadata); }},
      {"compat", "TOOL", "", "print the columns of another tool by its definitions, too",
       [o](const std::string& text) -> Status {
         VIVACE_ASSIGN([[maybe_unused]] const load::CompatTool* tool, load::FindCompatTool(text));
         o->compat = text;
         return {};
       }},
      {"percentile-metrics", "LIST", "all", "taken for vLLM's sake: all are always reported",
       CheckMetrics},
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
  VIVACE_RETURN_IF_ERROR(load::CheckDataset(o->dataset));
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
    } else if (!number || !(rate >= load::kLeastArrivalRate && rate <= limits::kMaxLoadRate)) {
      return BadValue(flag, word,
                      fmt::format("requests a second, from {:g} to {:g}, or inf",
                                  load::kLeastArrivalRate, limits::kMaxLoadRate));
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
