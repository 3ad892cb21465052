#include "base/log.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/limits.h"

namespace vivace::log {
namespace {

constexpr std::string_view kLevelNames[] = {"debug", "info", "warn", "error"};
constexpr int kExitFlushMs = 500;
constexpr int kPollMs = 50;  // how often a writer on a full pipe looks whether it should give up

std::string_view LevelName(Level level) { return kLevelNames[static_cast<size_t>(level)]; }

// 2026-01-31T12:00:00.123Z
void AppendStamp(std::string& out, int64_t wall_nanos) {
  const time_t seconds = wall_nanos / kNanosPerSecond;
  tm utc;
  gmtime_r(&seconds, &utc);
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                 utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                 utc.tm_sec, wall_nanos % kNanosPerSecond / 1'000'000);
}

bool IsPlain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7F && c != '"' && c != '=' && c != '\\';
  });
}

void AppendText(std::string& out, std::string_view text, bool always_quote) {
  const bool cut = text.size() > limits::kMaxLogFieldBytes;
  std::string shortened;
  if (cut) {
    shortened.assign(text.substr(0, limits::kMaxLogFieldBytes)).append("...");
    text = shortened;
  }
  if (!always_quote && IsPlain(text)) {
    out += text;
  } else {
    AppendJsonString(out, text);
  }
}

