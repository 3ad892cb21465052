// xgrammar itself: a vocabulary and a grammar's text to a compiled grammar. What runs in the worker
// process, and in this one where the text is trusted.
//
// Compile takes milliseconds to seconds and as much memory as the grammar makes it; nothing here
// bounds that. No exception leaves. One thread at a time.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "grammar/lower.h"
#include "grammar/vocabulary.h"

namespace vivace::grammar {

// The vocabulary as xgrammar has it. A control token is no text, and xgrammar takes it for nothing
// at all; for grammars that name such tokens by their ids it gets a text that no grammar has.
class TokenizerInfos {
 public:
  explicit TokenizerInfos(std::shared_ptr<const Vocabulary> vocabulary)
      : vocabulary_(std::move(vocabulary)) {}

  const xgrammar::TokenizerInfo& For(const Lowered& text);

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::optional<xgrammar::TokenizerInfo> plain_, named_;  // made when first needed
};

// kInvalidArgument "bad_grammar", without a field, for what xgrammar refuses.
Result<xgrammar::CompiledGrammar> CompileText(const xgrammar::TokenizerInfo& tokens,
                                              const Lowered& text);

// The tokens that may come, one bit each, into `mask` [MaskWords(vocabulary)]. False: all may, and
// `mask` is unspecified. Throws as xgrammar does.
bool FillTokenMask(xgrammar::GrammarMatcher* matcher, std::span<uint32_t> mask);

}  // namespace vivace::grammar
