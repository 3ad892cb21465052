#include "server/service/request_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace vivace::server {
namespace {

constexpr std::array<std::string_view, 6> kKindNames = {"started",   "prompt_chunk", "first_token",
                                                        "preempted", "resumed",      "finished"};
constexpr std::array<std::string_view, 3> kBoundNames = {"decode", "prompt", "kv_room"};
constexpr std::array<std::string_view, 4> kCauseNames = {"none", "max_num_seqs", "step_budget",
                                                         "kv_room"};

template <typename Enum, size_t N>
std::string_view Name(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<size_t>(value)];
}

double Ms(int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNanosPerMs); }

// The prompt that the answer waited for.
const PromptRecord* Slowest(const RequestRecord& record) {
  const auto later = [](const PromptRecord& a, const PromptRecord& b) {
    const auto end = [](const PromptRecord& p) {
      return std::pair(p.finished_ns == 0, p.finished_ns != 0 ? p.finished_ns : -p.scheduled_ns);
    };
    return end(a) < end(b);
  };
  const auto found = std::max_element(record.prompts.begin(), record.prompts.end(), later);
  return found == record.prompts.end() ? nullptr : &*found;
}

int64_t Sum(const RequestRecord& record, int64_t PromptRecord::*figure) {
  int64_t sum = 0;
  for (const PromptRecord& prompt : record.prompts) sum += prompt.*figure;
  return sum;
}

// Thousandths are enough, and never an exponent.
void WriteMs(std::string_view name, double ms, JsonWriter* w) {
  w->Key(name);
  if (ms < 0) {
    w->Null();
  } else {
    w->Literal(fmt::format("{:.3f}", ms));
  }
}

std::string_view Why(WaitCause cause) {
  switch (cause) {
    case WaitCause::kNone:
      return "for the step under way to end";
    case WaitCause::kSequences:
      return "because as many sequences ran as --max-num-seqs allows";
    case WaitCause::kTokens:
      return "while prompts before it took the steps' tokens and time (--max-num-batched-tokens, "
             "--max-itl)";
    case WaitCause::kKvRoom:
      return "because the KV cache had no room (--kv-cache-memory-bytes)";
  }
  return "in the queue";
}

std::string_view WhyItWaited(const PromptRecord& prompt) {
  for (const TimelineEvent& event : prompt.events) {
    if (event.kind == TimelineKind::kStarted) return Why(event.cause);
  }
  return "in the queue";
}

// For people.
std::string What(const TimelineEvent& event) {
  switch (event.kind) {
    case TimelineKind::kStarted:
      return fmt::format("started, having waited {}; {} tokens were cached", Why(event.cause),
                         event.tokens);
    case TimelineKind::kPrompt:
      return fmt::format(
          "{} prompt tokens from {} on, in {:.1f} ms beside {} running answers and {} tokens of "
          "{} other prompts",
          event.tokens, event.position, Ms(event.step_ns), event.step_answers,
          event.step_prompt_tokens - event.tokens, event.step_prompts - 1);
    case TimelineKind::kFirstToken:
      return "first token";
    case TimelineKind::kPreempted:
      return "set back, because the KV cache had no room";
    case TimelineKind::kResumed:
      return fmt::format("goes on; {} tokens were still cached", event.tokens);
    case TimelineKind::kFinished:
      return "finished";
  }
  return "";
}

std::string PrefillSentence(const PromptRecord& prompt, double ms) {
  int64_t chunks = prompt.dropped_events;
  int64_t shared = 0;
  for (const TimelineEvent& event : prompt.events) {
    if (event.kind != TimelineKind::kPrompt) continue;
    ++chunks;
    shared += event.step_answers > 0 || event.step_prompts > 1 ? 1 : 0;
  }
  return fmt::format(
      "computing its prompt took most of the time: {:.1f} ms for {} tokens ({} more were cached) "
      "in "
      "{} chunk{}, {} of them in steps shared with others",
      ms, prompt.prompt_tokens - prompt.cached_tokens, prompt.cached_tokens, chunks,
      chunks == 1 ? "" : "s", shared);
}

std::string DecodeSentence(const PromptRecord& prompt, double ms) {
  const StepSums& sums = prompt.decodes;
  const auto steps = static_cast<double>(std::max<int64_t>(sums.steps, 1));
  return fmt::format(
      "decoding took most of the time: {:.1f} ms for {} steps of {:.2f} ms, with {:.1f} running "
      "answers a step; prompts of others shared {:.0f} % of the steps and {:.0f} % of their time",
      ms, sums.steps, Ms(sums.ns) / steps, static_cast<double>(sums.answers) / steps,
      100.0 * static_cast<double>(sums.prompt_steps) / steps,
      100.0 * static_cast<double>(sums.prompt_ns) /
          static_cast<double>(std::max<int64_t>(sums.ns, 1)));
}

