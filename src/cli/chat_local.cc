#include <algorithm>
#include <chrono>
#include <semaphore>
#include <utility>

#include "cli/chat_backend.h"
#include "cli/progress.h"
#include "engine/load_engine.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/render_input.h"

namespace vivace::cli {
namespace {

class LocalBackend final : public ChatBackend {
 public:
  LocalBackend(LoadedEngine loaded, ChatTemplate chat_template, const ChatSampling& sampling)
      : loaded_(std::move(loaded)), template_(std::move(chat_template)), sampling_(sampling) {
    loaded_.engine->OnReady([this] { news_.release(); });
  }
  ~LocalBackend() override { loaded_.engine->Stop(); }

  Result<std::string> Reply(const boost::json::array& messages,
                            const std::function<void(std::string_view)>& on_text,
                            const std::atomic<bool>& cancelled) override {
    VIVACE_ASSIGN(GenerationRequest wanted, MakeRequest(messages));
    VIVACE_ASSIGN(const RequestPtr request, loaded_.engine->Submit(std::move(wanted), nullptr));
    TokenStream& stream = *request->choices[0];
    Detokenizer detokenizer(loaded_.tokenizer, /*skip_special=*/true);
    std::string text;
    const auto emit = [&](std::string_view part) {
      if (part.empty()) return;
      text += part;
      on_text(part);
    };
    FinishReason finish = FinishReason::kNone;
    std::vector<RequestPtr> ready;
    for (bool aborted = false; finish == FinishReason::kNone;) {
      // Polls for the flag: the signal's thread can do no more than set it.
      news_.try_acquire_for(std::chrono::milliseconds(50));
      if (cancelled && !std::exchange(aborted, true)) loaded_.engine->Abort(request);
      loaded_.engine->TakeReady(&ready);
      ready.clear();
      for (const TokenId token : stream.Read()) emit(detokenizer.Push(token));
      finish = stream.finish_reason();
    }
    emit(detokenizer.Finish());
    if (finish == FinishReason::kError) {
      return Fail(ErrorCode::kInternal, "non_finite_logits", "",
                  "the model computed something that is not a number");
    }
    return text;
  }

 private:
  Result<GenerationRequest> MakeRequest(const boost::json::array& messages) const {
    const Tokenizer& tokenizer = *loaded_.tokenizer;
    ChatRenderInput input = RenderInputFor(tokenizer);
    input.messages = messages;
    VIVACE_ASSIGN(const RenderedPrompt rendered, template_.Render(input));
    GenerationRequest request;
    request.prompt = tokenizer.EncodeSegments(rendered.text, rendered.segments);
    const int32_t room = loaded_.engine->limits().max_model_len;
    request.sampling.max_tokens =
        sampling_.max_tokens > 0 ? std::min(sampling_.max_tokens, room) : room;
    request.sampling.temperature = sampling_.temperature;
    return request;
  }

  LoadedEngine loaded_;
  const ChatTemplate template_;
  const ChatSampling sampling_;
  std::counting_semaphore<> news_{0};
};

}  // namespace

Result<std::unique_ptr<ChatBackend>> MakeLocalBackend(const EngineConfig& config,
                                                      const ChatSampling& sampling) {
  Progress progress("loading the model");
  VIVACE_ASSIGN(LoadedEngine loaded, LoadEngine(config, [&progress](uint64_t done, uint64_t total) {
                  progress.Update(done, total);
                  return true;
                }));
  progress.Clear();
  if (loaded.chat_template_source.empty()) {
    return Fail(ErrorCode::kUnsupported, "no_chat_template", "",
                "{}: the model brings no chat template; serve it and use /v1/completions",
                config.model);
  }
  VIVACE_ASSIGN(ChatTemplate chat_template,
                ChatTemplate::Parse(std::move(loaded.chat_template_source)));
  return std::make_unique<LocalBackend>(std::move(loaded), std::move(chat_template), sampling);
}

}  // namespace vivace::cli
