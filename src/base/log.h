// Structured logging that never makes its caller wait.
//
//   log::Info("listening", {{"host", host}, {"port", port}});
//
// A line is formatted on the calling thread (~1 us), put into a bounded lock-free ring and written
// by one thread of the logger's. A full ring (a stalled pipe, a full disk) drops the line and
// counts it. Never log prompts, answers or keys. All functions are safe on any thread.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace vivace::log {

enum class Level { kDebug, kInfo, kWarn, kError };
enum class Format { kText, kJson };

// One key=value. Views only: it lives as long as the call it is written in.
struct Field {
  using Value = std::variant<std::string_view, int64_t, uint64_t, double, bool>;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v) {}
  Field(std::string_view k, std::signed_integral auto v) : key(k), value(int64_t{v}) {}
  Field(std::string_view k, std::unsigned_integral auto v) : key(k), value(uint64_t{v}) {}
  Field(std::string_view k, std::floating_point auto v) : key(k), value(double{v}) {}

  std::string_view key;
  Value value;
};
using Fields = std::initializer_list<Field>;

struct Options {
  Level level = Level::kInfo;
  Format format = Format::kText;
  int fd = 2;                 // borrowed, never closed
  size_t ring_lines = 4'096;  // rounded up to a power of two
};

// The line without its newline; `wall_nanos` is the stamp. Values over limits::kMaxLogFieldBytes
// are cut and end in "...".
std::string FormatLine(Format format, Level level, int64_t wall_nanos, std::string_view message,
                       Fields fields);

class Logger {
 public:
  explicit Logger(const Options& options);
  ~Logger();  // waits at most half a second for lines still in the ring
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool Enabled(Level level) const;
  void Write(Level level, std::string_view message, Fields fields = {});
  // Waits until all lines written so far are with the kernel; false if that took too long.
  bool Flush(int timeout_ms);
  // Lines lost to a full ring or a failed write, since the start.
  uint64_t dropped() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // outlives us in a writer stuck on a dead pipe
};

// The process-wide logger, made on first use with default options and flushed at exit.
Logger& Default();
// Replaces it; at start, before other threads log.
void Configure(const Options& options);

inline void Debug(std::string_view message, Fields fields = {}) {
  Default().Write(Level::kDebug, message, fields);
}
inline void Info(std::string_view message, Fields fields = {}) {
  Default().Write(Level::kInfo, message, fields);
}
inline void Warn(std::string_view message, Fields fields = {}) {
  Default().Write(Level::kWarn, message, fields);
}
inline void Error(std::string_view message, Fields fields = {}) {
  Default().Write(Level::kError, message, fields);
}

}  // namespace vivace::log
