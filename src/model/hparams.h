// Hyper-parameters of a decoder-only transformer, read and range-checked in one place, before any
// arithmetic is done with them. Recipes start from these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/source.h"

namespace vivace::model {

struct Hparams {
  // As the file says; every one is inside its range of the table in hparams.cc.
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // absent: heads. Divides heads
  int64_t ffn = 0;
  int64_t context = 0;    // tokens; files may claim up to 2^32 - 1
  int64_t head_dim = 0;   // absent: hidden / heads
  int64_t value_dim = 0;  // absent: head_dim. Equal to it
  int64_t rope_dims = 0;  // absent: head_dim. Even, at most head_dim
  int64_t vocab = 0;      // tokens of the vocabulary
  double norm_eps = 0;
  double rope_theta = 0;       // absent: what the family's files mean by that
  double attention_scale = 0;  // absent: 1 / sqrt(head_dim)

  std::vector<std::string> notes;  // assumptions made for absent keys, for people
};

struct HparamRules {
  std::string_view norm_eps_key;
  double rope_theta;      // of a file that has none
  double rope_fraction;   // of a head's dims that are rotated, likewise
  bool heads_are_latent;  // head widths are the recipe's affair (multi-head latent attention)
};

// missing_key, wrong_type, hparam_range (naming key and value), vocab_mismatch.
Result<Hparams> ReadHparams(const ModelSource& source, const HparamRules& rules);

// A float of the file inside [min, max]; NaN is outside every range.
Result<double> ReadFloatInRange(const ModelSource& source, std::string_view key, double min,
                                double max);
Result<int64_t> ReadIntInRange(const ModelSource& source, std::string_view key, int64_t min,
                               int64_t max);

// A flag for each of the model's layers.
Result<std::vector<bool>> ReadLayerFlags(const ModelSource& source, std::string_view key,
                                         int64_t layers);

// Flags of the layers that a list names by their numbers.
Result<std::vector<bool>> ReadLayerList(const ModelSource& source, std::string_view key,
                                        int64_t layers);

// The same, or `fallback` of a file that has no such key.
Result<double> ReadFloatOr(const ModelSource& source, std::string_view key, double min, double max,
                           double fallback);
Result<int64_t> ReadIntOr(const ModelSource& source, std::string_view key, int64_t min, int64_t max,
                          int64_t fallback);
Result<bool> ReadBoolOr(const ModelSource& source, std::string_view key, bool fallback);

}  // namespace vivace::model
