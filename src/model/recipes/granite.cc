// Granite 3: llama with four multipliers.
#include "model/recipes/granite_family.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kGranite.name, {.gguf_interleaved_rope = true}));
  VIVACE_RETURN_IF_ERROR(ReadGraniteScales(d));
  return d.Build();
}

constexpr std::string_view kGguf[] = {"granite"};
constexpr std::string_view kHf[] = {"GraniteForCausalLM"};

}  // namespace

const Recipe kGranite = {"granite", kGguf, {kHf, {}, {}, kGraniteDefaults}, Build};

}  // namespace vivace::model
