// DeepSeek V2: multi-head latent attention, a softmax over all experts, of which the best are
// taken, or the best of the best groups. GGUF files of V3 call themselves the same.
#include "model/recipes/deepseek_family.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  return BuildDeepseek(source, kDeepseekV2.name, {.sigmoid = false});
}

constexpr std::string_view kGguf[] = {"deepseek2"};
constexpr std::string_view kHf[] = {"DeepseekV2ForCausalLM"};

}  // namespace

const Recipe kDeepseekV2 = {"deepseek_v2", kGguf, {kHf, kDeepseekKeys, kDeepseekTensors}, Build};

}  // namespace vivace::model
