// What decoder-only families have in common: a recipe says how its own differs, as FamilyTraits
// and, where data is not enough, as a function that is called for each layer. Pure but for reading
// the source; lives as long as one recipe call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/hparams.h"
#include "model/source.h"
#include "model/spec.h"
#include "model/weight_table.h"

namespace vivace::model {

struct FamilyTraits {
  kernels::NormKind norm = kernels::NormKind::kRms;
  bool norm_bias = false;
  float hf_norm_offset = 0.0f;  // Hugging Face stores norms less this; GGUF converters add it
  bool pre_norms = true;        // attn_norm and ffn_norm
  std::string_view gguf_mlp_norm = "ffn_norm";  // some files say where it stands
  std::string_view final_norm = "output_norm";
  bool post_norms = false;  // post_attention_norm and post_ffw_norm
  bool parallel = false;    // attention and MLP share attn_norm
  QkNorm qk_norm = QkNorm::kNone;
  Bias qkv_bias = Bias::kOptional;
  Bias bias = Bias::kOptional;  // of the other matrices
  bool fused_qkv = false;       // attn_qkv: all of q, then k, then v
  bool output_gate = false;     // attn_q: of each head its query, then its gate
  bool fused_gate_up = false;   // ffn_up: all of gate, then up
  bool gated = true;
  kernels::Activation activation = kernels::Activation::kSilu;  // where the file does not say
  // Pair order the weights are stored for. Converters to GGUF permute the rows of some families.
  bool gguf_interleaved_rope = false;
  bool hf_interleaved_rope = false;
  bool latent = false;                // multi-head latent attention: the hook makes it
  double rope_theta = 10000.0;        // of a configuration that has none
  double rope_fraction = 1.0;         // of head dims that are rotated, likewise
  bool hf_context_is_scaled = false;  // max_position_embeddings has the scaling of RoPE in it
};

struct MoeTraits {
  kernels::RouterScore score = kernels::RouterScore::kSoftmax;
  Bias router_bias = Bias::kNone;
  bool normalize = false;  // of a file that does not say
};

class Decoder {
 public:
  // Called for each layer, after its attention, norms and dense MLP were named as the traits say.
  using LayerHook = std::function<Status(int64_t layer, LayerSpec* spec)>;

  // Reads what the whole model shares: hyper-parameters and RoPE.
  static Result<Decoder> Open(const ModelSource& source, std::string_view recipe,
                              const FamilyTraits& traits);

  // Names the weights of all layers and ends, then checks that no tensor is left over.
  Result<ModelSpec> Build(const LayerHook& adjust = {});

  // What `windows` of most families are: attention.sliding_window by the pattern the file has.
  // Without one, every `period`th layer sees everything; 0: none does, 1: all do. All do where the
  // file has no window or turns it off.
  Result<std::vector<int32_t>> Windows(int64_t period) const;
  // Of a configuration without a window: no layer of its list has one (hparam_range).
  Status CheckNoWindows() const;

  // The router of a layer; the experts are not named yet.
  Result<MoeSpec> Router(int64_t layer, const MoeTraits& traits);
  // The experts of a layer in the MLP's place. `ffn`: of one expert.
  Result<MoeSpec> Moe(int64_t layer, int64_t ffn, const MoeTraits& traits);
  // gate, up and down: `stem` between "ffn_gate" and what the file's names end with ("_shexp").
  Result<FeedForwardSpec> FeedForward(int64_t layer, std::string_view stem, int64_t ffn);
  Result<NormSpec> Norm(const std::string& name, int64_t length);

  static std::string Block(int64_t layer) { return fmt::format("blk.{}.", layer); }

  const ModelSource& source() const { return *source_; }
  const Hparams& hparams() const { return hparams_; }
  WeightTable& weights() { return weights_; }
  ModelSpec& spec() { return spec_; }  // what belongs to no layer; layers are added by Build
  RopeSpec& rope() { return rope_; }   // of every layer; a hook changes a layer's own
  bool is_gguf() const { return source_->format() == SourceFormat::kGguf; }
  std::vector<int32_t> windows;  // of attention, by layer; empty: none
  // Layers whose mixer the hook makes (latent, recurrent) have no attention of the usual kind, and
  // those whose MLP it makes (experts) no dense one.
  std::function<bool(int64_t layer)> has_attention = [](int64_t) { return true; };
  std::function<bool(int64_t layer)> has_dense_mlp = [](int64_t) { return true; };

 private:
  Decoder(const ModelSource& source, const FamilyTraits& traits)
      : source_(&source),
        traits_(traits),
        o_bias_(traits.bias),
        mlp_bias_(traits.bias),
        weights_(source) {}

  void ReadContext();
  Status ReadActivation();
  Status ReadBiasRules();
  Status CheckCausal() const;
  Status BuildEnds();
  Status BuildNorms(int64_t layer, LayerSpec* spec);
  Status BuildAttention(int64_t layer, AttentionSpec* spec);
  Status BuildQkv(int64_t layer, AttentionSpec* spec);
  Result<FeedForwardSpec> Expert(int64_t layer, int64_t expert, int64_t experts, int64_t ffn);

  const ModelSource* source_;
  FamilyTraits traits_;
  Bias o_bias_;
  Bias mlp_bias_;
  WeightTable weights_;
  Hparams hparams_;
  RopeSpec rope_;
  ModelSpec spec_;
};

// What Build of most recipes is: Open and Build with nothing to adjust.
Result<ModelSpec> BuildDecoder(const ModelSource& source, std::string_view recipe,
                               const FamilyTraits& traits);

}  // namespace vivace::model
