// The server as the command line sees it: an engine and a tokenizer behind a listening socket.
//
// Create binds the port; Run serves on the calling thread until it is told to stop. BeginDrain,
// ReloadFiles and StopNow may be called from any thread (a signal is to be turned into a call on a
// thread first).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "server/access/access_control.h"
#include "server/access/cors.h"
#include "server/access/file_watch.h"
#include "server/http/http.h"
#include "server/http/tls.h"
#include "server/service/service.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace vivace::server {

struct ServerConfig {
  HttpOptions http;
  std::vector<std::string> served_model_names;  // at least one; the first is shown in answers
  ServiceOptions service;                       // its keys and origins are made from those below
  KeyOptions keys;
  CorsOptions cors;
  TlsOptions tls;
  bool refresh_tls = false;                 // read the files of `tls` again when they change
  std::vector<std::string> grammar_worker;  // the program that compiles grammars; grammar/grammar.h
  int shutdown_timeout_s = 30;              // for answers under way when a drain begins

  // Whether ReloadFiles would read anything.
  bool has_files() const {
    return tls.enabled() || !keys.api_key_file.empty() || !keys.admin_key_file.empty();
  }
};

// What is served; shared and immutable but for the engine.
struct ServerModel {
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: chat requests are refused
  std::vector<TokenId> eos_ids;                       // those the engine was started with
};

class Server {
 public:
  // Whether keys, origins and certificates can be used: for before a model is loaded, which takes
  // long.
  static Status CheckAccess(const ServerConfig& config);
  static Result<std::unique_ptr<Server>> Create(const ServerConfig& config, ServerModel model);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return http_->port(); }

  // Serves until a drain is over or StopNow.
  void Run();

  // No new work (503, while probes are answered still); what is under way may finish within the
  // timeout, then gets an error. Then Run returns. Further calls have no effect.
  void BeginDrain();
  // Reads keys and certificates again, soon, on a thread that may wait for the disk. What cannot be
  // used is said in the log, and what was there before stays.
  void ReloadFiles();

  // Ends what is under way with an error and makes Run return.
  void StopNow();

 private:
  explicit Server(int shutdown_timeout_s) : shutdown_timeout_s_(shutdown_timeout_s) {}
  void WatchFiles(const ServerConfig& config);
  void ReloadKeys(const KeyOptions& options);
  void ReloadTls(const TlsOptions& options);
  void WatchDrain(int64_t deadline_ns);
  void StopSoon();

  const int shutdown_timeout_s_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<FileWatch> files_;  // null: none to watch
  bool draining_ = false;             // loop thread
  int64_t answered_ns_ = 0;           // since when a drain has no request left; 0: it has
};

}  // namespace vivace::server
