// What a request asks for, as the text that xgrammar compiles: everything that can be checked
// without a vocabulary is checked here, and every schema and pattern is turned into a grammar by
// this folder.
//
// Cost: linear in the text. Pure functions, any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "grammar/grammar.h"

namespace vivace::grammar {

struct Lowered {
  enum class Kind : uint8_t {
    kEbnf,
    kStructural,  // xgrammar's structural tag
  };
  Kind kind = Kind::kEbnf;
  std::string text;
  bool names_tokens = false;  // some of its formats are tokens by their ids, control tokens too
  bool of_client = false;     // some of its rules are as the client wrote them
};

// Errors are kInvalidArgument with the spec's field.
Result<Lowered> Lower(const GrammarSpec& spec);

// What tells one spec from another, for a cache.
std::string KeyOf(const GrammarSpec& spec);

}  // namespace vivace::grammar
