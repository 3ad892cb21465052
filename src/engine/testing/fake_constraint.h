// A constraint of a few lines for tests: the parity of a token must be that of its place in the
// output, some places force tokens, and the output has a length. Notes what is asked of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sample/token_constraint.h"

namespace vivace::testing {

struct FakeRules {
  int32_t vocab = 0;
  int32_t forced_every = 0;  // an output of such a multiple is followed by forced tokens; 0: none
  int32_t num_forced = 0;
  int32_t length = std::numeric_limits<int32_t>::max();  // of a complete output

  static bool Allows(size_t place, TokenId token) {
    return token % 2 == static_cast<int>(place % 2);
  }
  TokenId ForcedAt(size_t place) const {
    return static_cast<TokenId>((place * 14 + place % 2) % static_cast<size_t>(vocab / 2 * 2));
  }
  // How many tokens are forced behind so many.
  int32_t ForcedBehind(size_t outputs) const {
    if (forced_every == 0 || static_cast<int32_t>(outputs) % forced_every != 0) return 0;
    return std::min(num_forced, length - static_cast<int32_t>(outputs));
  }
};

class FakeConstraint final : public TokenConstraint {
 public:
  explicit FakeConstraint(const FakeRules& rules) : rules_(rules) { output_.reserve(1 << 12); }

  bool FillMask(int32_t remaining, std::span<uint32_t> mask) override {
    last_remaining_ = remaining;
    for (uint32_t& word : mask) word = output_.size() % 2 == 0 ? 0x55555555u : 0xaaaaaaaau;
    return true;
  }
  bool Accept(TokenId token) override {
    if (refuses || !FakeRules::Allows(output_.size(), token)) return false;
    output_.push_back(token);
    return true;
  }
  bool Done() const override { return std::ssize(output_) >= rules_.length; }
  void Forced(int32_t limit, std::vector<TokenId>* tokens) override {
    const int32_t count = std::min(limit, rules_.ForcedBehind(output_.size()));
    for (int32_t i = 0; i < count; ++i) {
      tokens->push_back(rules_.ForcedAt(output_.size() + static_cast<size_t>(i)));
    }
  }
  bool steered() const override { return false; }

  const std::vector<TokenId>& output() const { return output_; }  // accepted so far
  int32_t last_remaining() const { return last_remaining_; }

  bool refuses = false;  // whatever comes

 private:
  const FakeRules rules_;
  std::vector<TokenId> output_;
  int32_t last_remaining_ = -1;
};

}  // namespace vivace::testing
