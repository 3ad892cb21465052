// Errors as values. Every function that can fail on outside input returns Result<T>; nothing a user
// can send or load throws, aborts or asserts across a folder's boundary.
// Cost: one tl::expected; the error side owns strings and is built on failure only.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace vivace {

// What kind of thing went wrong; each maps to one HTTP status (server/) and one exit code (cli/).
enum class ErrorCode {
  kInvalidArgument,    // the caller's value is wrong: HTTP 400
  kNotFound,           // no such model, path or file: 404
  kResourceExhausted,  // a queue, budget or memory is full: 503
  kDeadlineExceeded,   // 504
  kUnavailable,        // loading, draining, stopped: 503
  kUnsupported,        // understood, not offered: 400 with the name of the thing
  kCorruptData,        // a file lies or is cut: exit 1
  kIo,                 // the system refused: exit 1
  kInternal,           // our fault: 500
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string reason;   // stable slug a program can match, snake_case: "tensor_out_of_file"
  std::string message;  // one sentence a person can act on; no paths of ours, no addresses
  std::string field;    // the parameter, metadata key or tensor at fault; may be empty
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

// Fail(ErrorCode::kCorruptData, "bad_magic", "", "not a GGUF file: starts with {:#x}", word)
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> Fail(ErrorCode code, std::string reason, std::string field,
                                         fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{
      code, std::move(reason), fmt::format(format, std::forward<Args>(args)...), std::move(field)});
}

}  // namespace vivace

#define VIVACE_CONCAT_INNER(a, b) a##b
#define VIVACE_CONCAT(a, b) VIVACE_CONCAT_INNER(a, b)

// Returns the error of `expr` from the enclosing function, if it is one.
#define VIVACE_RETURN_IF_ERROR(expr)                                      \
  do {                                                                    \
    if (auto status_ = (expr); !status_)                                  \
      return tl::unexpected<::vivace::Error>(std::move(status_.error())); \
  } while (false)

// VIVACE_ASSIGN(auto file, MappedFile::Open(path));
#define VIVACE_ASSIGN(lhs, expr) VIVACE_ASSIGN_IMPL(VIVACE_CONCAT(result_, __LINE__), lhs, expr)
#define VIVACE_ASSIGN_IMPL(tmp, lhs, expr)                                  \
  auto tmp = (expr);                                                        \
  if (!tmp) return tl::unexpected<::vivace::Error>(std::move(tmp.error())); \
  lhs = std::move(*tmp)
