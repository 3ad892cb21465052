// A parsed template. Nodes live in flat pools and point to each other, so that neither building nor
// freeing follows the tree; its height is bounded by limits::kTemplateDepth. Immutable after
// parsing and shared by all threads that render.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja/value.h"

namespace vivace::jinja {

using NameId = uint32_t;

enum class ExprKind : uint8_t {
  kConst,
  kName,
  kList,
  kTuple,
  kDict,
  kChain,
  kConcat,
  kAnd,
  kOr,
  kNot,
  kNegate,
  kPlus,
  kCompare,
  kConditional,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kNamespaceRef
};

enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn
};

struct Expr {
  ExprKind kind = ExprKind::kConst;
  uint16_t height = 1;
  uint32_t line = 1;
  Value constant;                  // kConst
  NameId name = 0;                 // kName, kAttribute, kFilter, kTest, kNamespaceRef (variable)
  NameId member = 0;               // kNamespaceRef
  std::vector<const Expr*> items;  // operands, left to right; kSlice has three, each may be null
  std::vector<Op> ops;             // kChain, kCompare: ops[i] stands before items[i + 1]
  std::vector<std::pair<NameId, const Expr*>> keywords;
  const Expr* star = nullptr;       // f(*star)
  const Expr* star_star = nullptr;  // f(**star_star)
};

enum class StmtKind : uint8_t {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kScope,
  kBreak,
  kContinue
};

struct Stmt;
using Block = std::vector<const Stmt*>;

struct Branch {
  const Expr* test = nullptr;  // null: else
  Block body;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  uint32_t line = 1;
  const Str* text = nullptr;         // kText
  const Expr* target = nullptr;      // kFor, kSet, kSetBlock
  const Expr* value = nullptr;       // iterable, assigned value, the call, or the filter chain
  const Expr* test = nullptr;        // kFor: the `if`
  bool recursive = false;            // kFor
  std::vector<const Expr*> exprs;    // kOutput; kWith: values
  std::vector<const Expr*> targets;  // kWith
  std::vector<Branch> branches;      // kIf
  Block body;
  Block otherwise;                    // kFor: else
  NameId name = 0;                    // kMacro
  std::vector<NameId> parameters;     // kMacro, kCallBlock
  std::vector<const Expr*> defaults;  // of the last parameters
  // Names the body (the else) assigns before it reads them: see scope_analysis.h.
  std::vector<NameId> masked, masked_otherwise;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};

// Filters of a block (`{% filter a|b %}`, `{% set x | a %}`) stand on this name, which no template
// can spell.
inline constexpr std::string_view kBlockInput = " block";

struct Ast {
  std::string source;                // newlines normalised; data and names point into it
  std::deque<std::string> literals;  // strings whose escapes were decoded
  std::deque<Str> strings;
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::vector<std::string_view> names;  // by NameId
  std::unordered_map<std::string_view, NameId> name_ids;
  Block root;
  std::vector<NameId> masked;  // of the root
  // Names the interpreter itself sets.
  NameId loop_name = Intern("loop"), caller_name = Intern("caller"), kwargs_name = Intern("kwargs"),
         varargs_name = Intern("varargs"), block_input_name = Intern(kBlockInput);

  NameId Intern(std::string_view name) {
    const auto [it, added] = name_ids.emplace(name, static_cast<NameId>(names.size()));
    if (added) names.push_back(name);
    return it->second;
  }
  const Str* Constant(std::string_view text) {
    Str& str = strings.emplace_back();
    str.data = text.data();
    str.size = text.size();
    str.ascii = IsAscii(text);
    return &str;
  }
};

}  // namespace vivace::jinja
