#include "text/jinja/analysis.h"

#include <algorithm>
#include <unordered_set>

namespace vivace::jinja {
namespace {

bool IsWord(const Expr* node, std::string_view word) {
  return node->kind == ExprKind::kConst && node->constant.is_string() &&
         node->constant.str->view() == word;
}

class ContentSearch {
 public:
  explicit ContentSearch(const Ast& ast) : ast_(ast) {
    aliases_.insert("content");
    for (const Stmt& node : ast.stmts) {
      const bool named = node.kind == StmtKind::kSet && node.target->kind == ExprKind::kName;
      if (named && IsContent(node.value)) aliases_.insert(ast.names[node.target->name]);
    }
  }

  bool Found() const {
    const auto loops = [&](const Stmt& node) {
      return node.kind == StmtKind::kFor && IsContent(node.value);
    };
    const auto takes = [&](const Expr& node) { return TakesPart(node); };
    return std::any_of(ast_.stmts.begin(), ast_.stmts.end(), loops) ||
           std::any_of(ast_.exprs.begin(), ast_.exprs.end(), takes);
  }

 private:
  bool IsContent(const Expr* node) const {
    while (node->kind == ExprKind::kFilter) node = node->items[0];
    if (node->kind == ExprKind::kName) return aliases_.contains(ast_.names[node->name]);
    if (node->kind == ExprKind::kAttribute) return ast_.names[node->name] == "content";
    return node->kind == ExprKind::kItem && IsWord(node->items[1], "content");
  }

  // content[0].text, content[0]['type'] and the like.
  bool TakesPart(const Expr& node) const {
    std::string_view member;
    if (node.kind == ExprKind::kAttribute) member = ast_.names[node.name];
    if (node.kind == ExprKind::kItem && IsWord(node.items[1], "text")) member = "text";
    if (node.kind == ExprKind::kItem && IsWord(node.items[1], "type")) member = "type";
    if (member != "text" && member != "type") return false;
    const Expr* part = node.items[0];
    return part->kind == ExprKind::kItem && part->items[1]->kind == ExprKind::kConst &&
           part->items[1]->constant.kind == Kind::kInt && IsContent(part->items[0]);
  }

  const Ast& ast_;
  std::unordered_set<std::string_view> aliases_;
};

}  // namespace

bool ReadsVariable(const Ast& ast, std::string_view name) {
  const auto it = ast.name_ids.find(name);
  if (it == ast.name_ids.end()) return false;
  return std::any_of(ast.exprs.begin(), ast.exprs.end(), [&](const Expr& node) {
    return node.kind == ExprKind::kName && node.name == it->second;
  });
}

bool ReadsMember(const Ast& ast, std::string_view name) {
  return std::any_of(ast.exprs.begin(), ast.exprs.end(), [&](const Expr& node) {
    const bool attribute = node.kind == ExprKind::kAttribute && ast.names[node.name] == name;
    return attribute || IsWord(&node, name);
  });
}

bool IteratesContent(const Ast& ast) { return ContentSearch(ast).Found(); }

}  // namespace vivace::jinja
