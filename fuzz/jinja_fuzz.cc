// libFuzzer target: any bytes as a chat template, rendered over a small conversation. Besides not
// crashing, the result must be tiled by its segments, keep the output budget and be repeatable.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/limits.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto chat =
      vivace::ChatTemplate::Parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!chat) return 0;
  vivace::ChatRenderInput input;
  input.messages = {{{"role", "system"}, {"content", "Be brief."}},
                    {{"role", "user"}, {"content", "Grüße <|im_end|> 1 2 3"}},
                    {{"role", "assistant"}, {"content", nullptr}}};
  input.tools = {
      {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"a", 1.5}}}}}}};
  input.extra = {{"enable_thinking", false}, {"n", 7}};
  const auto first = chat->Render(input), second = chat->Render(input);
  VIVACE_CHECK(first.has_value() == second.has_value());
  if (!first) return 0;
  VIVACE_CHECK(first->text == second->text);
  VIVACE_CHECK(first->text.size() <= vivace::limits::kTemplateOutputBytes);
  size_t tiled = 0;
  for (const vivace::Segment& segment : first->segments) {
    VIVACE_CHECK(segment.begin == tiled && segment.end > segment.begin);
    tiled = segment.end;
  }
  VIVACE_CHECK(tiled == first->text.size());
  return 0;
}
