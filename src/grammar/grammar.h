// Constrained decoding behind one interface: a description of what an output may be becomes a
// compiled grammar, and that a constraint for each choice. xgrammar stands behind it and is seen by
// no other folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "sample/token_constraint.h"
#include "text/tokenizer.h"

namespace vivace {

// What the output must be.
struct GrammarSpec {
  enum class Kind : uint8_t {
    kJsonObject,  // any JSON object
    kJsonSchema,  // `text`: the schema
    kRegex,       // `text`: the pattern, matched whole
    kChoice,      // one of `choices`
    kEbnf,        // `text`: GBNF, root rule "root"
    kStructural,  // `text`: xgrammar's structural tag, JSON: free text with constrained stretches
  };
  Kind kind = Kind::kJsonObject;
  std::string text;
  std::vector<std::string> choices;
  std::string field = "response_format";  // the request's member, for errors
};

// Immutable, shared by requests and threads.
class CompiledGrammar {
 public:
  virtual ~CompiledGrammar() = default;

  // The shortest output it admits, in tokens, the end-of-text token not counted.
  virtual int32_t shortest_tokens() const = 0;

  // What a constraint may come to at most, in bytes: it grows with its output.
  virtual size_t output_bytes() const = 0;

  struct ConstraintOptions {
    // The grammar holds only after this token (the end of a reasoning block); -1: from the start.
    TokenId begin_after = -1;
    bool jump_forward = true;  // off where log-probabilities are wanted
  };
  virtual std::unique_ptr<TokenConstraint> NewConstraint(
      const ConstraintOptions& options) const = 0;
};

class GrammarCompiler {
 public:
  virtual ~GrammarCompiler() = default;

  // Makes in the background what the first grammar needs beside itself: returns at once. A Compile
  // that comes meanwhile waits for it. Once at most.
  virtual void Prepare() = 0;

  // Any thread but the engine's and the loop's; waits while the grammar is compiled, which may
  // compute for limits::kMaxGrammarCompileMs (wall time: a few times that on a busy machine).
  // kInvalidArgument with the spec's field for what is malformed, unbounded or asks for something
  // that cannot be enforced (the keyword is named), or is "grammar_too_complex"; messages call the
  // spec "it" ("it takes ..."), for the caller to name. These verdicts and
  // compiled grammars are kept and found again. Not kept is what another time may go otherwise:
  // kInvalidArgument "grammar_too_costly" (over the limit of time or memory), kResourceExhausted
  // "grammar_busy" and "grammar_queue_full" (the machine had no room for it).
  virtual Result<std::shared_ptr<const CompiledGrammar>> Compile(const GrammarSpec& spec) = 0;

  // Any thread, at once: what Compile kept. kUnavailable kGrammarNotReady: nothing was; Compile.
  virtual Result<std::shared_ptr<const CompiledGrammar>> Find(const GrammarSpec& spec) = 0;
};

inline constexpr std::string_view kGrammarNotReady = "grammar_not_ready";

// What Compile refuses without looking at a vocabulary, by the same error. Pure; linear.
Status CheckGrammar(const GrammarSpec& spec);

// The same grammars to those who may not wait: its Compile is `compiler`'s Find.
std::shared_ptr<GrammarCompiler> WithoutWaiting(std::shared_ptr<GrammarCompiler> compiler);

struct GrammarCompilerConfig {
  std::vector<TokenId> eos_ids;  // what ends an output; none: the tokenizer's
  // The program that compiles, with its arguments (`vivace grammar-worker`); none: this process
  // does, and what a grammar takes is not bounded.
  std::vector<std::string> worker;
  int32_t max_compile_ms = limits::kMaxGrammarCompileMs;
};

// `vocab_size`: how many logits the model has. What it needs of the vocabulary is copied, and the
// worker is started, by Prepare or when the first grammar is compiled.
std::unique_ptr<GrammarCompiler> NewGrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer,
                                                    int32_t vocab_size,
                                                    GrammarCompilerConfig config);

}  // namespace vivace
