#include "server/http/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>

#include "engine/testing/temp_folder.h"
#include "server/http/test_server.h"

namespace vivace::server {
namespace {

using ::testing::HasSubstr;
using testing::TestServer;

std::string Ask(const std::string& path, std::string_view request) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char bytes[4096];
  for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
    answer.append(bytes, static_cast<size_t>(n));
  }
  close(fd);
  return answer;
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

TEST(UnixSocket, IsServedAndGoneWithTheServer) {
  const vivace::testing::TempFolder folder;
  HttpOptions options;
  options.uds = folder.path() + "/socket";
  {
    TestServer server(options);
    struct stat info;
    ASSERT_EQ(lstat(options.uds.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_THAT(Ask(options.uds, "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
                HasSubstr("200 OK"));
    // A second server does not take it away.
    UnixSocketFile second;
    EXPECT_EQ(second.Listen(options.uds).error().reason, "port_in_use");
  }
  EXPECT_FALSE(Exists(options.uds));
}

TEST(UnixSocket, ReplacesWhatAnEndedServerLeft) {
  const vivace::testing::TempFolder folder;
  const std::string path = folder.path() + "/socket";
  UnixSocketFile first;
  const auto fd = first.Listen(path);
  ASSERT_TRUE(fd) << fd.error().message;
  close(*fd);  // the file stays, as after a crash
  ASSERT_TRUE(Exists(path));
  UnixSocketFile second;
  const auto again = second.Listen(path);
  ASSERT_TRUE(again) << again.error().message;
  second.Remove();
  EXPECT_FALSE(Exists(path));
  close(*again);
}

TEST(UnixSocket, LeavesWhatTookItsPlace) {
  const vivace::testing::TempFolder folder;
  const std::string path = folder.path() + "/socket";
  std::optional<UnixSocketFile> file(std::in_place);
  const auto fd = file->Listen(path);
  ASSERT_TRUE(fd) << fd.error().message;
  unlink(path.c_str());
  std::ofstream(path) << "mine";
  file.reset();
  EXPECT_TRUE(Exists(path));
  close(*fd);
}

TEST(UnixSocket, AFileThatIsNoSocketStays) {
  const vivace::testing::TempFolder folder;
  const std::string path = folder.path() + "/notes";
  std::ofstream(path) << "mine";
  UnixSocketFile file;
  EXPECT_THAT(file.Listen(path).error().message, HasSubstr("no socket"));
  EXPECT_TRUE(Exists(path));
  EXPECT_EQ(file.Listen("").error().field, "uds");
  EXPECT_EQ(file.Listen(folder.path() + "/none/socket").error().field, "uds");
  EXPECT_THAT(file.Listen("/tmp/" + std::string(200, 'a')).error().message, HasSubstr("bytes"));
}

}  // namespace
}  // namespace vivace::server
