#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <mutex>

#include "cli/access_flags.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/serve_options.h"
#include "cli/signals.h"
#include "cli/template_file.h"
#include "engine/load_engine.h"
#include "server/server.h"

namespace vivace::cli {
namespace {

// The template that was asked for must work; the model's own may be beyond us, and then only chat
// is.
Result<std::shared_ptr<const ChatTemplate>> MakeTemplate(const ServeOptions& options,
                                                         const LoadedEngine& loaded) {
  if (!options.chat_template.empty()) {
    VIVACE_ASSIGN(ChatTemplate wanted, LoadTemplate(options.chat_template));
    return std::make_shared<const ChatTemplate>(std::move(wanted));
  }
  if (loaded.chat_template_source.empty()) return nullptr;
  auto parsed = ChatTemplate::Parse(loaded.chat_template_source);
  if (parsed) return std::make_shared<const ChatTemplate>(std::move(*parsed));
  log::Warn("the model's chat template is not understood; chat requests will be refused",
            {{"why", parsed.error().message}});
  return nullptr;
}

// A name of the hub is its own; a folder's is the whole last part, dots and all.
std::string ModelName(const ModelArgument& model) {
  if (!model.name.empty()) return model.name;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(model.path, error);
  if (std::filesystem::is_directory(path, error)) return path.filename().string();
  return std::filesystem::path(model.path).stem().string();
}

// `chat`: the model has a template; else the line to paste is one that it can answer.
void PrintReady(const ServeOptions& options, const Engine& engine, bool chat, uint16_t port) {
  const server::HttpOptions& http = options.server.http;
  const server::KeyOptions& keys = options.server.keys;
  const bool guarded = !keys.api_keys.empty() || !keys.api_key_file.empty();
  const char* scheme = options.server.tls.enabled() ? "https" : "http";
  std::string host = http.host;
  if (host == "0.0.0.0" || host == "::") host = "127.0.0.1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";  // IPv6 in a URL
  const std::string address = http.uds.empty() ? fmt::format("{}:{}", host, port) : "localhost";
  const std::string where =
      http.uds.empty() ? fmt::format("{}://{}", scheme, address) : "the Unix socket " + http.uds;
  const ExecutorLimits& limits = engine.limits();
  fmt::print("Vivace {} is ready on {}  ({}, context {}, {} sequences, KV cache {} tokens)\n",
             VIVACE_VERSION, where, options.server.served_model_names.front(), limits.max_model_len,
             limits.max_sequences, limits.kv_tokens());
  fmt::print("curl {}{}{}://{}/v1/{} -H 'Content-Type: application/json' -d '{}'\n",
             http.uds.empty() ? "" : fmt::format("--unix-socket '{}' ", http.uds),
             guarded ? "-H \"Authorization: Bearer $VIVACE_API_KEY\" " : "", scheme, address,
             chat ? "chat/completions" : "completions",
             chat ? R"({"messages": [{"role": "user", "content": "Hello!"}]})"
                  : R"({"prompt": "Once upon a time", "max_tokens": 50})");
  std::fflush(stdout);
}

// Turns signals into a drain, then an end; SIGHUP into a look at keys and certificates. A signal
// may come while there is no server yet, or no more.
class ServerSignals {
 public:
  void Attach(server::Server* server) {
    const std::lock_guard lock(mutex_);
    server_ = server;
  }

 private:
  void OnSignal(int signal, int count) {
    const std::lock_guard lock(mutex_);
    if (signal == SIGHUP) {
      if (server_ != nullptr) server_->ReloadFiles();
      return;
    }
    if (server_ == nullptr) _exit(0);  // loading, or done: nothing to lose
    if (count == 1) {
      log::Info("draining: running answers may finish; a second signal ends at once");
      server_->BeginDrain();
    } else {
      server_->StopNow();
    }
  }

  std::mutex mutex_;
  server::Server* server_ = nullptr;
  SignalThread thread_{[this](int signal, int count) { OnSignal(signal, count); }};
};

Status RunServer(ServeOptions options) {
  ServerSignals signals;
  server::ServerConfig& config = options.server;
  AddKeysOfEnvironment(&config.keys);
  VIVACE_RETURN_IF_ERROR(server::Server::CheckAccess(config));
  VIVACE_ASSIGN(const ModelArgument model, ResolveModel(options.engine.model, options.hub));
  options.engine.model = model.path;
  Progress progress("loading the model");
  VIVACE_ASSIGN(LoadedEngine loaded,
                LoadEngine(options.engine, [&progress](uint64_t done, uint64_t total) {
                  progress.Update(done, total);
                  return true;
                }));
  progress.Clear();
  VIVACE_ASSIGN(auto chat_template, MakeTemplate(options, loaded));
  if (config.served_model_names.empty()) config.served_model_names.push_back(ModelName(model));
  const Engine& engine = *loaded.engine;
  config.grammar_worker = {"/proc/self/exe", kGrammarWorkerVerb};
  VIVACE_ASSIGN(auto server, server::Server::Create(config, {.engine = std::move(loaded.engine),
                                                             .tokenizer = loaded.tokenizer,
                                                             .chat_template = chat_template,
                                                             .eos_ids = loaded.eos_ids}));
  PrintReady(options, engine, chat_template != nullptr, server->port());
  if (options.log_format == log::Format::kJson) {  // a person has just read it
    log::Info("ready", {{"host", config.http.host},
                        {"port", server->port()},
                        {"model", options.engine.model},
                        {"max_model_len", engine.limits().max_model_len},
                        {"kv_blocks", engine.limits().num_blocks}});
  }
  signals.Attach(server.get());
  server->Run();
  signals.Attach(nullptr);
  log::Info("stopped");
  return {};
}

}  // namespace

int Serve(std::span<const std::string> args) {
  ServeOptions options;
  const auto words = ParseWords(ServeCommand(&options), args,
                                {1, 1, "give one model: vivace serve MODEL.gguf, or org/name"});
  if (!words) return words.error();
  options.engine.model = (*words)[0];
  BlockSignals(/*hang_up=*/options.server.has_files());
  log::Configure({.format = options.log_format});
  const Status served = RunServer(std::move(options));
  return served ? 0 : Refuse(served.error());
}

}  // namespace vivace::cli
