// The server against clients that mean harm: the corpus of malformed requests, drips, floods.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "base/limits.h"
#include "server/http/test_client.h"
#include "server/http/test_server.h"
#include "support/paths.h"

namespace vivace::server {
namespace {

using testing::Answer;
using testing::Client;
using testing::Eventually;
using testing::TestServer;

constexpr char kHealth[] = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr char kSmuggled[] = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void ExpectHealthy(uint16_t port) {
  Client client(port);
  client.Send(kHealth);
  EXPECT_EQ(client.Read().body, "ok");
}

// One corpus file: its first answer's status, whether the server closes, and whether it still
// lives.
void Replay(TestServer& server, const boost::json::object& entry, const std::string& bytes,
            bool whole) {
  const std::string name(entry.at("name").as_string());
  const std::string label = name + (whole ? " whole" : " byte by byte");
  Client client(server.port());
  if (whole) {
    client.Send(bytes);
  } else {
    client.SendByteByByte(bytes);
  }
  if (name == "http/body_cut.http") client.ShutdownWrite();
  const Answer answer = client.Read();
  const boost::json::array& allowed = entry.at("status").as_array();
  EXPECT_NE(std::find(allowed.begin(), allowed.end(), boost::json::value(answer.status)),
            allowed.end())
      << label << ": " << answer.status;
  if (answer.status >= 400) {
    boost::system::error_code error;
    const auto body = boost::json::parse(answer.body, error);
    EXPECT_FALSE(error) << label << ": " << answer.body;
    EXPECT_TRUE(body.at("error").at("message").is_string()) << label;
  }
  if (entry.at("must_close").as_bool()) {
    EXPECT_TRUE(client.Ends(3'000)) << label;
    EXPECT_EQ(client.rest(), "") << label << ": a second answer";
  }
  ExpectHealthy(server.port());
}

TEST(HostileClient, CorpusGetsItsVerdicts) {
  const std::string folder = vivace::testing::SourceDir() + "/../shared/cases/bad/";
  const std::string manifest = ReadFile(folder + "manifest.json");
  if (manifest.empty()) GTEST_SKIP() << "no corpus at ../shared/cases/bad";
  TestServer server;
  int replayed = 0;
  const boost::json::value corpus = boost::json::parse(manifest);
  for (const auto& value : corpus.at("cases").as_array()) {
    const boost::json::object& entry = value.as_object();
    const std::string name(entry.at("name").as_string());
    if (!name.starts_with("http/")) continue;
    const std::string bytes = ReadFile(folder + name);
    ASSERT_FALSE(bytes.empty()) << name;
    Replay(server, entry, bytes, true);
    Replay(server, entry, bytes, false);
    ++replayed;
  }
  EXPECT_GT(replayed, 20);
}

// Two requests behind one ambiguous head: the second is never answered as one of its own.
TEST(HostileClient, NoSpellingSmugglesASecondRequest) {
  TestServer server;
  const std::string body = "0\r\n\r\n";
  const std::vector<std::string> ambiguous = {"Content-Length: 5\r\nTransfer-Encoding: chunked",
                                              "Transfer-Encoding: chunked\r\nContent-Length: 5",
                                              "Transfer-Encoding: xchunked",
                                              "Transfer-Encoding: Chunked",
                                              "Transfer-Encoding:\tchunked",
                                              "Transfer-Encoding: chunked, gzip",
                                              "Transfer-Encoding: identity\r\nContent-Length: 5",
                                              "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
                                              "Transfer-Encoding : chunked",
                                              "Transfer-Encoding\r\n : chunked",
                                              " Transfer-Encoding: chunked",
                                              "X: y\n Transfer-Encoding: chunked",
                                              "Content-Length: 5\r\nContent-Length: 0",
                                              "Content-Length: 05",
                                              "Content-Length: +5",
                                              "Content-Length: 5, 5",
                                              "Content-Length: 5 ,",
                                              "Content-Length: 0x5",
                                              "Content-Length:\t5",
                                              "Content-Length: 5\r\ncontent-length: 5",
                                              "Content-Length: 5\x0b",
                                              "Content-Length: -0",
                                              "Host: b",
                                              "Content-Encoding: gzip\r\nContent-Length: 5"};
  for (const std::string& fields : ambiguous) {
    Client client(server.port());
    client.Send("POST /echo HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n\r\n" + body + kSmuggled);
    const Answer answer = client.Read();
    EXPECT_GE(answer.status, 400) << fields;
    EXPECT_TRUE(client.Ends(3'000)) << fields;
    EXPECT_EQ(client.rest(), "") << fields;
  }
  EXPECT_EQ(server.handled, 0);
}

TEST(HostileClient, BodyLimitIsExactAndCountsDecodedBytes) {
  TestServer server({.max_body_bytes = 1'000});
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  const auto chunked = [&](int bytes) {
    std::string request = head + "Transfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < bytes; ++i) request += "1\r\nx\r\n";
    return request + "0\r\n\r\n";
  };
  Client client(server.port());
  client.Send(head + "Content-Length: 1000\r\n\r\n" + std::string(1'000, 'x'));
  EXPECT_EQ(client.Read().body.size(), 1'000u);
  client.Send(chunked(1'000));
  EXPECT_EQ(client.Read().body.size(), 1'000u);
  constexpr char kLimit[] = "At most 1000 bytes are taken (--max-body-bytes).";
  client.Send(chunked(1'001));
  const auto refused = client.Read();
  EXPECT_EQ(refused.status, 413);
  EXPECT_NE(refused.body.find(kLimit), std::string::npos) << refused.body;
  EXPECT_TRUE(client.Ends(3'000));
  Client declared(server.port());
  declared.Send(head + "Content-Length: 1001\r\n\r\n");
  const auto early = declared.Read();
  EXPECT_EQ(early.status, 413) << "from the header alone";
  EXPECT_NE(early.body.find(kLimit), std::string::npos) << early.body;
}

// A page of another origin reads these errors too, and whoever reports one can say which it was.
TEST(HostileClient, RefusalsOfTheHeadKnowTheRequest) {
  HttpOptions options;
  options.max_body_bytes = 1'000;
  options.error_headers = [](const EarlyRequest& request) {
    return Headers{
        {"x-seen", fmt::format("<{} {} {}>", request.path, request.origin, request.request_id)}};
  };
  TestServer server(options);
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  const std::string wrong[] = {"Content-Length: 1001\r\n\r\n", "Content-Length: x\r\n\r\n",
                               "X: " + std::string(limits::kMaxHeaderBytes, 'x'),
                               "Transfer-Encoding: chunked\r\n\r\nx\r\n"};
  const std::pair<std::string, const char*> known[] = {
      {"Origin: http://p\r\n", "x-seen: </echo http://p >"},
      {"X-Request-Id: me-1\r\noRiGiN:http://p\r\n", "x-seen: </echo http://p me-1>"},
      {"", "x-seen: </echo  >"}};
  for (const std::string& rest : wrong) {
    for (const auto& [fields, header] : known) {
      Client client(server.port());
      client.Send(head + fields + rest);
      const auto answer = client.Read();
      EXPECT_GE(answer.status, 400);
      EXPECT_TRUE(answer.Has(header)) << answer.head;
    }
  }
  Client blanks(server.port());
  blanks.Send(head + "Origin: a b\r\nX-Request-Id: m e\r\n" + wrong[0]);
  EXPECT_TRUE(blanks.Read().Has("x-seen: </echo  >"));
}

TEST(HostileClient, DripsAreClosedInTimeWhateverTheySend) {
  TestServer server({.header_timeout_ms = 300, .body_timeout_ms = 300, .idle_timeout_ms = 300});
  Client header(server.port()), body(server.port()), silent(server.port()), kept(server.port());
  header.Send("G");
  body.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
  kept.Send(kHealth);
  EXPECT_EQ(kept.Read().status, 200);
  for (int i = 0; i < 8; ++i) {  // each byte on time, the whole never
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    header.Send(i == 0 ? "E" : "T");
    body.Send("x");
  }
  EXPECT_EQ(header.Read(1'000).status, 408);
  EXPECT_EQ(body.Read(1'000).status, 408);
  EXPECT_TRUE(header.Ends(1'000));
  EXPECT_TRUE(body.Ends(1'000));
  EXPECT_TRUE(silent.Ends(1'000));
  EXPECT_TRUE(kept.Ends(1'000));
}

TEST(HostileClient, HundredsOfIdleAndDrippingConnectionsDelayNobody) {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 1'300) {
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4'096);
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (files.rlim_cur < 1'300) GTEST_SKIP() << "only " << files.rlim_cur << " descriptors";
  TestServer server;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    ASSERT_TRUE(clients.back()->connected());
    if (i % 2) clients.back()->Send("GET /he");
  }
  ASSERT_TRUE(Eventually([&] { return server.OpenConnections() == 500; }));
  for (int round = 0; round < 20; ++round) {
    for (int i = 1; i < 500; i += 2) clients[static_cast<size_t>(i)]->Send("a");
    ExpectHealthy(server.port());  // well before the drippers' time is up
  }
  clients.clear();
  EXPECT_TRUE(Eventually([&] { return server.OpenConnections() == 0; }));
}

TEST(HostileClient, AtTheCapNewClientsWaitAndAreServedLater) {
  TestServer server({.max_connections = 8});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    if (i >= 8) continue;
    clients.back()->Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(Eventually([&] { return server.handled == i + 1; }));
  }
  clients[11]->Send(kHealth);
  EXPECT_EQ(clients[11]->Read(100).status, 0);
  EXPECT_EQ(server.OpenConnections(), 8);
  EXPECT_EQ(server.handled, 8);
  for (int i = 0; i < 4; ++i) clients[static_cast<size_t>(i)]->Close();
  EXPECT_EQ(clients[11]->Read(2'000).body, "ok");
}

TEST(HostileClient, IdleConnectionsGiveWayAtTheCap) {
  TestServer server({.max_connections = 8});
  Client busy(server.port());
  busy.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return server.handled == 1; }));
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 7; ++i) {
    idle.push_back(std::make_unique<Client>(server.port()));
    idle.back()->Send(kHealth);
    EXPECT_EQ(idle.back()->Read().status, 200);
  }
  idle[0]->Send(kHealth);  // now idle[1] is the longest idle
  EXPECT_EQ(idle[0]->Read().status, 200);
  Client late(server.port());
  late.Send(kHealth);
  EXPECT_EQ(late.Read().body, "ok");
  EXPECT_TRUE(idle[1]->Ends(1'000));
  EXPECT_EQ(server.OpenConnections(), 8);
  for (const size_t kept : {0, 2, 3, 4, 5, 6}) {
    idle[kept]->Send(kHealth);
    EXPECT_EQ(idle[kept]->Read().status, 200) << kept;
  }
  server.OnLoop([&] { server.held[0]->Send(200, {}, "kept"); });
  EXPECT_EQ(busy.Read().body, "kept");
}

// Out of descriptors: no spin, and service again once there are some.
TEST(HostileClient, ExhaustedDescriptorsPauseAcceptWithoutSpinning) {
  TestServer server({.max_connections = 100'000});
  Client before(server.port());
  before.Send(kHealth);
  EXPECT_EQ(before.Read().status, 200);
  std::vector<int> eaten;
  rlimit files, low;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  low = files;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int fd; (fd = dup(0)) >= 0;) eaten.push_back(fd);
  close(eaten.back());
  eaten.pop_back();
  Client starved(server.port());  // our end takes the last one; the server gets EMFILE
  ASSERT_TRUE(starved.connected());
  starved.Send(kHealth);
  rusage start, end;
  getrusage(RUSAGE_SELF, &start);
  EXPECT_EQ(starved.Read(700).status, 0);
  getrusage(RUSAGE_SELF, &end);
  const auto micros = [](const timeval& t) { return t.tv_sec * 1'000'000 + t.tv_usec; };
  const int64_t spent =
      micros(end.ru_utime) + micros(end.ru_stime) - micros(start.ru_utime) - micros(start.ru_stime);
  for (int fd : eaten) close(fd);
  setrlimit(RLIMIT_NOFILE, &files);
  EXPECT_LT(spent, 200'000) << "microseconds of CPU in 0.7 s";
  EXPECT_EQ(starved.Read(2'000).body, "ok");
}

// A refusal costs no body and little memory, however much is sent.
TEST(HostileClient, RefusedBodiesAreThrownAway) {
  TestServer server;
  const std::string head = "POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
  const std::string body(1'000'000, 'r');
  for (int i = 0; i < 100; ++i) {
    Client client(server.port());
    client.Send(head + body);
    EXPECT_EQ(client.Read().status, 404);
  }
  EXPECT_TRUE(Eventually([&] { return server.OpenConnections() == 0; }));
}

TEST(HostileClient, ThrowingAwayEnds) {
  TestServer server;
  Client client(server.port());
  const size_t bytes = limits::kMaxBodyBytes - 1;  // far past kMaxDiscardBytes and socket buffers
  client.Send("POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(bytes) +
              "\r\n\r\n");
  EXPECT_EQ(client.Read().status, 404);
  EXPECT_FALSE(client.Send(std::string(bytes, 'x')));
  EXPECT_TRUE(Eventually([&] { return server.OpenConnections() == 0; }, 3'000));
}

}  // namespace
}  // namespace vivace::server
