#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <iostream>
#include <limits>
#include <mutex>

#include "cli/chat_backend.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/serve_options.h"
#include "cli/signals.h"
#include "cli/value_flags.h"
#include "formats/untrusted.h"

namespace vivace::cli {
namespace {

constexpr const char* kHelp =
    "  /system TEXT  set the system prompt and begin anew\n"
    "  /reset        forget the conversation\n"
    "  /quit         leave (so does Ctrl-D); Ctrl-C stops an answer\n";

struct ChatOptions {
  EngineConfig engine;
  HubOptions hub;
  std::string system;
  std::string api_key;  // given by the flag
  ChatSampling sampling;
};

Status StoreTemperature(const std::string& text, float* to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *to);
  if (error == std::errc() && end == text.data() + text.size() && *to >= 0 && *to <= 2) return {};
  return Fail(ErrorCode::kInvalidArgument, "bad_value", "temperature",
              "--temperature is '{}'; give a number from 0 to 2", text);
}

Command ChatCommand(ChatOptions* options) {
  Command command = {.name = "chat",
                     .positional = "MODEL | URL",
                     .summary =
                         "Talks to a model, a file or a name on the hub, or to an "
                         "OpenAI-compatible server, in the "
                         "terminal.",
                     .details = std::string("In the chat:\n") + kHelp +
                                "\nExamples:\n"
                                "  vivace chat model.gguf\n"
                                "  vivace chat org/name\n"
                                "  vivace chat http://127.0.0.1:8000\n"
                                "  VIVACE_API_KEY=... vivace chat https://host/v1",
                     .flags = EngineFlags(&options->engine),
                     .takes_config = true};
  for (Flag& flag : HubFlags(&options->hub)) command.flags.push_back(std::move(flag));
  command.flags.push_back(
      {"system", "TEXT", "the template's own", "system prompt", StoreText(&options->system)});
  command.flags.push_back({"api-key", "KEY", "$VIVACE_API_KEY",
                           "what a server asks for; the variable is not shown to the machine's "
                           "other users",
                           StoreText(&options->api_key)});
  command.flags.push_back({"temperature", "T", "0.7", "0 takes the most likely token each time",
                           [options](const std::string& text) {
                             return StoreTemperature(text, &options->sampling.temperature);
                           }});
  Flag max_tokens = CountFlag("max-tokens", "of an answer", &options->sampling.max_tokens, 1,
                              std::numeric_limits<int32_t>::max());
  max_tokens.default_text = "as many as the context holds";
  command.flags.push_back(std::move(max_tokens));
  return command;
}

boost::json::object Message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

// A model's text may hold anything, in parts of whole characters.
void Show(std::string_view text) {
  fmt::print("{}", formats::ForTerminal(text));
  std::fflush(stdout);
}

class Conversation {
 public:
  Conversation(ChatBackend* backend, std::string system)
      : backend_(backend), system_(std::move(system)), prompt_(isatty(STDIN_FILENO) ? "> " : "") {
    Reset();
  }

  int Run() {
    if (!prompt_.empty()) fmt::print("Type a message; /help lists commands, Ctrl-D leaves.\n");
    for (std::string line; ReadLine(&line);) {
      if (line.starts_with('/')) {
        if (!RunCommand(line)) break;
      } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
        Answer(line);
      }
    }
    if (!prompt_.empty()) fmt::print("\n");
    return failed_ ? kExitRefused : 0;
  }

 private:
  void Reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back(Message("system", system_));
  }

  bool ReadLine(std::string* line) {
    fmt::print("{}", prompt_);
    std::fflush(stdout);
    return static_cast<bool>(std::getline(std::cin, *line));
  }

  // False: leave.
  bool RunCommand(const std::string& line) {
    if (line == "/quit" || line == "/exit") return false;
    if (line == "/reset") {
      Reset();
    } else if (line.starts_with("/system ")) {
      system_ = line.substr(8);
      Reset();
    } else {
      fmt::print("{}", kHelp);
    }
    return true;
  }

  void Answer(const std::string& text) {
    messages_.push_back(Message("user", text));
    cancelled_ = false;
    answering_ = true;
    auto answer = backend_->Reply(
        messages_, [](std::string_view part) { Show(part); }, cancelled_);
    answering_ = false;
    fmt::print("\n");
    if (!answer) {
      failed_ = true;
      Refuse(answer.error());
      messages_.pop_back();
      return;
    }
    if (answer->empty()) {  // stopped before it began: as if nothing had been asked
      messages_.pop_back();
      return;
    }
    messages_.push_back(Message("assistant", *answer));
  }

  void OnSignal(int signal) {
    if (signal == SIGTERM) _exit(0);
    cancelled_ = true;
    if (!answering_) {
      fmt::print("\n(Ctrl-D or /quit leaves)\n{}", prompt_);
      std::fflush(stdout);
    }
  }

  ChatBackend* const backend_;
  std::string system_;
  const std::string prompt_;
  boost::json::array messages_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> answering_{false};
  bool failed_ = false;
  SignalThread signals_{[this](int signal, int) { OnSignal(signal); }};
};

Result<std::unique_ptr<ChatBackend>> MakeBackend(const std::string& target, ChatOptions options) {
  if (target.starts_with("http://") || target.starts_with("https://")) {
    if (options.api_key.empty()) options.api_key = ApiKeyOfEnvironment();
    return MakeHttpBackend(target, options.sampling, std::move(options.api_key));
  }
  if (!options.api_key.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "api-key",
                "--api-key goes with a server's URL; a model in this process asks for none");
  }
  options.engine.model = target;  // resolved before signals were blocked
  return MakeLocalBackend(options.engine, options.sampling);
}

}  // namespace

int Chat(std::span<const std::string> args) {
  ChatOptions options;
  options.engine.max_num_seqs = 1;
  const auto words =
      ParseWords(ChatCommand(&options), args, {1, 1, "give a model or a server's URL"});
  if (!words) return words.error();
  auto model = ResolveModel((*words)[0], options.hub);
  if (!model) return Refuse(model.error());
  BlockSignals();
  auto backend = MakeBackend(model->path, options);
  if (!backend) return Refuse(backend.error());
  return Conversation(backend->get(), options.system).Run();
}

}  // namespace vivace::cli
