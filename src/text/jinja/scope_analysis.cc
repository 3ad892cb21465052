#include "text/jinja/scope_analysis.h"

#include <unordered_set>

namespace vivace::jinja {
namespace {

// The names one block refers to, in the order jinja2 meets them.
class Frame {
 public:
  explicit Frame(const Frame* parent) : parent_(parent) {}

  void Parameter(NameId name) { names_.insert(name); }

  void Load(const Expr* node) {
    if (node == nullptr) return;
    if (node->kind == ExprKind::kName || node->kind == ExprKind::kNamespaceRef) {
      LoadName(node->name);
    }
    for (const Expr* item : node->items) Load(item);
    for (const auto& [name, value] : node->keywords) Load(value);
    Load(node->star);
    Load(node->star_star);
  }

  void Store(const Expr* target, bool parameter) {
    if (target->kind == ExprKind::kName) {
      parameter ? Parameter(target->name) : StoreName(target->name);
    } else if (target->kind == ExprKind::kNamespaceRef) {
      LoadName(target->name);
    } else {
      for (const Expr* item : target->items) Store(item, parameter);
    }
  }

  void StoreName(NameId name) {
    // In one branch of an `if` only: jinja2 then reads the outer value for the other branches.
    if (names_.insert(name).second && branches_ == 0 && !KnownOutside(name)) masked.push_back(name);
  }

  void EnterBranch() { ++branches_; }
  void LeaveBranch() { --branches_; }

  std::vector<NameId> masked;

 private:
  void LoadName(NameId name) {
    if (!KnownOutside(name)) names_.insert(name);
  }
  bool KnownOutside(NameId name) const {
    for (const Frame* frame = parent_; frame != nullptr; frame = frame->parent_) {
      if (frame->names_.contains(name)) return true;
    }
    return false;
  }

  const Frame* parent_;
  std::unordered_set<NameId> names_;
  int branches_ = 0;
};

// What the statements of a block itself refer to; the blocks inside have frames of their own.
void Collect(const Block& block, Frame& frame) {
  for (const Stmt* node : block) {
    switch (node->kind) {
      case StmtKind::kOutput:
      case StmtKind::kWith:
        for (const Expr* expr : node->exprs) frame.Load(expr);
        break;
      case StmtKind::kFor:
      case StmtKind::kCallBlock:
      case StmtKind::kFilterBlock:
        frame.Load(node->value);
        break;
      case StmtKind::kSet:
        frame.Load(node->value);
        frame.Store(node->target, false);
        break;
      case StmtKind::kSetBlock:
        frame.Store(node->target, false);
        break;
      case StmtKind::kMacro:
        frame.StoreName(node->name);
        break;
      case StmtKind::kIf:
        for (const Branch& branch : node->branches) {
          frame.Load(branch.test);
          frame.EnterBranch();
          Collect(branch.body, frame);
          frame.LeaveBranch();
        }
        break;
      default:
        break;
    }
  }
}

void AnalyzeInner(const Block& block, const Frame& outer);

std::vector<NameId> AnalyzeBlock(const Block& block, Frame& frame) {
  Collect(block, frame);
  AnalyzeInner(block, frame);
  return std::move(frame.masked);
}

void AnalyzeStatement(Stmt& node, const Frame& outer) {
  Frame frame(&outer);
  if (node.kind == StmtKind::kFor) frame.Store(node.target, true);
  for (const Expr* target : node.targets) frame.Store(target, true);
  for (const NameId name : node.parameters) frame.Parameter(name);
  for (const Expr* value : node.defaults) frame.Load(value);
  node.masked = AnalyzeBlock(node.body, frame);
  Frame otherwise(&outer);
  node.masked_otherwise = AnalyzeBlock(node.otherwise, otherwise);
}

void AnalyzeInner(const Block& block, const Frame& outer) {
  for (const Stmt* node : block) {
    for (const Branch& branch : node->branches) AnalyzeInner(branch.body, outer);
    if (node->body.empty() && node->otherwise.empty()) continue;
    AnalyzeStatement(const_cast<Stmt&>(*node), outer);  // the Ast is still being built
  }
}

}  // namespace

void AnalyzeScopes(Ast& ast) {
  Frame root(nullptr);
  ast.masked = AnalyzeBlock(ast.root, root);
}

}  // namespace vivace::jinja
