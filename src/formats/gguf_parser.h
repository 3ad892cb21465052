// The reader of GGUF bytes behind GgufFile: fills one file object, or says what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/byte_cursor.h"
#include "formats/gguf.h"

namespace vivace::formats {

class GgufParser {
 public:
  // `file` has its bytes and path; Run fills in the rest.
  explicit GgufParser(GgufFile& file) : file_(file), cursor_(file.bytes_) {}
  Status Run();

 private:
  Status ReadHead();
  Status ReadCount(std::string_view what, uint64_t limit, uint64_t& count);

  Status ReadEntry(uint64_t index);
  Status ReadValue(GgufEntry& entry);
  Status ReadArray(GgufEntry& entry);
  Status ReadStringItems(GgufEntry& entry);
  Status IndexEntries();
  Status ReadAlignment();

  Status ReadTensor(uint64_t index);
  Status ReadDims(GgufTensor& tensor);
  Status IndexTensors();
  Status PlaceTensors();
  Status CheckOverlap();
  Result<uint64_t> TensorBytes(const GgufTensor& tensor);

  Result<std::string_view> ReadString(std::string_view field, uint64_t limit);
  Result<GgufType> ReadType(std::string_view field);
  tl::unexpected<Error> Truncated(std::string_view field);
  // A failure of the file's contents, as all but the limits of this reader are.
  template <typename... Args>
  tl::unexpected<Error> Corrupt(std::string slug, std::string_view field,
                                fmt::format_string<Args...> format, Args&&... args) {
    return file_.Fault(ErrorCode::kCorruptData, std::move(slug), field, format,
                       std::forward<Args>(args)...);
  }

  GgufFile& file_;
  ByteCursor cursor_;
  uint64_t num_tensors_ = 0;
  uint64_t num_entries_ = 0;
  std::vector<uint64_t> offsets_;  // of each tensor, from the start of the data
};

// Bytes of one value of a fixed-size type; 0 for strings and arrays.
uint64_t FixedSize(GgufType type);

}  // namespace vivace::formats
