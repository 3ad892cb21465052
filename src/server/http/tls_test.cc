// TLS from a client's side: a server on a socket, and OpenSSL's client before it.
#include "server/http/tls.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <fstream>

#include "server/http/test_client.h"
#include "server/http/test_server.h"
#include "server/http/test_tls_client.h"

namespace vivace::server {
namespace {

using testing::Answer;
using testing::Client;
using ::testing::EndsWith;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::TestCertificate;
using testing::TestServer;
using testing::TlsClient;

constexpr char kHealth[] = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";

int ConnectTo(uint16_t port, int receive_buffer = 0) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

class Tls : public ::testing::Test {
 protected:
  static const TestCertificate& Own() {
    static const TestCertificate own("tls_test_own");
    return own;
  }
  static TlsOptions Files(const TestCertificate& certificate) {
    TlsOptions options;
    options.certificate_file = certificate.certificate_file();
    options.key_file = certificate.key_file();
    return options;
  }
  static std::shared_ptr<const TlsContext> Load(const TlsOptions& options) {
    auto context = TlsContext::Load(options);
    EXPECT_TRUE(context) << context.error().message;
    return *context;
  }
  static HttpOptions WithTls(const TlsOptions& tls = Files(Own())) {
    HttpOptions options;
    options.tls = Load(tls);
    return options;
  }
};

TEST_F(Tls, AnswersOneRequestAfterAnother) {
  TestServer server(WithTls());
  TlsClient client(ConnectTo(server.port()));
  ASSERT_TRUE(client.Connect());
  EXPECT_EQ(client.peer_name(), "tls_test_own");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(kHealth));
    EXPECT_THAT(client.ReadUntil("ok"), HasSubstr("200 OK"));
  }
  ASSERT_TRUE(client.Send("GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.ReadUntil("\r\n0\r\n\r\n"), HasSubstr("chunk 9"));
  EXPECT_TRUE(client.EndsCleanly());
}

// Larger than the socket's buffers both ways: reads and writes stop and go on in mid-record.
TEST_F(Tls, LargeBodiesGoBothWays) {
  TestServer server(WithTls());
  TlsClient client(ConnectTo(server.port(), /*receive_buffer=*/4096));
  ASSERT_TRUE(client.Connect());
  std::string body(3 << 20, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i * 7 % 26);
  ASSERT_TRUE(
      client.Send("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n"));
  ASSERT_TRUE(client.Send(body));
  const std::string answer = client.ReadUntil("no such text");
  ASSERT_THAT(answer, HasSubstr("\r\n\r\n"));
  EXPECT_TRUE(answer.substr(answer.find("\r\n\r\n") + 4) == body);
}

TEST_F(Tls, WhoSpeaksPlainHttpIsTold) {
  TestServer server(WithTls());
  Client client(server.port());
  client.Send(kHealth);
  const Answer answer = client.Read();
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("tls_required"));
  EXPECT_TRUE(client.Ends());
}

TEST_F(Tls, GarbageEndsTheConnectionAndNothingElse) {
  TestServer server(WithTls());
  for (const std::string& bytes : {std::string(1000, '\x16'), std::string(100'000, '\0'),
                                   std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10),
                                   std::string("\x80\x2e\x01\x00\x02", 5)}) {
    Client client(server.port());
    client.Send(bytes);
    client.ShutdownWrite();
    EXPECT_TRUE(client.Ends());
  }
  EXPECT_TRUE(Eventually([&] { return server.OpenConnections() == 0; }));
  EXPECT_EQ(server.handled, 0);
  TlsClient client(ConnectTo(server.port()));
  ASSERT_TRUE(client.Connect());
}

TEST_F(Tls, AHandshakeHasItsTime) {
  HttpOptions options = WithTls();
  options.header_timeout_ms = 50;
  TestServer server(options);
  Client silent(server.port());
  Client slow(server.port());
  slow.Send("\x16\x03\x01\x02");
  EXPECT_TRUE(silent.Ends());
  EXPECT_TRUE(slow.Ends());
  EXPECT_EQ(server.OpenConnections(), 0);
}

TEST_F(Tls, OldVersionsAreRefused) {
  TestServer server(WithTls());
  TlsClient old(ConnectTo(server.port()), nullptr, TLS1_1_VERSION);
  EXPECT_FALSE(old.Connect());
  TlsClient good(ConnectTo(server.port()), nullptr, TLS1_2_VERSION);
  EXPECT_TRUE(good.Connect());
}

TEST_F(Tls, HttpIsWhatWeSpeak) {
  TestServer server(WithTls());
  TlsClient client(ConnectTo(server.port()));
  const unsigned char offered[] = "\x02h2\x08http/1.1";
  SSL_set_alpn_protos(client.session(), offered, sizeof offered - 1);
  ASSERT_TRUE(client.Connect());
  const unsigned char* chosen = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(client.session(), &chosen, &size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), size), "http/1.1");
}

