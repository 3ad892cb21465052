// What an output must be, where a request forces calls, or their arguments or its content must obey
// a schema: xgrammar's structural tag (0.2.9, docs/structural_tag), whose json the grammar compiler
// takes as GrammarSpec::Kind::kStructural. Pure; any thread. Cost: a copy of the tools' schemas.
//
// Marks that are control tokens are asked for as tokens, others as text.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "text/dialect/dialect.h"
#include "text/dialect/tool_set.h"

namespace vivace {

struct OutputRules {
  enum class Calls : uint8_t {
    kNone,      // content only
    kAuto,      // text, and calls once their opening mark is written
    kRequired,  // calls only, at least one
  };

  const Dialect* dialect = nullptr;
  const dialect::ToolSet* tools = nullptr;  // not null unless calls is kNone
  Calls calls = Calls::kNone;
  std::string_view only;  // kRequired: one call of this tool; empty: any
  bool parallel = true;   // false: at most one call
  bool schemas = true;    // arguments obey their schemas; false: they are any objects
  ReasoningStart reasoning = ReasoningStart::kNone;
  // What content must be, in xgrammar's terms ({"type": "json_schema", …}); null: anything.
  const boost::json::value* content = nullptr;
};

struct OutputGrammar {
  std::string structural_tag;
  TokenId begin_after = -1;  // it holds only behind this token
};

OutputGrammar MakeOutputGrammar(const OutputRules& rules);

// Whether text that is free until a call opens can be told from a call by its mark. Where it can't
// (the whole answer is the call), a grammar for kAuto would take answers in JSON for calls.
bool CallsHaveMarks(const Dialect& dialect);

}  // namespace vivace
