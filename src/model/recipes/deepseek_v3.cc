// DeepSeek V3 and R1: V2's attention; experts are scored by a sigmoid and chosen with a bias that
// does not count in their weights.
#include "model/recipes/deepseek_family.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  return BuildDeepseek(source, kDeepseekV3.name, {.sigmoid = true});
}

constexpr std::string_view kHf[] = {"DeepseekV3ForCausalLM"};

}  // namespace

const Recipe kDeepseekV3 = {"deepseek_v3", {}, {kHf, kDeepseekKeys, kDeepseekTensors}, Build};

}  // namespace vivace::model
