// Sets of Unicode scalar values as sorted ranges, and as character classes of a grammar.
// Pure values; linear in the number of ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vivace::grammar {

class CodePoints {
 public:
  struct Range {
    char32_t low, high;  // both in
    friend bool operator==(const Range&, const Range&) = default;
  };

  CodePoints() = default;
  CodePoints(std::initializer_list<Range> ranges) {
    for (const Range& range : ranges) Add(range.low, range.high);
  }

  // Every scalar value but U+0000, which no JSON text and no output has.
  static CodePoints All();

  void Add(char32_t low, char32_t high);
  void Add(const CodePoints& other);
  CodePoints Complement() const;  // in All()
  CodePoints Intersect(const CodePoints& other) const;
  CodePoints Minus(const CodePoints& other) const { return Intersect(other.Complement()); }

  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

  // "[...]"; the set is not empty.
  std::string ToClass() const;

 private:
  std::vector<Range> ranges_;  // sorted, apart from each other
};

}  // namespace vivace::grammar
