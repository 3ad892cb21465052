// The server over real sockets: what a well-meaning client sees, and one that goes away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/http/http.h"
#include "server/http/test_client.h"
#include "server/http/test_server.h"

namespace vivace::server {
namespace {

using testing::Answer;
using testing::Client;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::TestServer;

constexpr char kHealth[] = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr char kHold[] = "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n";

std::string Post(const std::string& path, const std::string& body,
                 const std::string& fields = "Content-Type: application/json\r\n") {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  TestServer server;
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.Send(kHealth);
    const Answer answer = client.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "ok");
    EXPECT_FALSE(answer.Has("Connection: close"));
  }
  client.Send(Post("/echo", std::string(3 << 20, 'b')));
  EXPECT_EQ(client.Read().body.size(), 3u << 20);
  EXPECT_EQ(server.OpenConnections(), 1);
  EXPECT_EQ(server.ActiveExchanges(), 0);
  EXPECT_TRUE(Eventually([&] { return server.tickets == 0; }));
}

// No header tells how much a chunked body will be; together they are held to a limit all the same.
TEST(HttpServer, BodiesBeingReadAreBoundedTogether) {
  HttpOptions options;
  options.max_reading_bytes = 1'000;
  TestServer server(options);
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string part = "1f4\r\n" + std::string(500, 'c') + "\r\n";
  for (int round = 0; round < 2; ++round) {  // what was refused and answered is given back
    Client first(server.port());
    first.Send(head + part);
    Client slow(server.port());
    slow.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 501\r\n\r\n" +
              std::string(499, 'l'));
    EXPECT_EQ(first.Read(50).status, 0);
    slow.Send("l");
    EXPECT_EQ(slow.Read(50).status, 0);  // at the limit
    slow.Send("l");
    const Answer refused = slow.Read();
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.Has("Retry-After: "));
    first.Send("0\r\n\r\n");
    EXPECT_EQ(first.Read().body.size(), 500u);
  }
}

