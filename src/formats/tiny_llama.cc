#include "formats/tiny_llama.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "formats/ggml_types.h"

namespace vivace::formats {
namespace {

// SplitMix64: small, seedable, the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  float Uniform(float amplitude) {  // (-amplitude, amplitude)
    return (static_cast<float>(Next() >> 40) / static_cast<float>(1 << 23) - 1.0f) * amplitude;
  }

 private:
  uint64_t state_;
};

// IEEE half bits of +-2^exponent * (1 + mantissa / 1024).
uint16_t Half(bool negative, int exponent, uint32_t mantissa = 0) {
  return static_cast<uint16_t>((negative ? 0x8000 : 0) | ((exponent + 15) << 10) | mantissa);
}

template <typename T>
void PutAt(std::span<std::byte> block, size_t at, T value) {
  std::memcpy(block.data() + at, &value, sizeof value);
}

// One block (or one plain value) of random small numbers.
void FillBlock(DType dtype, std::span<std::byte> block, Random& random) {
  for (std::byte& byte : block) byte = static_cast<std::byte>(random.Next());
  switch (dtype) {
    case DType::kF32:
      return PutAt(block, 0, random.Uniform(0.1f));
    case DType::kBF16:
      return PutAt(block, 0,
                   static_cast<uint16_t>(std::bit_cast<uint32_t>(random.Uniform(0.1f)) >> 16));
    case DType::kF16: {
      const uint64_t bits = random.Next();
      const int exponent = -4 - static_cast<int>(bits >> 1 & 3);
      return PutAt(block, 0, Half(bits & 1, exponent, bits >> 3 & 0x3FF));
    }
    case DType::kQ4_0:
      return PutAt(block, 0, Half(false, -6));  // (q - 8) / 64
    case DType::kQ4_1:                          // q / 64 - 1/8
      PutAt(block, 0, Half(false, -6));
      return PutAt(block, 2, Half(true, -3));
    case DType::kQ5_0:
      return PutAt(block, 0, Half(false, -7));  // (q - 16) / 128
    case DType::kQ5_1:                          // q / 128 - 1/8
      PutAt(block, 0, Half(false, -7));
      return PutAt(block, 2, Half(true, -3));
    case DType::kQ8_0:
    case DType::kIQ4_NL:
      return PutAt(block, 0, Half(false, -10));  // q / 1024
    case DType::kQ3_K:                           // scale in -32..31, q in -4..3, times 2^-10
      return PutAt(block, 108, Half(false, -10));
    case DType::kQ4_K:  // scale * q / 8192 - min / 1024, scale and min in 0..63
    case DType::kQ5_K:
      PutAt(block, 0, Half(false, dtype == DType::kQ4_K ? -13 : -14));
      return PutAt(block, 2, Half(false, -10));
    case DType::kQ6_K:  // scale in -8..7, times 2^-11
      for (size_t i = 192; i < 208; ++i) {
        PutAt(block, i, static_cast<int8_t>(static_cast<int>(random.Next() & 15) - 8));
      }
      return PutAt(block, 208, Half(false, -11));
    default:
      VIVACE_CHECK(!"RandomTensorData: no such type");
  }
}

uint64_t SeedOf(std::string_view name, uint64_t seed) {
  uint64_t hash = 0xCBF29CE484222325ull ^ seed;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
  return hash;
}

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

class Builder {
 public:
  explicit Builder(const TinyLlamaOptions& options) : options_(options) {}

  GgufWriter Build() {
    Metadata();
    Vocabulary();
    const uint64_t hidden = options_.hidden;
    Tensor("token_embd.weight", options_.embedding, {hidden, vocab_});
    for (uint32_t layer = 0; layer < options_.layers; ++layer) Layer(layer);
    Norm("output_norm.weight");
    if (!options_.tied) Tensor("output.weight", options_.matrices, {hidden, vocab_});
    return std::move(writer_);
  }

