// Makes small llama GGUFs for tests of any folder above: seeded random weights, a byte-level
// vocabulary of 264 tokens, a chat template. Same options, same bytes, on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/gguf_writer.h"
#include "tensor/dtype.h"

namespace vivace::formats {

struct TinyLlamaOptions {
  uint32_t layers = 2;
  uint32_t hidden = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 0;  // 0: hidden / heads; else written as key_length and value_length
  uint32_t ffn = 128;
  uint32_t context = 256;
  DType matrices =
      DType::kF32;  // F32, F16, BF16, Q8_0, Q4_0, Q4_1 or Q6_K (sizes must be whole blocks)
  DType embedding = DType::kF32;
  bool tied = true;     // no output.weight
  bool biases = false;  // on q, k, v, o, gate, up and down
  uint64_t seed = 1;
};

GgufWriter MakeTinyLlama(const TinyLlamaOptions& options = {});

// The vocabulary: 3 control tokens (<|endoftext|>, <|im_start|>, <|im_end|>), the 256 bytes in
// GPT-2's order of code points, then one token per merge.
struct TinyVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;  // 1 normal, 3 control
  std::vector<std::string> merges;
};
TinyVocabulary MakeTinyVocabulary();

// Random bytes that are finite, small values (about +-0.1) in any of the types above.
std::vector<std::byte> RandomTensorData(DType dtype, uint64_t elements, uint64_t seed);

}  // namespace vivace::formats
