#include "load/datasets/tokenizer_counter.h"

#include "text/render_input.h"

namespace vivace::load {

Result<std::vector<int32_t>> ChatTokens(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template,
                                        boost::json::array messages) {
  ChatRenderInput input = RenderInputFor(tokenizer);
  input.messages = std::move(messages);
  VIVACE_ASSIGN(const RenderedPrompt rendered, chat_template.Render(input));
  return tokenizer.EncodeSegments(rendered.text, rendered.segments);
}

// A template that cannot be used says nothing of its tokens.
Result<int32_t> TokenizerCounter::ChatOverhead() {
  constexpr char kSample[] = "the";
  const auto parsed = ChatTemplate::Parse(chat_template_);
  if (chat_template_.empty() || !parsed) return -1;
  const auto chat = ChatTokens(*tokenizer_, *parsed,
                               {boost::json::object{{"role", "user"}, {"content", kSample}}});
  const auto plain = tokenizer_->Encode(kSample, {.add_special_tokens = false});
  if (!chat || chat->size() < plain.size()) return -1;
  return static_cast<int32_t>(chat->size() - plain.size());
}

}  // namespace vivace::load