void WriteEvent(const RequestRecord& record, size_t prompt, const TimelineEvent& event,
                JsonWriter* w) {
  w->BeginObject();
  WriteMs("at_ms", std::max(0.0, Ms(event.at_ns - record.arrived_ns)), w);
  w->KeyString("event", Name(kKindNames, event.kind));
  w->KeyString("what", What(event));
  w->KeyInt("prompt", static_cast<int64_t>(prompt));
  w->KeyInt("step", static_cast<int64_t>(event.step));
  switch (event.kind) {
    case TimelineKind::kStarted:
    case TimelineKind::kResumed:
      w->KeyInt("choice", event.choice);
      w->KeyInt("cached_tokens", event.tokens);
      w->KeyString("waited_for", Name(kCauseNames, event.cause));
      break;
    case TimelineKind::kPrompt:
      w->KeyInt("choice", event.choice);
      w->KeyInt("tokens", event.tokens);
      w->KeyInt("position", event.position);
      w->Key("shared_with");
      w->BeginObject();
      w->KeyInt("answers", event.step_answers);
      w->KeyInt("prompts", event.step_prompts - 1);
      w->KeyInt("prompt_tokens", event.step_prompt_tokens - event.tokens);
      w->EndObject();
      WriteMs("step_ms", Ms(event.step_ns), w);
      w->KeyString("bound_by", Name(kBoundNames, event.bound));
      break;
    case TimelineKind::kFirstToken:
    case TimelineKind::kPreempted:
      w->KeyInt("choice", event.choice);
      break;
    case TimelineKind::kFinished:
      break;
  }
  w->EndObject();
}

void WriteSums(const StepSums& sums, JsonWriter* w) {
  w->BeginObject();
  w->KeyInt("steps", sums.steps);
  WriteMs("ms", Ms(sums.ns), w);
  w->KeyInt("answers", sums.answers);
  w->KeyInt("steps_with_prompts", sums.prompt_steps);
  WriteMs("ms_with_prompts", Ms(sums.prompt_ns), w);
  w->KeyInt("steps_short_of_kv_room", sums.kv_bound_steps);
  w->EndObject();
}

void WriteHead(const RequestRecord& record, int64_t now_ns, JsonWriter* w) {
  const RequestParts parts = PartsOf(record, now_ns);
  w->KeyString("id", record.id);
  w->KeyString("path", record.path);
  w->KeyInt("created", record.created_s);
  w->KeyString("state", record.ended_ns != 0                              ? "ended"
                        : record.prompts.empty() && record.grammar_ns > 0 ? "grammar"
                        : Sum(record, &PromptRecord::scheduled_ns) == 0   ? "waiting"
                        : Sum(record, &PromptRecord::first_token_ns) == 0 ? "prefill"
                                                                          : "decode");
  w->Key("status");
  if (record.status == 0) {
    w->Null();
  } else {
    w->Int(record.status);
  }
  w->Key("outcome");
  if (record.outcome.empty()) {
    w->Null();
  } else {
    w->String(record.outcome);
  }
  w->KeyInt("prompts", std::ssize(record.prompts) + record.other_prompts);
  w->KeyInt("prompt_tokens",
            Sum(record, &PromptRecord::prompt_tokens) + record.other_prompt_tokens);
  w->KeyInt("cached_tokens",
            Sum(record, &PromptRecord::cached_tokens) + record.other_cached_tokens);
  w->KeyInt("output_tokens", record.output_tokens);
  w->KeyInt("choices", record.choices);
  w->KeyInt("preemptions", Sum(record, &PromptRecord::preemptions));
  WriteMs("elapsed_ms", parts.total_ms, w);
  w->Key("times");
  w->BeginObject();
  WriteMs("prepare_ms", parts.prepare_ms, w);
  WriteMs("grammar_ms", parts.grammar_ms, w);
  WriteMs("queue_ms", parts.queue_ms, w);
  WriteMs("prefill_ms", parts.prefill_ms, w);
  WriteMs("decode_ms", parts.decode_ms, w);
  WriteMs("total_ms", parts.total_ms, w);
  w->EndObject();
}

}  // namespace

PromptRecord RecordOf(const ActiveRequest& request) {
  const auto read = [](const std::atomic<int64_t>& at) {
    return at.load(std::memory_order_relaxed);
  };
  PromptRecord record;
  record.arrived_ns = read(request.times.arrived_ns);
  record.scheduled_ns = read(request.times.scheduled_ns);
  record.first_token_ns = read(request.times.first_token_ns);
  record.finished_ns = read(request.times.finished_ns);
  record.prompt_tokens = static_cast<int64_t>(request.request.prompt.size());
  record.cached_tokens = request.cached_tokens.load(std::memory_order_relaxed);
  record.preemptions = request.preemptions.load(std::memory_order_relaxed);
  const auto events = request.timeline.events();
  record.events.assign(events.begin(), events.end());
  record.dropped_events = request.timeline.dropped();
  record.decodes = request.timeline.decodes();
  return record;
}

