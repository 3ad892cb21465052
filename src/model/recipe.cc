#include "model/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "formats/untrusted.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

#define VIVACE_ADDRESS_OF_RECIPE(name) &name,
constexpr const Recipe* kRecipes[] = {VIVACE_RECIPES(VIVACE_ADDRESS_OF_RECIPE)};
#undef VIVACE_ADDRESS_OF_RECIPE

// Of recurrent layers of kinds, or in places, that no recipe has.
constexpr std::string_view kRecurrent[] = {
    "Lfm2MoeForCausalLM",
    "MambaForCausalLM",
    "Mamba2ForCausalLM",
    "JambaForCausalLM",
    "FalconH1ForCausalLM",
    "NemotronHForCausalLM",
    "BambaForCausalLM",
    "Qwen3_5ForCausalLM",
    "RwkvForCausalLM",
    "lfm2moe",
    "mamba",
    "mamba2",
    "jamba",
    "falcon-h1",
    "nemotron_h",
    "qwen35",
    "qwen35moe",
    "kimi-linear",
    "rwkv6",
    "rwkv7",
    "plamo2",
};

std::span<const std::string_view> NamesOf(const Recipe& recipe, SourceFormat format) {
  return format == SourceFormat::kGguf ? recipe.architectures : recipe.hf.architectures;
}

const Recipe* Find(std::string_view architecture, SourceFormat format) {
  for (const Recipe* recipe : kRecipes) {
    const auto names = NamesOf(*recipe, format);
    if (std::ranges::find(names, architecture) != names.end()) return recipe;
  }
  return nullptr;
}

std::string KnownArchitectures(SourceFormat format) {
  std::string known;
  for (const Recipe* recipe : kRecipes) {
    for (const std::string_view name : NamesOf(*recipe, format)) {
      if (!known.empty()) known += ", ";
      known += name;
    }
  }
  return known;
}

struct Refusal {
  std::string slug;
  std::string text;
};
Refusal WhyNot(std::string_view architecture, SourceFormat format) {
  const std::string shown = formats::Printable(architecture);
  if (std::ranges::find(kRecurrent, architecture) != std::end(kRecurrent)) {
    return {"unsupported_architecture",
            fmt::format("'{}' has recurrent layers of a kind that is not supported", shown)};
  }
  return {"unknown_architecture",
          fmt::format("'{}' is not supported; known: {}", shown, KnownArchitectures(format))};
}

}  // namespace

Result<const Recipe*> FindRecipe(const ModelSource& source) {
  if (const Recipe* recipe = Find(source.architecture(), source.format())) return recipe;
  Refusal refusal = WhyNot(source.architecture(), source.format());
  return source.KeyFault(ErrorCode::kUnsupported, std::move(refusal.slug), "general.architecture",
                         std::move(refusal.text));
}

Result<const Recipe*> FindHfRecipe(std::string_view architecture, std::string_view config_path) {
  if (const Recipe* recipe = Find(architecture, SourceFormat::kHuggingFace)) return recipe;
  Refusal refusal = WhyNot(architecture, SourceFormat::kHuggingFace);
  return formats::FileFault(ErrorCode::kUnsupported, std::move(refusal.slug), config_path,
                            "architectures", refusal.text);
}

}  // namespace vivace::model
