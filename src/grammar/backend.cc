#include "grammar/backend.h"

#include <dlpack/dlpack.h>

#include <exception>
#include <optional>
#include <vector>

#include "grammar/counted.h"

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

const xgrammar::TokenizerInfo& TokenizerInfos::For(const Lowered& text) {
  std::optional<xgrammar::TokenizerInfo>& info = text.names_tokens ? named_ : plain_;
  if (info) return *info;
  std::vector<std::string> tokens = vocabulary_->tokens();
  for (size_t id = 0; text.names_tokens && id < tokens.size(); ++id) {
    // A byte that UTF-8 does not have.
    if (tokens[id].empty()) tokens[id] = "\xFF" + std::to_string(id);
  }
  info.emplace(tokens, xgrammar::VocabType::RAW, vocabulary_->size(),
               std::vector<int32_t>(vocabulary_->stop()));
  return *info;
}

Result<xgrammar::CompiledGrammar> CompileText(const xgrammar::TokenizerInfo& tokens,
                                              const Lowered& text) {
  try {
    const bool counted = HasCountedStrings(text.text);
    xgrammar::GrammarCompiler compiler(tokens, /*max_threads=*/1, /*cache_enabled=*/false,
                                       /*max_memory_bytes=*/-1,
                                       /*enable_dynamic_compilation=*/counted);
    xgrammar::CompiledGrammar compiled = text.kind == Lowered::Kind::kEbnf
                                             ? compiler.CompileGrammar(text.text, "root")
                                             : compiler.CompileStructuralTag(text.text);
    if (counted) SetCountsAndMakeMasks(&compiled);
    return compiled;
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kInvalidArgument, "grammar_too_costly", "",
                "it takes too much memory to compile");
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInvalidArgument, "bad_grammar", "", "it cannot be compiled: {}",
                Sentence(error.what()));
  }
}

bool FillTokenMask(xgrammar::GrammarMatcher* matcher, std::span<uint32_t> mask) {
  auto shape = static_cast<int64_t>(mask.size());
  DLTensor tensor = {};
  tensor.data = mask.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = xgrammar::GetBitmaskDLType();
  tensor.shape = &shape;
  return matcher->FillNextTokenBitmask(&tensor);
}

}  // namespace vivace::grammar
