// The edge between code that may throw (the standard library, when memory runs out) and threads
// where nothing may: what is thrown becomes an error.
#pragma once

#include <exception>
#include <new>

#include "base/log.h"
#include "base/result.h"

namespace vivace::server {

// `work` returns a Result.
template <typename Work>
auto WithoutThrowing(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kResourceExhausted, "out_of_memory", "",
                "the server has too little memory for this request now; try again later");
  } catch (const std::exception& e) {
    log::Error("preparing a request threw", {{"what", e.what()}});
    return Fail(ErrorCode::kInternal, "internal_error", "",
                "the server failed to prepare this request");
  }
}

}  // namespace vivace::server
