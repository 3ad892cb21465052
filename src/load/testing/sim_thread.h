// A simulated server on a free port with a thread of its own, and its truth: for tests.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "load/client/fetch.h"
#include "load/sim/sim_server.h"

namespace vivace::load::testing {

struct Truth {
  int64_t arrived_ns = 0, first_ns = 0, last_ns = 0;
  std::vector<double> gaps_ms;
  std::vector<int64_t> event_tokens;
  int64_t output_tokens = 0, prompt_tokens = 0;
  std::string outcome;
};

class SimThread {
 public:
  explicit SimThread(SimOptions options) {
    options.port = 0;
    auto server = SimServer::Listen(options);
    EXPECT_TRUE(server) << (server ? "" : server.error().message);
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  ~SimThread() {
    server_->Stop();
    thread_.join();
  }

  Target target() const {
    Target target;
    target.base_url = "http://127.0.0.1:" + std::to_string(server_->port());
    return target;
  }

  // By the index of the request in its run, which is the end of its id; -1, -2, ...: without one.
  std::map<int, Truth> truths() const {
    Fetcher fetch(target());
    const auto answer = fetch.Do("/sim/truth", nullptr);
    EXPECT_TRUE(answer && answer->status == 200);
    std::map<int, Truth> truths;
    int others = 0;
    const boost::json::value parsed = boost::json::parse(answer->body);
    for (const auto& entry : parsed.at("requests").as_array()) {
      const std::string id(entry.at("id").as_string());
      const size_t dash = id.rfind('-');
      const int index = dash == std::string::npos ? --others : std::stoi(id.substr(dash + 1));
      truths[index] = Read(entry);
    }
    return truths;
  }

 private:
  static Truth Read(const boost::json::value& entry) {
    const auto time = [&](const char* name) {
      return entry.at(name).is_null() ? 0 : entry.at(name).as_int64();
    };
    Truth truth;
    truth.arrived_ns = time("arrived_ns");
    truth.first_ns = time("first_ns");
    truth.last_ns = time("last_ns");
    for (const auto& gap : entry.at("gaps_ms").as_array()) {
      truth.gaps_ms.push_back(gap.to_number<double>());
    }
    for (const auto& tokens : entry.at("event_tokens").as_array()) {
      truth.event_tokens.push_back(tokens.as_int64());
    }
    truth.output_tokens = entry.at("output_tokens").as_int64();
    truth.prompt_tokens = entry.at("prompt_tokens").as_int64();
    truth.outcome = entry.at("outcome").as_string().c_str();
    return truth;
  }

  std::unique_ptr<SimServer> server_;
  std::thread thread_;
};

}  // namespace vivace::load::testing