// A client that leaves without a goodbye, in the middle of an answer, is seen to be gone.
TEST_F(Tls, AClientThatLeavesIsGone) {
  TestServer server(WithTls());
  for (const bool goodbye : {true, false}) {
    server.closed = 0;
    {
      TlsClient client(ConnectTo(server.port()));
      ASSERT_TRUE(client.Connect());
      ASSERT_TRUE(client.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"));
      ASSERT_TRUE(Eventually([&] { return server.ActiveExchanges() == 1; }));
      if (goodbye) client.SayGoodbye();
    }
    EXPECT_TRUE(Eventually([&] { return server.closed == 1; })) << goodbye;
  }
}

// TLS 1.3's key updates make a reader write.
TEST_F(Tls, KeysMayChangeOnTheWay) {
  TestServer server(WithTls());
  TlsClient client(ConnectTo(server.port()));
  ASSERT_TRUE(client.Connect());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(SSL_key_update(client.session(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_TRUE(client.Send(kHealth));
    EXPECT_THAT(client.ReadUntil("ok"), HasSubstr("200 OK"));
  }
}

TEST_F(Tls, ANewCertificateIsForNewConnections) {
  TestServer server(WithTls());
  TlsClient before(ConnectTo(server.port()));
  ASSERT_TRUE(before.Connect());
  const TestCertificate renewed("tls_test_renewed");
  server.server().UseTls(Load(Files(renewed)));
  server.OnLoop([] {});
  TlsClient after(ConnectTo(server.port()));
  ASSERT_TRUE(after.Connect());
  EXPECT_EQ(after.peer_name(), "tls_test_renewed");
  ASSERT_TRUE(before.Send(kHealth));
  EXPECT_THAT(before.ReadUntil("ok"), HasSubstr("200 OK"));
}

TEST_F(Tls, ClientsMayHaveToShowACertificate) {
  const TestCertificate authority("tls_test_ca"), other_authority("tls_test_other_ca");
  const TestCertificate known("tls_test_known", &authority);
  const TestCertificate unknown("tls_test_unknown", &other_authority);
  TlsOptions options = Files(Own());
  options.ca_file = authority.certificate_file();
  // TLS 1.3 tells the client of its refusal after the client's handshake is over.
  const auto let_in = [&](const TestServer& server, const TestCertificate* shown) {
    TlsClient client(ConnectTo(server.port()), shown);
    return client.Connect() && client.Send(kHealth) &&
           client.ReadUntil("ok").find("200 OK") != std::string::npos;
  };
  options.client_certificate = ClientCertificate::kRequired;
  TestServer strict(WithTls(options));
  EXPECT_TRUE(let_in(strict, &known));
  EXPECT_FALSE(let_in(strict, &unknown));
  EXPECT_FALSE(let_in(strict, nullptr));
  options.client_certificate = ClientCertificate::kOptional;
  TestServer lax(WithTls(options));
  EXPECT_TRUE(let_in(lax, nullptr));
  EXPECT_FALSE(let_in(lax, &unknown));
}

TEST_F(Tls, FilesThatCannotBeUsedAreNamed) {
  const TestCertificate other("tls_test_other");
  const std::string text = ::testing::TempDir() + "tls_test.txt";
  std::ofstream(text) << "no PEM\n";
  const auto field = [](TlsOptions options) {
    const auto context = TlsContext::Load(options);
    return context ? std::string("none") : context.error().field;
  };
  TlsOptions options = Files(Own());
  EXPECT_EQ(field(options), "none");
  options.key_file = other.key_file();  // of another certificate
  EXPECT_EQ(field(options), "ssl-keyfile");
  options.key_file = "/dev/zero";
  EXPECT_EQ(field(options), "ssl-keyfile");
  options = Files(Own());
  options.certificate_file = text;
  EXPECT_EQ(field(options), "ssl-certfile");
  options.certificate_file.clear();
  EXPECT_EQ(field(options), "ssl-certfile");
  options = Files(Own());
  options.client_certificate = ClientCertificate::kRequired;
  EXPECT_EQ(field(options), "ssl-cert-reqs");
  options.ca_file = text;
  EXPECT_EQ(field(options), "ssl-ca-certs");
  options = Files(Own());
  options.ciphers = "NO-SUCH-CIPHER";
  EXPECT_EQ(field(options), "ssl-ciphers");
}

// It must neither be used nor asked for on the terminal.
TEST_F(Tls, AnEncryptedKeyIsRefused) {
  const std::string file = ::testing::TempDir() + "tls_test_encrypted.key";
  FILE* out = std::fopen(file.c_str(), "w");
  unsigned char password[] = "secret";
  PEM_write_PrivateKey(out, Own().key(), EVP_aes_128_cbc(), password, 6, nullptr, nullptr);
  std::fclose(out);
  TlsOptions options = Files(Own());
  options.key_file = file;
  const auto context = TlsContext::Load(options);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().field, "ssl-keyfile");
}

}  // namespace
}  // namespace vivace::server
