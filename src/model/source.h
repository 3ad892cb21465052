// What a recipe may ask of a model file, whatever the file's format: hyper-parameters by canonical
// name ("block_count"; the GGUF names without the architecture's prefix) and tensors by canonical
// name ("blk.0.attn_q.weight"). Read-only views; the file outlives the source. Any thread.
// Errors name keys and tensors as the file does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace vivace::model {

// Keys of flags for layers.
inline constexpr std::string_view kWindowLayers = "attention.sliding_window_pattern";
inline constexpr std::string_view kRecurrentLayers = "attention.recurrent_layers";

// Formats store some weights differently (rows in another order, norms less one): recipes ask this.
enum class SourceFormat : uint8_t { kGguf, kHuggingFace };

struct SourceTensor {
  std::string_view name;        // as the file calls it
  std::string_view type_name;   // for people
  std::optional<DType> dtype;   // none: a type we cannot compute with
  std::vector<uint64_t> shape;  // slowest first: [rows, cols]
  std::span<const std::byte> data;
};

class ModelSource {
 public:
  virtual ~ModelSource() = default;

  virtual SourceFormat format() const = 0;
  virtual std::string_view architecture() const = 0;  // as the file calls it
  virtual std::string_view model_name() const = 0;    // for people; may be empty
  // Tokens of the file's vocabulary; its arrays agree with each other (else vocab_mismatch).
  virtual Result<int64_t> VocabularySize() const = 0;

  virtual bool Has(std::string_view key) const = 0;
  // An array with an item for each layer is the one number that layers have; others have 0.
  virtual Result<int64_t> GetInt(std::string_view key) const = 0;
  virtual Result<double> GetFloat(std::string_view key) const = 0;
  virtual Result<std::string_view> GetString(std::string_view key) const = 0;
  virtual Result<bool> GetBool(std::string_view key) const = 0;
  // One for each layer: an array of booleans, of numbers, where 0 is false, or of names of layer
  // types, of which those that the key asks for are true.
  virtual Result<std::vector<bool>> GetFlags(std::string_view key) const = 0;
  virtual Result<std::vector<double>> GetFloats(std::string_view key) const = 0;

  virtual std::optional<SourceTensor> Tensor(std::string_view name) const = 0;
  virtual std::vector<std::string_view> TensorNames() const = 0;

  // An error in the file's one-line shape; `key` and `name` are canonical.
  virtual tl::unexpected<Error> KeyFault(ErrorCode code, std::string slug, std::string_view key,
                                         std::string text) const = 0;
  virtual tl::unexpected<Error> TensorFault(ErrorCode code, std::string slug, std::string_view name,
                                            std::string text) const = 0;
};

}  // namespace vivace::model
