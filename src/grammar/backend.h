// xgrammar itself: a vocabulary and a grammar's text to a compiled grammar. What runs in the worker
// process, and in this one where the text is trusted.
//
// Compile takes milliseconds to seconds and as much memory as the grammar makes it; nothing here
// bounds that. No exception leaves. One thread at a time.
#pragma once

#include <xgrammar/xgrammar.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "grammar/lower.h"
#include "grammar/vocabulary.h"

namespace vivace::grammar {

xgrammar::TokenizerInfo ToTokenizerInfo(const Vocabulary& vocabulary);

// kInvalidArgument "bad_grammar", without a field, for what xgrammar refuses.
Result<xgrammar::CompiledGrammar> CompileText(const xgrammar::TokenizerInfo& tokens,
                                              const Lowered& text);

}  // namespace vivace::grammar
