// Bodies of requests: OpenAI's completions and chat shapes, from what was planned.
//
// What all requests share is written once, so that a body costs the copy of its prompt. A member of
// `extra` takes the place of ours, so no member ever stands twice. Immutable after Create.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "load/workload.h"

namespace vivace::load {

struct BodyOptions {
  bool chat = false;
  std::string model = {};
  // None: the server's default.
  std::optional<double> temperature = {}, top_p = {}, min_p = {}, frequency_penalty = {},
                        presence_penalty = {}, repetition_penalty = {};
  std::optional<int64_t> top_k = {};
  bool ignore_eos = false;
  bool usage = true;               // stream_options.include_usage
  bool continuous_usage = true;    // and in every event
  boost::json::object extra = {};  // --extra-body
};

// Turns of a conversation that were sent and answered.
struct History {
  std::string text;  // completions
  Messages messages;

  void Add(const PlannedRequest& turn, std::string_view answer);
};

class BodyWriter {
 public:
  // Refuses extra members that would change what is measured (prompt, messages, stream, n).
  static Result<BodyWriter> Create(const BodyOptions& options);

  // Whether requests of this kind of prompt can be sent to the endpoint; ids only to completions.
  Status Check(const PlannedRequest& request) const;
  // `before` may be null. Only for what Check let pass.
  std::string Write(const PlannedRequest& request, const History* before) const;
  // Whether max_tokens is ours to say.
  bool sets_length() const { return sets_length_; }
  // An answer with more events than that is a stream that does not end.
  int64_t MostEvents(const PlannedRequest& request) const;

 private:
  BodyWriter() = default;
  void WritePrompt(const PlannedRequest& request, const History* before, std::string* body) const;
  void WriteMessages(const PlannedRequest& request, const History* before, std::string* body) const;

  bool chat_ = false;
  bool sets_length_ = true;
  int64_t extra_length_ = 0;  // what --extra-body says in its place; 0: nothing that is a number
  std::string members_;       // ,"model":"m","stream":true,...}
};

// A request of about the same size that shares no prefix with it: for warm-ups, which must not fill
// the prefix cache with what is measured. `number` tells several apart.
PlannedRequest Stranger(const PlannedRequest& request, int number);

}  // namespace vivace::load