TEST(HttpServer, ClosesWhenAsked) {
  TestServer server;
  Client client(server.port());
  client.Send("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const Answer answer = client.Read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.Has("Connection: close"));
  EXPECT_TRUE(client.Ends(1'000));
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  Client client(server.port());
  std::string all;
  for (int i = 0; i < 50; ++i) all += Post("/echo", std::string(static_cast<size_t>(i) * 50, 'p'));
  client.Send(all + kHealth);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(client.Read().body.size(), static_cast<size_t>(i) * 50);
  }
  EXPECT_EQ(client.Read().body, "ok");
}

TEST(HttpServer, NextPipelinedRequestWaitsForTheAnswer) {
  TestServer server;
  Client client(server.port());
  client.Send(std::string(kHold) + kHealth);
  EXPECT_TRUE(Eventually([&] { return server.handled == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(server.handled, 1);
  server.OnLoop([&] { server.held[0]->Send(200, {}, "held"); });
  EXPECT_EQ(client.Read().body, "held");
  EXPECT_EQ(client.Read().body, "ok");
  EXPECT_EQ(server.closed, 0);
}

TEST(HttpServer, AnsweredRequestsSurviveTheirClientsHalfClose) {
  TestServer server;
  Client client(server.port());
  client.Send(std::string(kHealth) + kHealth + kHealth);
  client.ShutdownWrite();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Read().body, "ok");
  EXPECT_TRUE(client.Ends(1'000));
  EXPECT_TRUE(Eventually([&] { return server.OpenConnections() == 0; }, 500));
}

TEST(HttpServer, TakesChunkedBodies) {
  TestServer server;
  Client client(server.port());
  client.SendByteByByte(
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 1\r\n\r\n");
  EXPECT_EQ(client.Read().body, "abcde");
  client.Send(kHealth);
  EXPECT_EQ(client.Read().body, "ok");
}

TEST(HttpServer, StreamsInChunks) {
  TestServer server;
  Client client(server.port());
  client.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const Answer answer = client.Read();
  EXPECT_TRUE(answer.Has("Transfer-Encoding: chunked"));
  EXPECT_TRUE(answer.body.starts_with("chunk 0\nchunk 1\n"));
  EXPECT_TRUE(answer.body.ends_with("chunk 9\n"));
  client.Send(kHealth);
  EXPECT_EQ(client.Read().body, "ok");
}

TEST(HttpServer, StreamsToHttp10UntilClose) {
  TestServer server;
  Client client(server.port());
  client.Send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const Answer answer = client.Read();
  EXPECT_FALSE(answer.Has("Transfer-Encoding"));
  EXPECT_TRUE(answer.Has("Connection: close"));
  EXPECT_TRUE(answer.body.ends_with("chunk 9\n"));
}

TEST(HttpServer, HeadHasTheHeadersAndNoBody) {
  TestServer server;
  Client client(server.port());
  client.Send("HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n");
  const Answer whole = client.Read(5'000, true);
  EXPECT_EQ(whole.status, 200);
  EXPECT_TRUE(whole.Has("Content-Length: 2"));
  client.Send("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.Read(5'000, true).status, 200);
  client.Send("HEAD /nope HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.Read(5'000, true).status, 404);
  client.Send(kHealth);
  EXPECT_EQ(client.Read().body, "ok") << "nothing stood between the answers";
}

TEST(HttpServer, ContinuesOnRequestOnly) {
  TestServer server;
  Client client(server.port());
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n";
  client.Send(head + "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100);
  client.Send("abc");
  EXPECT_EQ(client.Read().body, "abc");
  client.Send(head + "Expect: 100-continue\r\n\r\nabc");
  EXPECT_EQ(client.Read().status, 200) << "the body is here: no 100";
  client.Send(
      "POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read().status, 404) << "refused before the body";
}

TEST(HttpServer, RefusesFromTheHeaderAndKeepsTheConnectionIfItCan) {
  TestServer server;
  Client client(server.port());
  client.Send("GET /nope HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.Read().status, 404);
  client.Send(Post("/nope", "{}"));
  EXPECT_EQ(client.Read().status, 404);
  client.Send("GET /v1/completions HTTP/1.1\r\nHost: a\r\n\r\n");
  const Answer answer = client.Read();
  EXPECT_EQ(answer.status, 405);
  EXPECT_TRUE(answer.Has("Allow: POST"));
  EXPECT_EQ(server.handled, 0);

  Client other(server.port());
  other.Send("POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  const Answer early = other.Read();
  EXPECT_EQ(early.status, 404);
  EXPECT_TRUE(early.Has("Connection: close"));
  other.Send(std::string(1'000'000, 'x'));
  EXPECT_TRUE(other.Ends());
  EXPECT_FALSE(other.was_reset()) << "the body was swallowed, so the answer is safe";
}

TEST(HttpServer, DroppedAndThrowingHandlersBecome500) {
  TestServer server;
  Client client(server.port());
  for (const char* path : {"/drop", "/throw"}) {
    client.Send(std::string("GET ") + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    const Answer answer = client.Read();
    EXPECT_EQ(answer.status, 500) << path;
    EXPECT_EQ(answer.body.find("on purpose"), std::string::npos);
  }
  client.Send("GET /half HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(client.Ends(1'000)) << "dropped in mid-stream: cut";
  EXPECT_TRUE(Eventually([&] { return server.closed == 1; }));
  Client checked(server.port());
  checked.Send("GET /check_throws HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(checked.Read().status, 500);
  EXPECT_TRUE(checked.Ends(3'000));
}

TEST(HttpServer, AnswersCannotBeSplit) {
  TestServer server;
  Client client(server.port());
  client.Send("GET /split?1 HTTP/1.1\r\nHost: a\r\n\r\n");
  const Answer answer = client.Read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.Has("Evil"));
}

// ---- Clients that leave ----

enum class Leave { kClose, kHalfClose, kReset };

class LeavingClient : public ::testing::TestWithParam<Leave> {};

TEST_P(LeavingClient, IsNoticedAtOnceWhileTheAnswerIsMade) {
  TestServer server;
  for (int round = 1; round <= 5; ++round) {
    Client client(server.port());
    client.Send(round % 2 ? kHold : std::string(kHold) + kHealth);
    ASSERT_TRUE(Eventually([&] { return server.handled == round; }));
    switch (GetParam()) {
      case Leave::kClose:
        client.Close();
        break;
      case Leave::kHalfClose:
        client.ShutdownWrite();
        break;
      case Leave::kReset:
        client.Reset();
        break;
    }
    // No timeout of ours would end it within that.
    ASSERT_TRUE(Eventually([&] { return server.closed == round; }));
    server.OnLoop([&] {
      EXPECT_TRUE(server.held.back()->closed());
      server.held.back()->Send(200, {}, "to nobody");
    });
  }
  EXPECT_EQ(server.ActiveExchanges(), 0);
  EXPECT_EQ(server.OpenConnections(), 0);
  server.OnLoop([&] { server.held.clear(); });
  EXPECT_EQ(server.tickets, 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, LeavingClient,
                         ::testing::Values(Leave::kClose, Leave::kHalfClose, Leave::kReset));

TEST(HttpServer, ResetIsNoticedBehindAFullReadAhead) {
  TestServer server;
  Client client(server.port());
  client.Send(kHold + std::string(limits::kMaxPipelinedBytes + 5'000, 'G'));
  ASSERT_TRUE(Eventually([&] { return server.handled == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  client.Reset();
  EXPECT_TRUE(Eventually([&] { return server.closed == 1; }, 1'000));
}

TEST(HttpServer, BodyThatNeverComesStartsNothing) {
  TestServer server;
  {
    Client client(server.port());
    client.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    ASSERT_TRUE(Eventually([&] { return server.tickets == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return server.tickets == 0; }, 1'000));
  EXPECT_EQ(server.handled, 0);
}

TEST(HttpServer, LateOnCloseIsStillCalled) {
  TestServer server;
  Client client(server.port());
  client.Send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(client.WaitFor("first"));
  client.Reset();
  ASSERT_TRUE(Eventually([&] { return server.closed == 1; }));
  std::atomic<bool> called{false};
  server.OnLoop([&] { server.held[0]->OnClose([&] { called = true; }); });
  EXPECT_TRUE(Eventually([&] { return called.load(); }));
}

// ---- Slow readers ----

TEST(HttpServer, SlowReaderShowsInPendingBytesAndCanBeCut) {
  TestServer server;
  Client client(server.port(), 4'096);
  client.Send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(client.WaitFor("first"));
  ASSERT_TRUE(Eventually([&] {
    size_t pending = 1;
    server.OnLoop([&] { pending = server.held[0]->pending_bytes(); });
    return pending == 0;
  }));
  const std::string blob(64 << 10, 'f');
  size_t written = 0, pending = 0;
  for (int i = 0; i < 200; ++i) {
    server.OnLoop([&] {
      server.held[0]->Write(blob);
      written += blob.size();
      pending = server.held[0]->pending_bytes();
    });
    ASSERT_LE(pending, written + 16 * 200);
  }
  EXPECT_GT(pending, limits::kMaxPendingStreamBytes);
  server.OnLoop([&] { server.held[0]->Cut(); });
  EXPECT_TRUE(Eventually([&] { return server.closed == 1; }));
  EXPECT_TRUE(client.Ends());
  EXPECT_EQ(server.OpenConnections(), 0);
}

TEST(HttpServer, PendingBytesReachTheReaderInTheEnd) {
  TestServer server;
  Client client(server.port(), 4'096);
  client.Send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return server.handled == 1; }));
  server.OnLoop([&] {
    for (int i = 0; i < 100; ++i) server.held[0]->Write(std::string(50'000, 'z'));
    server.held[0]->EndStream();
    EXPECT_GT(server.held[0]->pending_bytes(), 4'000'000u);
  });
  EXPECT_EQ(client.Read(20'000).body.size(), 5u + 5'000'000u);
}

TEST(HttpServer, StalledWriteEndsTheConnection) {
  TestServer server({.write_stall_ms = 200});
  Client client(server.port(), 4'096);
  client.Send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return server.handled == 1; }));
  server.OnLoop([&] { server.held[0]->Write(std::string(16 << 20, 'f')); });
  EXPECT_TRUE(Eventually([&] { return server.closed == 1; }, 3'000));
}

// ---- The loop ----

TEST(HttpServer, WakesAreSeenFromAnyThread) {
  TestServer server;
  std::atomic<uint64_t> published{0}, seen{0};
  std::atomic<int> calls{0};
  server.OnLoop([&] {
    server.server().OnWake([&] {
      ++calls;
      seen = published.load();
    });
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        ++published;
        server.server().Wake();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] { return seen == 30'000; })) << seen;
  EXPECT_GE(calls, 1);
}

TEST(HttpServer, AfterRunsOnceAndNotTooSoon) {
  TestServer server;
  std::atomic<int64_t> at{0};
  const int64_t start = SteadyNanos();
  server.OnLoop([&] { server.server().After(30, [&] { at = SteadyNanos(); }); });
  ASSERT_TRUE(Eventually([&] { return at != 0; }));
  EXPECT_GE(at - start, 30'000'000);
}

TEST(HttpServer, DrainFinishesWhatRunsAndRefusesTheRest) {
  TestServer server;
  Client idle(server.port());
  Client busy(server.port());
  idle.Send(kHealth);
  EXPECT_EQ(idle.Read().status, 200);
  busy.Send(kHold);
  Client upload(server.port());
  upload.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
  ASSERT_TRUE(Eventually([&] { return server.handled == 2 && server.tickets == 2; }));
  server.OnLoop([&] { server.server().BeginDrain(); });
  EXPECT_TRUE(idle.Ends(1'000));
  const Answer refused = upload.Read();
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("shutting_down"));
  EXPECT_TRUE(upload.Ends(1'000));
  Client probe(server.port());
  probe.Send(kHealth);
  const Answer alive = probe.Read();
  EXPECT_EQ(alive.status, 200);
  EXPECT_TRUE(alive.Has("Connection: close"));
  EXPECT_TRUE(probe.Ends(1'000));
  EXPECT_EQ(server.ActiveExchanges(), 1);
  server.OnLoop([&] { server.held[0]->Send(200, {}, "last"); });
  const Answer answer = busy.Read();
  EXPECT_EQ(answer.body, "last");
  EXPECT_TRUE(answer.Has("Connection: close"));
  EXPECT_TRUE(busy.Ends(1'000));
  busy.Close();
  upload.Close();
  probe.Close();
  EXPECT_TRUE(Eventually([&] { return server.OpenConnections() == 0; }));
  EXPECT_EQ(server.ActiveExchanges(), 0);
}

TEST(HttpServer, StopClosesEverythingAndExchangesMayOutliveIt) {
  TestServer server;
  Client client(server.port());
  client.Send(kHold);
  ASSERT_TRUE(Eventually([&] { return server.handled == 1; }));
  server.Stop();
  EXPECT_EQ(server.closed, 1);
  EXPECT_TRUE(client.Ends(1'000));
  EXPECT_TRUE(server.held[0]->closed());
  server.held[0]->Send(200, {}, "late");
  server.held.clear();
}

TEST(HttpServer, PortInUseIsSaidSo) {
  TestServer server;
  HttpOptions options;
  options.port = server.port();
  const auto second = HttpServer::Listen(options, nullptr, [](ExchangePtr) {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().reason, "port_in_use");
  EXPECT_NE(second.error().message.find("--port"), std::string::npos);
  options.host = "203.0.113.7";
  options.port = 0;
  EXPECT_EQ(HttpServer::Listen(options, nullptr, [](ExchangePtr) {}).error().reason,
            "cannot_listen");
}

}  // namespace
}  // namespace vivace::server
