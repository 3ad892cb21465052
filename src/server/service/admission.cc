#include "server/service/admission.h"

#include <utility>

namespace vivace::server {
namespace {

tl::unexpected<Error> Overloaded() {
  return Fail(ErrorCode::kResourceExhausted, "server_is_overloaded", "",
              "the server has all the requests it can hold; try again later");
}

}  // namespace

Admission::Ticket::Ticket(Ticket&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), places_(other.places_), bytes_(other.bytes_) {}

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Release();
  owner_ = std::exchange(other.owner_, nullptr);
  places_ = other.places_;
  bytes_ = other.bytes_;
  return *this;
}

void Admission::Ticket::EndPrep() {
  if (owner_ == nullptr) return;
  owner_->prep_bytes_ -= std::exchange(bytes_, 0);
}

Status Admission::Ticket::Grow(int64_t more) {
  if (owner_ == nullptr || more <= 0) return {};
  // A lone request may be larger than the limit, or it could never run.
  const int64_t others = owner_->requests_ - places_;
  if (others > 0 && owner_->requests_ + more > owner_->limits_.max_requests) return Overloaded();
  owner_->requests_ += more;
  places_ += more;
  return {};
}

void Admission::Ticket::Release() {
  EndPrep();
  if (owner_ == nullptr) return;
  owner_->requests_ -= places_;
  owner_ = nullptr;
}

Status Admission::Check(size_t bytes) const {
  if (draining_) {
    return Fail(ErrorCode::kUnavailable, "shutting_down", "", "the server is shutting down");
  }
  if (requests_ >= limits_.max_requests) return Overloaded();
  // As above: one body alone is bounded by the HTTP layer and always let in.
  if (prep_bytes_ > 0 && prep_bytes_ + bytes > limits_.max_prep_bytes) return Overloaded();
  return {};
}

Result<Admission::Ticket> Admission::Admit(size_t bytes) {
  VIVACE_RETURN_IF_ERROR(Check(bytes));
  Ticket ticket;
  ticket.owner_ = this;
  ticket.places_ = 1;
  ticket.bytes_ = bytes;
  requests_ += 1;
  prep_bytes_ += bytes;
  return ticket;
}

}  // namespace vivace::server
