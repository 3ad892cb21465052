#include "text/jinja/name_check.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/builtins.h"
#include "text/jinja/error.h"

namespace vivace::jinja {
namespace {

// jinja2's own that we lack: refused when they are reached, so that a template may have one unused.
constexpr std::string_view kAbsentFilters[] = {"filesizeformat", "pprint",   "random", "striptags",
                                               "urlize",         "wordwrap", "xmlattr"};

class NameCheck {
 public:
  NameCheck(const Ast& ast, uint32_t& line) : ast_(ast), line_(line) {}

  // `soft`: reached only if a condition holds.
  void Check(const Block& block, bool soft) {
    for (const Stmt* node : block) Check(*node, soft);
  }

 private:
  void Check(const Stmt& node, bool soft) {
    const bool inner_value = node.kind == StmtKind::kSetBlock ||
                             node.kind == StmtKind::kFilterBlock;  // a chain of filters
    Check(node.value, soft && !inner_value);
    Check(node.test, false);
    for (const Expr* expr : node.exprs) Check(expr, soft);
    for (const Expr* expr : node.defaults) Check(expr, false);
    for (const Branch& branch : node.branches) {
      Check(branch.test, true);
      Check(branch.body, true);
    }
    Check(node.body, false);
    Check(node.otherwise, false);
  }

  void Check(const Expr* node, bool soft) {
    if (node == nullptr) return;
    soft = soft || node->kind == ExprKind::kConditional;
    if (!soft && node->kind == ExprKind::kFilter) NeedFilter(*node);
    if (!soft && node->kind == ExprKind::kTest && FindTest(ast_.names[node->name]) == nullptr) {
      line_ = node->line;
      Raise("unknown_test", "there is no test named {}", ast_.names[node->name].substr(0, 80));
    }
    for (const Expr* item : node->items) Check(item, soft);
    for (const auto& [name, value] : node->keywords) Check(value, soft);
    Check(node->star, soft);
    Check(node->star_star, soft);
  }

  void NeedFilter(const Expr& node) {
    const std::string_view name = ast_.names[node.name];
    const bool absent = std::find(std::begin(kAbsentFilters), std::end(kAbsentFilters), name) !=
                        std::end(kAbsentFilters);
    if (absent || FindFilter(name) != nullptr) return;
    line_ = node.line;
    Raise("unknown_filter", "there is no filter named {}", name.substr(0, 80));
  }

  const Ast& ast_;
  uint32_t& line_;
};

}  // namespace

void CheckNames(const Ast& ast, uint32_t& line) { NameCheck(ast, line).Check(ast.root, false); }

}  // namespace vivace::jinja
