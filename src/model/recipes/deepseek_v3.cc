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
constexpr HfDefault kDefaults[] = {
    {"leading_dense_block_count", 3}, {"expert_shared_count", 1},    {"expert_group_count", 8},
    {"expert_group_used_count", 4},   {"expert_weights_scale", 2.5},
};

}  // namespace

const Recipe kDeepseekV3 = {
    "deepseek_v3", {}, {kHf, kDeepseekKeys, kDeepseekTensors, kDefaults}, Build};

}  // namespace vivace::model
