// What the connections of one server share. Loop thread only, but for `io` itself.
// Includes Asio: for the .cc files of this folder alone.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <unordered_set>

#include "server/http/asio.h"
#include "server/http/http.h"

namespace vivace::server {

class Connection;

struct Loop {
  HttpOptions options;
  HttpServer::HeaderCheck check;
  Handler handler;

  boost::asio::io_context io{1};        // run by one thread
  std::array<char, 64 * 1024> scratch;  // every socket is read into this
  std::unordered_set<std::shared_ptr<Connection>> connections;
  std::list<Connection*> idle;      // those between requests, the longest idle first
  std::function<void()> room_made;  // a connection closed or became idle: the acceptor may go on
  int active_exchanges = 0;
  size_t reading_bytes = 0;  // of bodies that are not complete, of all connections
  int retry_after_s = 1;
  bool draining = false;
  std::atomic<bool> ended{false};  // the server is gone; an Exchange may outlive it
};

}  // namespace vivace::server
