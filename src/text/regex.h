// Regex: the patterns of tokenizer files that no hand-written scanner knows, in time linear in the
// text whatever the pattern and the text.
//
// The language is Oniguruma's (Ruby syntax), what Hugging Face runs, with its classes of Unicode.
// A backtracking matcher that remembers where it failed: an (instruction, position) is tried once
// for a text, so a text of n bytes costs O(n * pattern). What would break that, or cannot mean the
// same, is refused by name when the pattern is compiled: back references, look-behind longer than a
// character, unbounded look-ahead, possessive groups, loops over what may be empty.
// Immutable and shared; a Matcher belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/char_class.h"

namespace vivace {

class Regex {
 public:
  // bad_regex or regex_limit (CheckRegex); unsupported_regex for what is refused by name.
  static Result<std::shared_ptr<const Regex>> Compile(std::string_view pattern);

  struct Match {
    size_t begin, end;
  };

 private:
  struct Instruction;

 public:
  // Successive matches in one text, as Oniguruma's iterator gives them (an empty match does not
  // follow right behind another match). Reset for the next text keeps the memory.
  class Matcher {
   public:
    explicit Matcher(const Regex& regex) : regex_(regex) {}
    void Reset(std::string_view text);
    std::optional<Match> Next();

   private:
    struct Job {
      uint32_t pc;  // kFailed | split number: everything pushed above it failed
      uint32_t position;
    };
    std::optional<size_t> Run(uint32_t pc, size_t position);
    bool Step(uint32_t* pc, size_t* position);
    bool Split(const Instruction& i, uint32_t* pc, size_t position);
    bool HasFailed(uint32_t split, size_t position) const;
    void NoteFailed(uint32_t split, size_t position);
    size_t RunEnd(uint32_t run, const CharClass& set, size_t position);

    static constexpr uint32_t kFailed = 1u << 31;
    const Regex& regex_;
    std::string_view text_;
    size_t next_ = 0;
    std::optional<size_t> last_end_;
    std::vector<Job> stack_;
    size_t first_block_ = 0;         // of 64 positions; memo_ begins there
    std::vector<uint64_t> memo_;     // per block, a word for each split
    std::vector<Match> known_runs_;  // per run instruction
  };

 private:
  friend class RegexCompiler;
  enum class Op : uint8_t {
    kChar,    // one character of the class `a`
    kRun,     // as many as there are; `b` is its number
    kMaybe,   // one if there is one
    kSplit,   // goes to `a`, or if that fails to `b`; `number` is its number
    kJump,    // to `a`
    kLook,    // the code behind it must match (`negative`: must not); on to `a`
    kBehind,  // the last character is of class `a`
    kLineBegin,
    kLineEnd,
    kTextBegin,
    kTextEnd,
    kTextEndOrNewline,
    kWordEdge,  // NOLINT
    kAccept,
  };
  struct Instruction {
    Op op;
    bool negative = false;
    bool loops = false;  // a split that its body comes back to
    uint32_t a = 0, b = 0, number = 0;
    // The ASCII characters that a match from here can begin with; all, if it can be empty.
    std::array<uint64_t, 2> first = {0, 0};
  };

  bool CanBegin(uint32_t pc, unsigned char ascii) const {
    return (program_[pc].first[ascii / 64] >> (ascii % 64) & 1) != 0;
  }

  bool Holds(const Instruction& instruction, std::string_view text, size_t position) const;

  std::vector<Instruction> program_;
  std::vector<CharClass> classes_;
  uint32_t splits_ = 0, runs_ = 0;
};

}  // namespace vivace
