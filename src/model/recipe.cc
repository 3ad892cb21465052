#include "model/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "formats/untrusted.h"

namespace vivace::model {
namespace {

constexpr const Recipe* kRecipes[] = {&kLlamaRecipe};

std::string KnownArchitectures() {
  std::string known;
  for (const Recipe* recipe : kRecipes) {
    for (const std::string_view name : recipe->architectures) {
      if (!known.empty()) known += ", ";
      known += name;
    }
  }
  return known;
}

}  // namespace

Result<const Recipe*> FindRecipe(const ModelSource& source) {
  for (const Recipe* recipe : kRecipes) {
    if (std::ranges::find(recipe->architectures, source.architecture()) !=
        recipe->architectures.end()) {
      return recipe;
    }
  }
  return source.KeyFault(
      ErrorCode::kUnsupported, "unknown_architecture", "general.architecture",
      fmt::format("'{}' is not supported; known: {}", formats::Printable(source.architecture()),
                  KnownArchitectures()));
}

}  // namespace vivace::model
