#include "formats/gguf_parts.h"

#include <algorithm>
#include <filesystem>

#include "base/limits.h"

namespace vivace::formats {
namespace {

constexpr std::string_view kCount = "split.count";
constexpr std::string_view kNumber = "split.no";
constexpr std::string_view kTensors = "split.tensors.count";
constexpr std::string_view kArchitecture = "general.architecture";

// "-00001-of-00003.gguf", of part `number` (from 0) of `count`.
std::string Suffix(int64_t number, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

Status Expect(const GgufFile& part, std::string_view key, int64_t wanted) {
  VIVACE_ASSIGN(const int64_t value, part.GetInt(key));
  if (value == wanted) return {};
  return part.Fault(ErrorCode::kCorruptData, "bad_split", key, "is {}, but should be {}", value,
                    wanted);
}

// A later part may say whose it is; most say nothing.
Status ExpectArchitectureOf(const GgufFile& first, const GgufFile& part) {
  if (!part.Has(kArchitecture)) return {};
  VIVACE_ASSIGN(const std::string_view wanted, first.GetStringOr(kArchitecture, ""));
  VIVACE_ASSIGN(const std::string_view value, part.GetString(kArchitecture));
  if (value == wanted) return {};
  return part.Fault(ErrorCode::kCorruptData, "bad_split", kArchitecture,
                    "is {}, but {} in the first part", Printable(value), Printable(wanted));
}

Status CheckTensors(const std::vector<GgufFile>& parts) {
  std::vector<std::string_view> names;
  for (const GgufFile& part : parts) {
    for (const GgufTensor& tensor : part.tensors()) names.push_back(tensor.name);
  }
  if (parts.front().Has(kTensors)) {
    VIVACE_RETURN_IF_ERROR(Expect(parts.front(), kTensors, static_cast<int64_t>(names.size())));
  }
  if (names.size() > limits::kMaxTensors) {
    return parts.front().Fault(ErrorCode::kCorruptData, "tensor_limit", kTensors,
                               "the parts have {} tensors, over the limit of {}", names.size(),
                               limits::kMaxTensors);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  return parts.front().Fault(ErrorCode::kCorruptData, "duplicate_tensor", *twice,
                             "two parts of the model have it");
}

}  // namespace

Result<std::vector<GgufFile>> OpenGgufParts(const std::string& path) {
  std::vector<GgufFile> parts;
  VIVACE_ASSIGN(GgufFile first, GgufFile::Open(path));
  VIVACE_ASSIGN(const int64_t count, first.GetIntOr(kCount, 1));
  parts.push_back(std::move(first));
  if (count <= 1) return parts;
  if (count > static_cast<int64_t>(limits::kMaxModelParts)) {
    return parts[0].Fault(ErrorCode::kCorruptData, "bad_split", kCount,
                          "is {}, over the limit of {}", count, limits::kMaxModelParts);
  }
  VIVACE_ASSIGN(const int64_t number, parts[0].GetInt(kNumber));
  if (number != 0) {
    return parts[0].Fault(ErrorCode::kUnsupported, "bad_split", kNumber,
                          "this is part {} of {}; give the first one", number + 1, count);
  }
  const std::string suffix = Suffix(0, count);
  if (!path.ends_with(suffix)) {
    return parts[0].Fault(ErrorCode::kUnsupported, "bad_split", kCount,
                          "a model of {} parts must be in files whose names end with {} and so on",
                          count, suffix);
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  for (int64_t i = 1; i < count; ++i) {
    const std::string name = stem + Suffix(i, count);
    std::error_code ignored;
    if (!std::filesystem::exists(name, ignored)) {
      return parts[0].Fault(ErrorCode::kNotFound, "missing_part", kCount,
                            "part {} of {} is not there: {}", i + 1, count, name);
    }
    VIVACE_ASSIGN(GgufFile part, GgufFile::Open(name));
    VIVACE_RETURN_IF_ERROR(Expect(part, kCount, count));
    VIVACE_RETURN_IF_ERROR(Expect(part, kNumber, i));
    VIVACE_RETURN_IF_ERROR(ExpectArchitectureOf(parts[0], part));
    parts.push_back(std::move(part));
  }
  VIVACE_RETURN_IF_ERROR(CheckTensors(parts));
  return parts;
}

}  // namespace vivace::formats
