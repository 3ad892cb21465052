// Counts what is between the door and its answer, so that the server refuses early and cheaply.
//
// A Ticket is held by a request from the end of its body to the end of its answer and gives its
// place back by itself, on every way out. A body on its way holds none: the HTTP layer bounds
// those. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace vivace::server {

struct AdmissionLimits {
  int64_t max_requests = 0;   // in preparation, waiting and running together
  size_t max_prep_bytes = 0;  // bodies not yet turned into tokens
};

class Admission {
 public:
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // The body has become tokens; its bytes no longer count.
    void EndPrep();
    // Takes more places: a request of several sequences counts as so many.
    Status Grow(int64_t more);
    void Release();

   private:
    friend class Admission;
    Admission* owner_ = nullptr;
    int64_t places_ = 0;
    size_t bytes_ = 0;
  };

  explicit Admission(AdmissionLimits limits) : limits_(limits) {}

  // Whether a request with a body of `bytes` would be let in now.
  Status Check(size_t bytes) const;
  Result<Ticket> Admit(size_t bytes);

  // From now on nothing is let in.
  void BeginDrain() { draining_ = true; }
  bool draining() const { return draining_; }
  int64_t requests() const { return requests_; }
  size_t prep_bytes() const { return prep_bytes_; }

 private:
  AdmissionLimits limits_;
  bool draining_ = false;
  int64_t requests_ = 0;
  size_t prep_bytes_ = 0;
};

}  // namespace vivace::server
