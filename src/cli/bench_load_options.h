// The flags that `bench serve` and `bench max-rate` share: which server, what is sent, how, and
// what becomes of the figures. Names and defaults are those of `vllm bench serve` wherever it has
// one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "load/arrivals.h"
#include "load/client/request_body.h"
#include "load/client/target.h"
#include "load/datasets/dataset.h"
#include "load/figures.h"

namespace vivace::cli {

struct ReportOptions {
  bool save_result = false, save_detailed = false;
  std::string result_dir, result_filename;
  std::string json, csv, html;  // paths; empty: none
  std::string compat;           // a tool of load/compat.h
  std::string label;
  std::map<std::string, std::string> metadata;
};

struct LoadOptions {
  load::Target target;
  std::string host = "127.0.0.1";
  int32_t port = 8000;
  std::string base_url;  // empty: of host and port
  std::string backend = "openai";
  std::optional<bool> chat;  // --apply-chat-template; none: as the endpoint says
  std::string endpoint;      // empty: by `chat`
  std::string api_key_file;
  load::BodyOptions body;
  load::DatasetOptions dataset;
  std::string tokenizer;  // a path; empty: the server's own
  load::ArrivalOptions arrivals;
  int32_t num_warmups = 0;
  double ready_timeout_s = 0, request_timeout_s = 6 * 3'600, drain_timeout_s = 0;
  bool server_metrics = true;
  bool progress = true;
  ReportOptions report;
};

// They store into `options`, which outlives them.
std::vector<Flag> LoadFlags(LoadOptions* options);
std::vector<Flag> ReportFlags(ReportOptions* options);

// Flags that take several words, for RepeatFlags.
inline constexpr std::string_view kLoadLists[] = {
    "goodput", "slo", "metadata", "header", "max-concurrency", "request-rate"};

// What flags say together: address, endpoint, key, ramp. After ParseFlags.
Status FinishLoadOptions(LoadOptions* options);

// "inf" and numbers, "1,2,inf": requests a second; 0 for inf.
Result<std::vector<double>> ParseRates(std::string_view text, const std::string& flag);

}  // namespace vivace::cli