void AddPrompt(const ActiveRequest& request, size_t left, RequestRecord* record) {
  const size_t room = kMaxRecordedPrompts - record->prompts.size();
  if (record->prompts.size() < kMaxRecordedPrompts / 2 || left <= room) {
    record->prompts.push_back(RecordOf(request));
    return;
  }
  record->other_prompts += 1;
  record->other_prompt_tokens += static_cast<int64_t>(request.request.prompt.size());
  record->other_cached_tokens += request.cached_tokens.load(std::memory_order_relaxed);
}

RequestParts PartsOf(const RequestRecord& record, int64_t now_ns) {
  RequestParts parts;
  const int64_t end = record.ended_ns != 0 ? record.ended_ns : now_ns;
  parts.prepare_ms = Ms(record.prepared_ns - record.arrived_ns - record.grammar_ns);
  if (record.grammar_ns > 0) parts.grammar_ms = Ms(record.grammar_ns);
  parts.total_ms = Ms(end - record.arrived_ns);
  const PromptRecord* prompt = Slowest(record);
  if (prompt == nullptr || prompt->arrived_ns == 0) return parts;
  const auto until = [end](int64_t at) { return at != 0 ? std::min(at, end) : end; };
  parts.queue_ms = Ms(until(prompt->scheduled_ns) - prompt->arrived_ns);
  if (prompt->scheduled_ns == 0) return parts;
  parts.prefill_ms = Ms(until(prompt->first_token_ns) - prompt->scheduled_ns);
  if (prompt->first_token_ns == 0) return parts;
  parts.decode_ms = Ms(end - prompt->first_token_ns);
  return parts;
}

std::string ServerTiming(const RequestParts& parts) {
  std::string value;
  const std::pair<std::string_view, double> named[] = {
      {"prepare", parts.prepare_ms}, {"grammar", parts.grammar_ms}, {"queue", parts.queue_ms},
      {"prefill", parts.prefill_ms}, {"decode", parts.decode_ms},   {"total", parts.total_ms}};
  for (const auto& [name, ms] : named) {
    if (ms < 0) continue;
    if (!value.empty()) value += ", ";
    value += fmt::format("{};dur={:.3f}", name, ms);
  }
  return value;
}

std::string WhatBoundIt(const RequestRecord& record, int64_t now_ns) {
  const PromptRecord* prompt = Slowest(record);
  const RequestParts parts = PartsOf(record, now_ns);
  if (prompt == nullptr && parts.grammar_ms > 0) {
    return fmt::format("it has waited {:.1f} ms for its grammar to be compiled", parts.grammar_ms);
  }
  if (prompt == nullptr) return "it has not reached the engine";
  const double most = std::max(
      {parts.prepare_ms, parts.grammar_ms, parts.queue_ms, parts.prefill_ms, parts.decode_ms});
  std::string sentence;
  if (most == parts.grammar_ms) {
    sentence = fmt::format(
        "waiting for its grammar to be compiled took most of the time: {:.1f} ms; the next request "
        "with it has none of that",
        parts.grammar_ms);
  } else if (most == parts.queue_ms) {
    sentence = fmt::format("waiting took most of the time: {:.1f} ms {}", parts.queue_ms,
                           WhyItWaited(*prompt));
  } else if (most == parts.prefill_ms) {
    sentence = PrefillSentence(*prompt, parts.prefill_ms);
  } else if (most == parts.decode_ms) {
    sentence = DecodeSentence(*prompt, parts.decode_ms);
  } else {
    sentence = fmt::format("reading, rendering and tokenising it took most of the time: {:.1f} ms",
                           parts.prepare_ms);
  }
  if (prompt->preemptions > 0) {
    sentence += fmt::format("; it was set back {} time{} for lack of KV cache", prompt->preemptions,
                            prompt->preemptions == 1 ? "" : "s");
  }
  return sentence;
}

void WriteRequestRow(const RequestRecord& record, int64_t now_ns, JsonWriter* w) {
  w->BeginObject();
  WriteHead(record, now_ns, w);
  w->EndObject();
}

void WriteTimeline(const RequestRecord& record, int64_t now_ns, JsonWriter* w) {
  w->BeginObject();
  w->KeyString("object", "request.timeline");
  WriteHead(record, now_ns, w);
  w->KeyString("summary", WhatBoundIt(record, now_ns));
  w->Key("events");
  w->BeginArray();
  for (size_t i = 0; i < record.prompts.size(); ++i) {
    for (const TimelineEvent& event : record.prompts[i].events) WriteEvent(record, i, event, w);
  }
  w->EndArray();
  w->KeyInt("events_left_out", Sum(record, &PromptRecord::dropped_events));
  w->KeyInt("prompts_left_out", record.other_prompts);
  w->Key("decode");
  w->BeginArray();
  for (const PromptRecord& prompt : record.prompts) WriteSums(prompt.decodes, w);
  w->EndArray();
  w->EndObject();
}

}  // namespace vivace::server
