// What an answer looks like to its client, whatever the protocol: a Generation says what happens,
// a writer turns it into bytes. Writers know shapes, not requests: they are given what to say and
// append it to a buffer.
//
// One writer per answer; the loop thread uses it. A stream is
//   Begin, for each choice Open, any number of Delta, Close, and at last End;
// Ping may stand anywhere between these, Failure may take the place of everything after Begin. A
// whole answer is one call of Whole.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "server/error_response.h"
#include "server/openai/logprobs.h"
#include "server/openai/output_piece.h"
#include "server/params/request_params.h"

namespace vivace::server {

struct Usage {
  int64_t prompt_tokens = 0;  // each prompt once, whatever n
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t reasoning_tokens = 0;  // of the completion's
};

// What ended a choice by itself: nothing of the request's own, a stop string, a stop id.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

// How a choice ended.
struct ChoiceEnd {
  bool by_length = false;  // else by itself
  StopReason stop_reason = {};
  bool by_deadline = false;
  bool steered = false;  // the way to its end was imposed, so that it is complete
};

// What a choice says: all of it, or what is new.
struct ChoicePart {
  int32_t index = 0;
  bool first = false;  // no delta of this choice came before
  std::span<const OutputPiece> pieces;
  std::span<const LogprobEntry> logprobs;
  std::span<const TokenId> token_ids;
  std::span<const TokenId> prompt_token_ids;        // of its prompt
  const PromptLogprobs* prompt_logprobs = nullptr;  // the same; whole answers, where wanted
  const ChoiceEnd* end = nullptr;                   // Close and whole answers
};

// What an answer calls itself.
struct AnswerIdentity {
  std::string id;
  int64_t created_s = 0;
  std::string model;
  std::string request_id = {};  // of the header x-request-id
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // Server-sent events, each with its blank line; the first of them when there is something to say.
  virtual void Begin(const Usage& usage, std::string* out) = 0;
  // A choice's first token has come, or it has ended without one; says nothing of its output.
  virtual void Open(const ChoicePart& part, const Usage& usage, std::string* out) = 0;
  virtual void Delta(const ChoicePart& part, const Usage& usage, std::string* out) = 0;
  // Its end; everything it said has gone out.
  virtual void Close(const ChoicePart& part, const Usage& usage, std::string* out) = 0;
  // All choices are closed.
  virtual void End(const Usage& usage, std::string* out) = 0;
  // Says nothing, so that nobody on the way takes the connection for dead. After Begin.
  virtual void Ping(std::string* out) { *out += ": ping\n\n"; }
  // The stream's last words after an error.
  virtual void Failure(const Error& error, std::string* out) = 0;

  // The whole answer. The parts are in the order of their indexes.
  virtual std::string Whole(std::span<const ChoicePart> parts, const Usage& usage) = 0;

  // The shape of an error that comes instead of an answer.
  virtual ErrorShape error_shape() const { return ErrorShape::kOpenAi; }
};

// The writer of the request's endpoint. `params` and `tokenizer` must outlive it.
std::unique_ptr<AnswerWriter> MakeAnswerWriter(const RequestParams& params,
                                               const Tokenizer& tokenizer, AnswerIdentity identity);

}  // namespace vivace::server
