#include "grammar/number_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace vivace::grammar {
namespace {

constexpr size_t kMostDigits = 15;  // of a number in all: a double keeps them apart

std::string Digits(char low, char high) {
  return low == high ? fmt::format("[{}]", low) : fmt::format("[{}-{}]", low, high);
}

std::string AnyDigits(size_t min, size_t max) {
  return Repeat("[0-9]", static_cast<int64_t>(min), static_cast<int64_t>(max));
}

// Numbers of one length from `low` to `high`, digit by digit.
std::string SameLength(std::string_view low, std::string_view high) {
  if (low.empty()) return std::string(kEmptyExpression);
  const size_t rest = low.size() - 1;
  if (low[0] == high[0]) {
    if (rest == 0) return Digits(low[0], low[0]);
    return Seq({Digits(low[0], low[0]), SameLength(low.substr(1), high.substr(1))});
  }
  std::vector<std::string> options;
  const std::string zeros(rest, '0'), nines(rest, '9');
  char from = low[0], to = high[0];
  if (low.substr(1) != zeros) {
    options.push_back(Seq({Digits(from, from), SameLength(low.substr(1), nines)}));
    ++from;
  }
  std::string last;
  if (high.substr(1) != nines) {
    last = Seq({Digits(to, to), SameLength(zeros, high.substr(1))});
    --to;
  }
  if (from <= to) {
    options.push_back(rest == 0 ? Digits(from, to)
                                : Seq({Digits(from, to), AnyDigits(rest, rest)}));
  }
  if (!last.empty()) options.push_back(last);
  return Either(options);
}

// From `low` to `high`, neither negative.
std::string NaturalRange(int64_t low, int64_t high) {
  std::vector<std::string> options;
  while (low <= high) {
    const std::string text = std::to_string(low);
    const std::string nines(text.size(), '9');
    const int64_t end =
        std::min(high, static_cast<int64_t>(std::strtoll(nines.c_str(), nullptr, 10)));
    options.push_back(SameLength(text, std::to_string(end)));
    low = end + 1;
  }
  return Either(options);
}

// A number that is not negative: digits before and behind the point, without zeros at the ends.
struct Decimal {
  int64_t whole = 0;
  std::string fraction;
};

struct Edge {
  Decimal at;
  bool strict = false;
};

Decimal ToDecimal(double magnitude) {
  // The shortest text that reads back the same, written without an exponent.
  const std::string text = fmt::format("{}", magnitude);
  const size_t e = text.find('e');
  std::string digits;
  long exponent = e == std::string::npos ? 0 : std::strtol(text.c_str() + e + 1, nullptr, 10);
  long point = -1;
  for (const char c : text.substr(0, e)) {
    if (c == '.') {
      point = static_cast<long>(digits.size());
    } else {
      digits += c;
    }
  }
  point = (point < 0 ? static_cast<long>(digits.size()) : point) + exponent;
  if (point < 0) {
    digits.insert(0, static_cast<size_t>(-point), '0');
    point = 0;
  }
  const auto split = static_cast<size_t>(point);
  if (digits.size() < split) digits.append(split - digits.size(), '0');
  Decimal out;
  out.whole = std::strtoll(digits.substr(0, split).c_str(), nullptr, 10);
  out.fraction = digits.substr(split);
  while (!out.fraction.empty() && out.fraction.back() == '0') out.fraction.pop_back();
  return out;
}

// The digits behind a point, with a bound below, above or on both sides, as one expression that
// follows the digits up to `at`. A side is tight while all digits so far are its bound's.
class Fraction {
 public:
  // Behind whole numbers of up to `whole`.
  Fraction(int64_t whole, const Edge* low, const Edge* high)
      : low_(low),
        high_(high),
        most_(std::max({kMostDigits - std::min(std::to_string(whole).size(), kMostDigits - 1),
                        Length(low) + 1, Length(high) + 1})) {}

  // Nothing or a point with digits; nothing at all where no value is left.
  std::optional<std::string> Write() const {
    const auto digits = Step(0, low_ != nullptr, high_ != nullptr);
    const bool none = MayEnd(0, low_ != nullptr, high_ != nullptr);
    if (!digits) return none ? std::optional(std::string(kEmptyExpression)) : std::nullopt;
    const std::string some = Seq({Literal("."), *digits});
    return none ? Optional(some) : some;
  }

 private:
  static size_t Length(const Edge* edge) { return edge == nullptr ? 0 : edge->at.fraction.size(); }
  static char DigitOf(const Edge* edge, size_t i) {
    return i < Length(edge) ? edge->at.fraction[i] : '0';
  }

  bool MayEnd(size_t i, bool tight_low, bool tight_high) const {
    if (tight_low && (i < Length(low_) || low_->strict)) return false;
    return !tight_high || i < Length(high_) || !high_->strict;
  }