void AppendValue(std::string& out, const Field::Value& value, bool json) {
  struct Visitor {
    std::string& out;
    bool json;
    void operator()(std::string_view v) const { AppendText(out, v, json); }
    void operator()(bool v) const { out += v ? "true" : "false"; }
    void operator()(int64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
    void operator()(uint64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
    void operator()(double v) const {  // JSON has no NaN and no infinity
      const std::string_view quote = json && !std::isfinite(v) ? "\"" : "";
      fmt::format_to(std::back_inserter(out), "{}{:g}{}", quote, v, quote);
    }
  };
  std::visit(Visitor{out, json}, value);
}

std::string FormatJson(Level level, int64_t wall_nanos, std::string_view message, Fields fields) {
  std::string line = R"({"time":")";
  AppendStamp(line, wall_nanos);
  line.append(R"(","level":")").append(LevelName(level)).append(R"(","message":)");
  AppendText(line, message, true);
  for (const Field& field : fields) {
    line += ',';
    AppendText(line, field.key, true);
    line += ':';
    AppendValue(line, field.value, true);
  }
  return line += '}';
}

std::string FormatPlain(Level level, int64_t wall_nanos, std::string_view message, Fields fields) {
  std::string line;
  AppendStamp(line, wall_nanos);
  fmt::format_to(std::back_inserter(line), " {:<5} ", LevelName(level));
  // A message is a literal of ours; quoted only if it would break the line.
  const bool breaks = std::any_of(message.begin(), message.end(),
                                  [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (breaks || message.size() > limits::kMaxLogFieldBytes) {
    AppendText(line, message, true);
  } else {
    line += message;
  }
  for (const Field& field : fields) {
    line += ' ';
    AppendText(line, field.key, false);
    line += '=';
    AppendValue(line, field.value, false);
  }
  return line;
}

// Bounded queue of lines, many producers, one consumer, after D. Vyukov: a slot's sequence says
// whose turn it is. Neither side waits for the other.
class Ring {
 public:
  explicit Ring(size_t slots) : slots_(std::bit_ceil(std::max<size_t>(slots, 2))) {
    for (size_t i = 0; i < slots_.size(); ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  // False, and the line untouched, if full.
  bool Push(std::string&& line) {
    size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      const size_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (!tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        slot.line = std::move(line);
        slot.turn.store(at + 1, std::memory_order_release);
        return true;
      }
      if (turn < at) return false;
      at = tail_.load(std::memory_order_relaxed);
    }
  }

  std::optional<std::string> Pop() {
    Slot& slot = slots_[head_ & (slots_.size() - 1)];
    if (slot.turn.load(std::memory_order_acquire) != head_ + 1) return std::nullopt;
    std::string line = std::move(slot.line);
    slot.turn.store(head_ + slots_.size(), std::memory_order_release);
    ++head_;
    return line;
  }

 private:
  struct Slot {
    std::atomic<size_t> turn;
    std::string line;
  };
  std::vector<Slot> slots_;
  alignas(64) std::atomic<size_t> tail_{0};
  alignas(64) size_t head_ = 0;
};

}  // namespace

std::string FormatLine(Format format, Level level, int64_t wall_nanos, std::string_view message,
                       Fields fields) {
  return format == Format::kJson ? FormatJson(level, wall_nanos, message, fields)
                                 : FormatPlain(level, wall_nanos, message, fields);
}

struct Logger::State {
  explicit State(const Options& o) : options(o), ring(o.ring_lines) {}

  void Run();
  bool WriteAll(std::string_view bytes);
  void ReportDrops();

  const Options options;
  Ring ring;
  std::atomic<uint64_t> accepted{0};  // lines in the ring or past it
  std::atomic<uint64_t> finished{0};  // lines the kernel has, or that failed
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint32_t> bell{0};  // rung for each line; the writer sleeps on it
  std::atomic<bool> stopping{false};
  uint64_t reported_drops = 0;  // the writer's own
  std::atomic<bool> done{false};
  std::thread thread;
};

// Pieces of at most PIPE_BUF after POLLOUT never block on a pipe, so a stuck reader is only polled.
bool Logger::State::WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd ready = {options.fd, POLLOUT, 0};
    const int count = poll(&ready, 1, kPollMs);
    if (count == 0 || (count < 0 && errno == EINTR)) {
      if (stopping.load()) return false;
      continue;
    }
    const ssize_t n = write(options.fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void Logger::State::ReportDrops() {
  const uint64_t now = dropped.load(std::memory_order_relaxed);
  if (now == reported_drops) return;
  std::string line = FormatLine(options.format, Level::kWarn, WallNanos(), "log lines dropped",
                                {{"count", now - reported_drops}, {"total", now}});
  reported_drops = now;
  WriteAll(line += '\n');
}

void Logger::State::Run() {
  // Signals belong to other threads; SIGPIPE of a dead reader becomes EPIPE.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    const uint32_t heard = bell.load(std::memory_order_acquire);
    while (std::optional<std::string> line = ring.Pop()) {
      if (!WriteAll(*line += '\n')) dropped.fetch_add(1, std::memory_order_relaxed);
      finished.fetch_add(1, std::memory_order_release);
    }
    ReportDrops();
    if (stopping.load()) break;
    bell.wait(heard, std::memory_order_acquire);
  }
  done.store(true);
}

Logger::Logger(const Options& options) : state_(std::make_shared<State>(options)) {
  state_->thread = std::thread([state = state_] { state->Run(); });
}

Logger::~Logger() {
  Flush(kExitFlushMs);
  state_->stopping.store(true);
  state_->bell.fetch_add(1, std::memory_order_release);
  state_->bell.notify_one();
  // WriteAll gives up within kPollMs once stopping; only a write that blocks in the kernel remains.
  for (int waited = 0; !state_->done.load() && waited < 2 * kPollMs; ++waited) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (state_->done.load()) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

bool Logger::Enabled(Level level) const { return level >= state_->options.level; }
uint64_t Logger::dropped() const { return state_->dropped.load(std::memory_order_relaxed); }

void Logger::Write(Level level, std::string_view message, Fields fields) {
  if (!Enabled(level)) return;
  State& state = *state_;
  if (!state.ring.Push(FormatLine(state.options.format, level, WallNanos(), message, fields))) {
    state.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  state.accepted.fetch_add(1, std::memory_order_release);
  state.bell.fetch_add(1, std::memory_order_release);
  state.bell.notify_one();
}

bool Logger::Flush(int timeout_ms) {
  const uint64_t target = state_->accepted.load(std::memory_order_acquire);
  const int64_t deadline = SteadyNanos() + int64_t{timeout_ms} * 1'000'000;
  while (state_->finished.load(std::memory_order_acquire) < target) {
    if (SteadyNanos() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

namespace {

std::atomic<Logger*> default_logger{nullptr};

void FlushDefault() {
  if (Logger* logger = default_logger.load()) logger->Flush(kExitFlushMs);
}

// Never destroyed: threads may log until the very end.
Logger* Install(const Options& options) {
  static const int registered = std::atexit(FlushDefault);
  static_cast<void>(registered);
  return new Logger(options);
}

}  // namespace

Logger& Default() {
  if (Logger* logger = default_logger.load(std::memory_order_acquire)) return *logger;
  static Logger* const first = Install({});
  Logger* expected = nullptr;
  default_logger.compare_exchange_strong(expected, first);
  return *default_logger.load(std::memory_order_acquire);
}

void Configure(const Options& options) { delete default_logger.exchange(Install(options)); }

}  // namespace vivace::log
