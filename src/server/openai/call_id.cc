#include "server/openai/call_id.h"

#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string_view>

namespace vivace::server {

std::string NewCallId(bool short_form) {
  static thread_local std::mt19937_64 random([] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }());
  if (!short_form) return fmt::format("call_{:016x}{:08x}", random(), random() >> 32);
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::string id(9, '0');
  for (char& c : id) c = kLetters[random() % kLetters.size()];
  return id;
}

}  // namespace vivace::server
