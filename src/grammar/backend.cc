#include "grammar/backend.h"

#include <exception>
#include <optional>
#include <vector>

namespace vivace::grammar {
namespace {

// xgrammar's own sentence, without the file and the time it begins with.
std::string Sentence(std::string what) {
  for (const char* mark : {".cc:", ".h:"}) {
    if (const size_t at = what.rfind(mark); at != std::string::npos) {
      const size_t end = what.find(": ", at + 1);
      if (end != std::string::npos) what.erase(0, end + 2);
    }
  }
  constexpr size_t kMost = 300;
  if (what.size() > kMost) what = what.substr(0, kMost) + "...";
  while (!what.empty() && (what.back() == '\n' || what.back() == ' ')) what.pop_back();
  return what;
}

}  // namespace

xgrammar::TokenizerInfo ToTokenizerInfo(const Vocabulary& vocabulary) {
  return xgrammar::TokenizerInfo(vocabulary.tokens(), xgrammar::VocabType::RAW, vocabulary.size(),
                                 std::vector<int32_t>(vocabulary.stop()));
}

Result<xgrammar::CompiledGrammar> CompileText(const xgrammar::TokenizerInfo& tokens,
                                              const Lowered& text) {
  try {
    xgrammar::GrammarCompiler compiler(tokens, /*max_threads=*/1, /*cache_enabled=*/false);
    return text.kind == Lowered::Kind::kEbnf ? compiler.CompileGrammar(text.text, "root")
                                             : compiler.CompileStructuralTag(text.text);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kInvalidArgument, "grammar_too_complex", "",
                "it takes too much memory to compile");
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInvalidArgument, "bad_grammar", "", "it cannot be compiled: {}",
                Sentence(error.what()));
  }
}

}  // namespace vivace::grammar
