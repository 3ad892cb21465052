// What is kept of a request for /v1/requests and its timeline: figures and events, nothing of what
// was asked or answered. Plain data and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/timeline.h"
#include "server/json/json_writer.h"

namespace vivace::server {

// One prompt's way through the engine. Times: steady clock, 0 until it happened.
struct PromptRecord {
  int64_t arrived_ns = 0;
  int64_t scheduled_ns = 0;
  int64_t first_token_ns = 0;
  int64_t finished_ns = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t preemptions = 0;
  std::vector<TimelineEvent> events;
  int64_t dropped_events = 0;
  StepSums decodes;
};

PromptRecord RecordOf(const ActiveRequest& request);

// Of a request with more prompts than this, the first and the last ones are told; the others are
// counted.
inline constexpr size_t kMaxRecordedPrompts = 64;

struct RequestRecord {
  std::string id;
  std::string path;
  uint64_t owner = 0;  // who asked (access_control.h); never shown
  int64_t created_s = 0;
  int64_t arrived_ns = 0;   // its header
  int64_t prepared_ns = 0;  // its tokens
  int64_t grammar_ns = 0;   // between these, how long it waited for its grammar's compilation
  int64_t ended_ns = 0;     // 0: under way
  int status = 0;           // 0: under way
  std::string outcome;      // "stop", "length", "deadline", "error", "gone"
  int64_t output_tokens = 0;
  int32_t choices = 1;
  std::vector<PromptRecord> prompts;
  // Of prompts that are not among those.
  int64_t other_prompts = 0;
  int64_t other_prompt_tokens = 0;
  int64_t other_cached_tokens = 0;
};

// Adds a prompt's record, if there is room for it. `left`: so many come yet, this one counted.
void AddPrompt(const ActiveRequest& request, size_t left, RequestRecord* record);

// Milliseconds of each part of a request's life, of its slowest prompt; -1: not known (yet).
struct RequestParts {
  double prepare_ms = -1;  // from its header to its tokens, but for
  double grammar_ms = -1;  // the wait for its grammar, if there was one
  double queue_ms = -1;
  double prefill_ms = -1;
  double decode_ms = -1;
  double total_ms = -1;
};
// `now_ns` stands for the end of what is under way.
RequestParts PartsOf(const RequestRecord& record, int64_t now_ns);

// The value of a Server-Timing header (W3C): the parts that are known.
std::string ServerTiming(const RequestParts& parts);

// One sentence: what most of its time went to, and why.
std::string WhatBoundIt(const RequestRecord& record, int64_t now_ns);

// A row of the list, and the whole timeline.
void WriteRequestRow(const RequestRecord& record, int64_t now_ns, JsonWriter* w);
void WriteTimeline(const RequestRecord& record, int64_t now_ns, JsonWriter* w);

}  // namespace vivace::server