 private:
  void Metadata() {
    auto& w = writer_;
    w.SetString("general.architecture", "llama");
    w.SetString("general.name", "tiny llama");
    w.SetU32("llama.block_count", options_.layers);
    w.SetU32("llama.context_length", options_.context);
    w.SetU32("llama.embedding_length", options_.hidden);
    w.SetU32("llama.feed_forward_length", options_.ffn);
    w.SetU32("llama.attention.head_count", options_.heads);
    w.SetU32("llama.attention.head_count_kv", options_.kv_heads);
    w.SetFloat("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    w.SetFloat("llama.rope.freq_base", 10000.0f);
    w.SetU32("llama.rope.dimension_count", HeadDim());
    if (options_.head_dim != 0) {
      w.SetU32("llama.attention.key_length", options_.head_dim);
      w.SetU32("llama.attention.value_length", options_.head_dim);
    }
  }

  void Vocabulary() {
    const TinyVocabulary vocabulary = MakeTinyVocabulary();
    vocab_ = vocabulary.tokens.size();
    auto& w = writer_;
    w.SetU32("llama.vocab_size", static_cast<uint32_t>(vocab_));
    w.SetString("tokenizer.ggml.model", "gpt2");
    w.SetString("tokenizer.ggml.pre", "gpt-2");
    w.SetStrings("tokenizer.ggml.tokens", vocabulary.tokens);
    w.SetInts("tokenizer.ggml.token_type", vocabulary.types);
    w.SetStrings("tokenizer.ggml.merges", vocabulary.merges);
    w.SetU32("tokenizer.ggml.bos_token_id", 0);
    w.SetU32("tokenizer.ggml.eos_token_id", 2);
    w.SetBool("tokenizer.ggml.add_bos_token", false);
    w.SetString("tokenizer.chat_template", kChatTemplate);
  }

  uint32_t HeadDim() const {
    return options_.head_dim != 0 ? options_.head_dim : options_.hidden / options_.heads;
  }

  void Tensor(std::string name, DType dtype, std::vector<uint64_t> dims) {
    uint64_t elements = 1;
    for (const uint64_t dim : dims) elements *= dim;
    auto data = RandomTensorData(dtype, elements, SeedOf(name, options_.seed));
    writer_.tensors.push_back(
        {std::move(name), GgmlTypeId(dtype), std::move(dims), std::move(data)});
  }

  void Norm(std::string name) {
    Random random(SeedOf(name, options_.seed));
    std::vector<std::byte> data(options_.hidden * sizeof(float));
    for (size_t i = 0; i < options_.hidden; ++i) {
      PutAt(std::span(data), i * sizeof(float), 1.0f + random.Uniform(0.1f));
    }
    writer_.tensors.push_back(
        {std::move(name), GgmlTypeId(DType::kF32), {options_.hidden}, std::move(data)});
  }

  // A matrix and, if asked for, its bias.
  void Linear(const std::string& name, uint64_t inputs, uint64_t outputs) {
    Tensor(name + ".weight", options_.matrices, {inputs, outputs});
    if (options_.biases) Tensor(name + ".bias", DType::kF32, {outputs});
  }

  void Layer(uint32_t layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    const uint64_t hidden = options_.hidden;
    const uint64_t q = uint64_t{options_.heads} * HeadDim();
    const uint64_t kv = uint64_t{options_.kv_heads} * HeadDim();
    Norm(blk + "attn_norm.weight");
    Linear(blk + "attn_q", hidden, q);
    Linear(blk + "attn_k", hidden, kv);
    Linear(blk + "attn_v", hidden, kv);
    Linear(blk + "attn_output", q, hidden);
    Norm(blk + "ffn_norm.weight");
    Linear(blk + "ffn_gate", hidden, options_.ffn);
    Linear(blk + "ffn_up", hidden, options_.ffn);
    Linear(blk + "ffn_down", options_.ffn, hidden);
  }

  const TinyLlamaOptions& options_;
  GgufWriter writer_;
  uint64_t vocab_ = 0;
};

}  // namespace

std::vector<std::byte> RandomTensorData(DType dtype, uint64_t elements, uint64_t seed) {
  const DTypeInfo& info = Info(dtype);
  const auto block_bytes = static_cast<size_t>(info.block_bytes);
  const auto blocks = static_cast<size_t>(elements) / static_cast<size_t>(info.block_elems);
  std::vector<std::byte> data(blocks * block_bytes);
  Random random(seed);
  for (size_t b = 0; b < blocks; ++b) {
    FillBlock(dtype, std::span(data).subspan(b * block_bytes, block_bytes), random);
  }
  return data;
}

TinyVocabulary MakeTinyVocabulary() {
  TinyVocabulary v;
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    v.tokens.emplace_back(name);
    v.types.push_back(3);
  }
  // GPT-2 writes a byte as the character of its code if that is visible, else as the next free one
  // from U+0100; its vocabulary lists the visible ones first.
  const auto visible = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  for (int b = 0; b < 256; ++b) {
    if (visible(b)) utf8::Append(static_cast<char32_t>(b), &v.tokens.emplace_back());
  }
  const auto hidden = static_cast<char32_t>(256 + 3 - v.tokens.size());
  for (char32_t k = 0; k < hidden; ++k) utf8::Append(0x100 + k, &v.tokens.emplace_back());
  const std::string space = "\u0120";  // byte 0x20
  const std::pair<std::string, std::string> merges[] = {
      {"h", "e"}, {"l", "l"}, {"he", "ll"}, {space, "t"}, {space + "t", "he"}};
  for (const auto& [left, right] : merges) {
    v.merges.push_back(left + " " + right);
    v.tokens.push_back(left + right);
  }
  v.types.resize(v.tokens.size(), 1);
  return v;
}

GgufWriter MakeTinyLlama(const TinyLlamaOptions& options) { return Builder(options).Build(); }

}  // namespace vivace::formats
