// Regex::Compile: from the syntax tree to the program.
#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "formats/untrusted.h"
#include "text/regex.h"
#include "text/regex_parser.h"
#include "text/regex_syntax.h"

namespace vivace {

using regex::Greed;
using regex::kUnbounded;
using regex::Node;
using regex::NodeKind;

class RegexCompiler {
 public:
  explicit RegexCompiler(std::string_view pattern) : pattern_(pattern), out_(new Regex()) {}

  Result<std::shared_ptr<const Regex>> Run() {
    VIVACE_RETURN_IF_ERROR(CheckRegex(pattern_));
    VIVACE_ASSIGN(const Node root, regex::ParseRegex(pattern_));
    VIVACE_RETURN_IF_ERROR(Emit(root, /*last=*/true));
    Add({.op = Op::kAccept});
    while (GrowFirstSets()) {
    }
    return std::shared_ptr<const Regex>(std::move(out_));
  }

 private:
  using Op = Regex::Op;

  tl::unexpected<Error> Refuse(std::string_view what) const {
    return Fail(ErrorCode::kUnsupported, "unsupported_regex", "pattern",
                "the pattern '{}' has {}, which is not supported", formats::Printable(pattern_, 80),
                what);
  }

  uint32_t Here() const { return static_cast<uint32_t>(out_->program_.size()); }
  uint32_t Add(Regex::Instruction instruction) {
    if (instruction.op == Op::kSplit) instruction.number = out_->splits_++;
    if (instruction.op == Op::kRun) instruction.b = out_->runs_++;
    out_->program_.push_back(instruction);
    return Here() - 1;
  }
  Regex::Instruction& At(uint32_t pc) { return out_->program_[pc]; }
  uint32_t AddClass(CharClass set) {
    set.Seal();
    out_->classes_.push_back(std::move(set));
    return static_cast<uint32_t>(out_->classes_.size() - 1);
  }

  // Characters that a match of the node takes: at least, at most.
  static std::pair<uint64_t, uint64_t> Lengths(const Node& node) {
    constexpr uint64_t kMany = uint64_t{1} << 40;
    switch (node.kind) {
      case NodeKind::kClass:
        return {1, 1};
      case NodeKind::kSequence: {
        std::pair<uint64_t, uint64_t> sum{0, 0};
        for (const Node& child : node.children) {
          const auto [low, high] = Lengths(child);
          sum = {std::min(sum.first + low, kMany), std::min(sum.second + high, kMany)};
        }
        return sum;
      }
      case NodeKind::kChoice: {
        std::pair<uint64_t, uint64_t> all{kMany, 0};
        for (const Node& child : node.children) {
          const auto [low, high] = Lengths(child);
          all = {std::min(all.first, low), std::max(all.second, high)};
        }
        return all;
      }
      case NodeKind::kRepeat: {
        const auto [low, high] = Lengths(node.children[0]);
        return {std::min(low * node.min, kMany),
                node.max == kUnbounded ? kMany : std::min(high * node.max, kMany)};
      }
      default:
        return {0, 0};
    }
  }

  // The one class that `node` is, if it is no more.
  static const Node* AsClass(const Node& node) {
    const Node* only = &node;
    while (only->kind == NodeKind::kSequence && only->children.size() == 1) {
      only = &only->children[0];
    }
    return only->kind == NodeKind::kClass ? only : nullptr;
  }

  // `last`: nothing follows the node, so that a greedy loop never has to give anything back.
  Status Emit(const Node& node, bool last) {
    if (out_->program_.size() > limits::kMaxRegexProgram) {
      return Fail(ErrorCode::kUnsupported, "regex_limit", "pattern", "the pattern is too large");
    }
    switch (node.kind) {
      case NodeKind::kEmpty:
        return {};
      case NodeKind::kClass:
        Add({.op = Op::kChar, .a = AddClass(node.set)});
        return {};
      case NodeKind::kSequence:
        for (const Node& child : node.children) {
          VIVACE_RETURN_IF_ERROR(Emit(child, last && &child == &node.children.back()));
        }
        return {};
      case NodeKind::kChoice:
        return EmitChoice(node, last);
      case NodeKind::kRepeat:
        return EmitRepeat(node, last);
      case NodeKind::kLookAhead:
        return EmitLookAhead(node);
      case NodeKind::kBehind:
        Add({.op = Op::kBehind, .negative = node.negative, .a = AddClass(node.set)});
        return {};
      case NodeKind::kLineBegin:
      case NodeKind::kLineEnd:
      case NodeKind::kTextBegin:
      case NodeKind::kTextEnd:
      case NodeKind::kTextEndOrNewline:
      case NodeKind::kWordEdge:
        Add({.op = AssertionOf(node.kind), .negative = node.negative, .a = WordClass(node.kind)});
        return {};
    }
    return {};
  }

