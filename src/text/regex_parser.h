// The syntax tree of a pattern, and its parser; only regex_compiler.cc includes this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/char_class.h"

namespace vivace::regex {

inline constexpr uint32_t kUnbounded = ~0u;

enum class NodeKind : uint8_t {
  kEmpty,
  kClass,      // one character of `set`
  kSequence,   // the children one after the other
  kChoice,     // the first child that lets the rest match
  kRepeat,     // the child, `min` to `max` times
  kLookAhead,  // the child, without taking it
  kBehind,     // the character before is of `set`
  kLineBegin,
  kLineEnd,
  kTextBegin,
  kTextEnd,
  kTextEndOrNewline,
  kWordEdge,
};
enum class Greed : uint8_t { kGreedy, kLazy, kPossessive };

struct Node {
  NodeKind kind = NodeKind::kEmpty;
  bool negative = false;  // of kLookAhead, kBehind, kWordEdge
  Greed greed = Greed::kGreedy;
  uint32_t min = 0, max = 0;
  CharClass set{};
  std::vector<Node> children{};
};

// `pattern` must have passed CheckRegex, which bounds its depth.
Result<Node> ParseRegex(std::string_view pattern);

}  // namespace vivace::regex
