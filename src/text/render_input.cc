#include "text/render_input.h"

#include <optional>
#include <string>

#include "base/clock.h"

namespace vivace {
namespace {

std::string TextOf(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? std::string(tokenizer.TokenBytes(*id)) : std::string();
}

}  // namespace

ChatRenderInput RenderInputFor(const Tokenizer& tokenizer) {
  ChatRenderInput input;
  input.bos_token = TextOf(tokenizer, tokenizer.bos());
  input.eos_token = TextOf(tokenizer, tokenizer.eos());
  input.now = LocalTime();
  return input;
}

}  // namespace vivace