  static Op AssertionOf(NodeKind kind) {
    switch (kind) {
      case NodeKind::kLineBegin:
        return Op::kLineBegin;
      case NodeKind::kLineEnd:
        return Op::kLineEnd;
      case NodeKind::kTextBegin:
        return Op::kTextBegin;
      case NodeKind::kTextEnd:
        return Op::kTextEnd;
      case NodeKind::kTextEndOrNewline:
        return Op::kTextEndOrNewline;
      default:
        return Op::kWordEdge;
    }
  }
  uint32_t WordClass(NodeKind kind) {
    if (kind != NodeKind::kWordEdge) return 0;
    CharClass word;
    word.AddWord();
    return AddClass(std::move(word));
  }

  Status EmitChoice(const Node& node, bool last) {
    std::vector<uint32_t> jumps;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const bool final_branch = i + 1 == node.children.size();
      const uint32_t split = final_branch ? 0 : Add({.op = Op::kSplit, .a = Here() + 1});
      VIVACE_RETURN_IF_ERROR(Emit(node.children[i], last));
      if (final_branch) break;
      jumps.push_back(Add({.op = Op::kJump}));
      At(split).b = Here();
    }
    for (const uint32_t jump : jumps) At(jump).a = Here();
    return {};
  }

  Status EmitRepeat(const Node& node, bool last) {
    const Node& body = node.children[0];
    const Node* single = AsClass(body);
    const bool possessive = node.greed == Greed::kPossessive;
    if (possessive && single == nullptr) return Refuse("a possessive group");
    const bool unbounded = node.max == kUnbounded;
    if (unbounded && Lengths(body).first == 0) return Refuse("a loop over what may be empty");
    for (uint32_t i = 0; i < node.min; ++i) VIVACE_RETURN_IF_ERROR(Emit(body, false));
    if (unbounded && single != nullptr && (possessive || (last && node.greed == Greed::kGreedy))) {
      Add({.op = Op::kRun, .a = AddClass(single->set)});
      return {};
    }
    if (possessive) {
      Add({.op = Op::kMaybe, .a = AddClass(single->set)});
      return {};
    }
    const auto split = [&] { return Add({.op = Op::kSplit, .a = Here() + 1}); };
    // The two ways of a split, once both are known.
    const auto finish = [&](uint32_t at, uint32_t out) {
      At(at).b = out;
      if (node.greed == Greed::kLazy) std::swap(At(at).a, At(at).b);
    };
    if (unbounded) {
      const uint32_t loop = split();
      At(loop).loops = true;
      VIVACE_RETURN_IF_ERROR(Emit(body, false));
      Add({.op = Op::kJump, .a = loop});
      finish(loop, Here());
      return {};
    }
    std::vector<uint32_t> splits;
    for (uint32_t i = node.min; i < node.max; ++i) {
      splits.push_back(split());
      VIVACE_RETURN_IF_ERROR(Emit(body, last && i + 1 == node.max));
    }
    for (const uint32_t at : splits) finish(at, Here());
    return {};
  }

  Status EmitLookAhead(const Node& node) {
    if (Lengths(node.children[0]).second > limits::kMaxRegexLookAhead) {
      return Refuse("a look-ahead without a bound");
    }
    const uint32_t look = Add({.op = Op::kLook, .negative = node.negative});
    VIVACE_RETURN_IF_ERROR(Emit(node.children[0], true));
    Add({.op = Op::kAccept});
    At(look).a = Here();
    return {};
  }

  // One round towards what a match from each instruction can begin with; false once nothing grows.
  bool GrowFirstSets() {
    bool grew = false;
    for (uint32_t pc = Here(); pc-- > 0;) {
      Regex::Instruction& i = At(pc);
      const auto add = [&](const std::array<uint64_t, 2>& more) {
        grew |= (more[0] & ~i.first[0]) != 0 || (more[1] & ~i.first[1]) != 0;
        i.first = {i.first[0] | more[0], i.first[1] | more[1]};
      };
      const bool has_class = i.op == Op::kChar || i.op == Op::kRun || i.op == Op::kMaybe;
      if (has_class) add(out_->classes_[i.a].ascii());
      if (i.op == Op::kAccept) {
        add({~uint64_t{0}, ~uint64_t{0}});
      } else if (i.op == Op::kSplit) {
        add(At(i.a).first);
        add(At(i.b).first);
      } else if (i.op == Op::kJump || i.op == Op::kLook) {
        add(At(i.a).first);
      } else if (i.op != Op::kChar) {
        add(At(pc + 1).first);
      }
    }
    return grew;
  }

  std::string_view pattern_;
  std::shared_ptr<Regex> out_;
};

Result<std::shared_ptr<const Regex>> Regex::Compile(std::string_view pattern) {
  return RegexCompiler(pattern).Run();
}

}  // namespace vivace
