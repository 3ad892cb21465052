#include "grammar/compiled.h"

#include <exception>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "grammar/constraint.h"
#include "grammar/counted.h"
#include "grammar/token_spelling.h"
#include "grammar/tracker.h"

namespace vivace::grammar {
namespace {

// xgrammar's parser keeps a byte for each state of each rule it enters, for each output.
constexpr int64_t kMostParserBytes = 64 << 20;

int64_t ParserBytes(const xgrammar::Grammar& grammar) {
  return int64_t{grammar->NumRules()} * grammar->complete_fsm.NumStates();
}

}  // namespace

Result<std::shared_ptr<const TokenGrammar>> TokenGrammar::Create(
    xgrammar::CompiledGrammar compiled, std::shared_ptr<const Vocabulary> vocabulary,
    const std::string& field) {
  const auto refuse = [&](std::string reason, const std::string& what) {
    return Fail(ErrorCode::kInvalidArgument, std::move(reason), field, "{}", what);
  };
  try {
    std::shared_ptr<TokenGrammar> out(new TokenGrammar(std::move(compiled), std::move(vocabulary)));
    const xgrammar::Grammar grammar = out->compiled_.GetGrammar();
    if (ParserBytes(grammar) > kMostParserBytes) {
      return refuse("grammar_too_complex", "it has too many rules");
    }
    DecideByCount(&out->compiled_);
    out->automaton_ = std::make_shared<const Automaton>(grammar, *out->vocabulary_);
    out->bytes_ = out->compiled_.MemorySizeBytes() + 4096;
    const int64_t least = out->automaton_->RuleCost(grammar->GetRootRuleId());
    if (least >= limits::kMaxGrammarShortest) {
      if (least < Automaton::kNever) {
        return refuse("grammar_too_long",
                      fmt::format("its shortest output has {} bytes; at most {} "
                                  "can be made",
                                  least, limits::kMaxGrammarShortest));
      }
    }
    if (const std::string rule = out->automaton_->EndlessRule(); !rule.empty()) {
      return refuse("grammar_endless",
                    fmt::format("no output can be complete: '{}' never ends, is too long, or needs "
                                "characters that the model's vocabulary cannot spell",
                                rule));
    }
    if (const std::string rule = out->automaton_->LeftRecursiveRule(); !rule.empty()) {
      return refuse("grammar_left_recursive",
                    fmt::format("'{}' may begin with itself; put what repeats behind it", rule));
    }
    if (!out->automaton_->steerable()) return out;
    Tracker tracker(out->automaton_);
    if (tracker.Finished()) return refuse("grammar_empty", "it allows only the empty output");
    std::string shortest;
    TokenSpelling spelling(*out->vocabulary_);
    const bool known = tracker.Shortest(limits::kMaxGrammarShortest, &shortest);
    if (known) spelling.Set(shortest);
    if (!known && out->automaton_->names_tokens()) return out;  // by any of many tokens
    if (!known || spelling.tokens() == TokenSpelling::kNone) {
      return refuse("grammar_too_long", "its shortest output cannot be written in tokens");
    }
    out->shortest_tokens_ = spelling.tokens();
    return out;
  } catch (const std::exception&) {
    return refuse("grammar_too_costly", "it takes too much memory");
  }
}

// Two parsers: the matcher's and the tracker's.
size_t TokenGrammar::output_bytes() const {
  return 2 * static_cast<size_t>(ParserBytes(compiled_.GetGrammar()));
}

std::unique_ptr<TokenConstraint> TokenGrammar::NewConstraint(
    const ConstraintOptions& options) const {
  return std::make_unique<GrammarConstraint>(shared_from_this(), options);
}

}  // namespace vivace::grammar