  // At least one more digit.
  std::optional<std::string> Step(size_t i, bool tight_low, bool tight_high) const {
    if (i >= most_) return std::nullopt;
    if (!tight_low && !tight_high) return AnyDigits(1, most_ - i);
    const char low = tight_low ? DigitOf(low_, i) : '0';
    const char high = tight_high ? DigitOf(high_, i) : '9';
    std::vector<std::string> options;
    const auto add = [&](char from, char to, bool at_low, bool at_high) {
      if (from > to) return;
      const auto more = Step(i + 1, at_low, at_high);
      const bool end = MayEnd(i + 1, at_low, at_high);
      if (!more && !end) return;
      std::string rest = !more ? std::string(kEmptyExpression) : end ? Optional(*more) : *more;
      options.push_back(Seq({Digits(from, to), std::move(rest)}));
    };
    if (low == high) {
      add(low, low, tight_low, tight_high);
    } else {
      if (tight_low) add(low, low, true, false);
      add(static_cast<char>(low + tight_low), static_cast<char>(high - tight_high), false, false);
      if (tight_high) add(high, high, false, true);
    }
    if (options.empty()) return std::nullopt;
    return Either(options);
  }

  const Edge* low_;
  const Edge* high_;
  size_t most_;
};

constexpr double kMostBound = 1e15;
constexpr int64_t kMostWholePart = 999'999'999'999'999;

// The numbers from `low` to `high`, neither negative; an absent end is none.
std::optional<std::string> PositiveRange(const Edge& low, const std::optional<Edge>& high) {
  const int64_t last = high ? high->at.whole : kMostWholePart + 1;
  if (low.at.whole > last) return std::nullopt;
  std::vector<std::string> options;
  const auto add = [&](int64_t first, int64_t until, const Edge* from, const Edge* to) {
    const auto fraction = Fraction(until, from, to).Write();
    if (fraction) options.push_back(Seq({NaturalRange(first, until), *fraction}));
  };
  if (low.at.whole == last && high) {
    add(last, last, &low, &*high);
  } else {
    add(low.at.whole, low.at.whole, &low, nullptr);
    if (low.at.whole + 1 <= last - 1) {
      add(low.at.whole + 1, last - 1, nullptr, nullptr);
    }
    if (high) add(last, last, nullptr, &*high);
  }
  if (options.empty()) return std::nullopt;
  return Either(options);
}

}  // namespace

std::string WholeRange(int64_t low, int64_t high) {
  std::vector<std::string> options;
  if (high >= 0) options.push_back(NaturalRange(std::max<int64_t>(low, 0), high));
  if (low < 0) {
    const int64_t nearest = std::max<int64_t>(1, -std::min<int64_t>(high, -1));
    options.push_back(Seq({Literal("-"), NaturalRange(nearest, -low)}));
  }
  return Either(options);
}

std::optional<std::string> NumberRange(const std::optional<NumberBound>& lower,
                                       const std::optional<NumberBound>& upper) {
  for (const auto* bound : {&lower, &upper}) {
    if (*bound && std::abs((*bound)->value) >= kMostBound) return std::nullopt;
  }
  std::vector<std::string> options;
  const auto edge = [](const NumberBound& bound) {
    return Edge{ToDecimal(static_cast<double>(std::abs(bound.value))), bound.strict};
  };
  if (!upper || upper->value >= 0) {
    const Edge from = lower && lower->value >= 0 ? edge(*lower) : Edge{};
    const auto to = upper ? std::optional(edge(*upper)) : std::nullopt;
    if (auto part = PositiveRange(from, to)) options.push_back(*part);
  }
  if (!lower || lower->value < 0) {
    const Edge from = upper && upper->value < 0 ? edge(*upper) : Edge{{}, /*strict=*/true};
    const auto to = lower ? std::optional(edge(*lower)) : std::nullopt;
    if (auto part = PositiveRange(from, to)) options.push_back(Seq({Literal("-"), *part}));
  }
  if (options.empty()) return std::nullopt;
  return Either(options);
}

// One rule for each remainder: the digits that may follow a prefix with it.
std::string Multiples(int64_t factor, EbnfWriter* out) {
  std::vector<std::string> names;
  for (int64_t rest = 0; rest < factor; ++rest) names.push_back(out->Reserve("multiple"));
  const auto steps = [&](int64_t rest, int first) {
    std::vector<std::string> options;
    for (int digit = first; digit <= 9; ++digit) {
      const auto next = static_cast<size_t>((rest * 10 + digit) % factor);
      options.push_back(Seq(
          {Digits(static_cast<char>('0' + digit), static_cast<char>('0' + digit)), names[next]}));
    }
    return options;
  };
  for (int64_t rest = 0; rest < factor; ++rest) {
    std::vector<std::string> options = steps(rest, 0);
    if (rest == 0) options.emplace_back(kEmptyExpression);
    out->Define(names[static_cast<size_t>(rest)], Either(options));
  }
  const std::string positive = out->AddRule("multiple", Either(steps(0, 1)));
  return out->AddRule("multiple", Either({Literal("0"), Seq({Optional(Literal("-")), positive})}));
}

}  // namespace vivace::grammar
