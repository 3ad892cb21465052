// What to send, made before the run from a named kind of dataset: synthetic ones of exact lengths
// in the server's tokens, and users' files.
//
// Seeded: the same options and the same counter give the same workload, byte for byte. Files are
// hostile: bounded (base/limits.h), and a broken line is refused with the file, the line and why.
// Cost: a prompt of exact length takes about three calls of the counter. Any thread; blocks on the
// counter and on the disk.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/workload.h"

namespace vivace::load {

// The server's tokens: a tokenizer in this process, or the server's own /tokenize.
class TokenCounter {
 public:
  virtual ~TokenCounter() = default;
  // As the server counts a prompt of /v1/completions, special tokens in front included.
  virtual Result<std::vector<int32_t>> Encode(std::string_view text) = 0;
  virtual Result<std::string> Decode(std::span<const int32_t> ids) = 0;
  virtual int32_t vocab_size() const = 0;
  // Tokens that the chat template puts around one message of a user; those of Encode's in front
  // are among them. -1: not known.
  virtual Result<int32_t> ChatOverhead() { return -1; }
};

struct DatasetOptions {
  std::string name = "random";  // of Datasets()
  std::string path = {};        // of a file
  size_t num_prompts = 1000;    // requests; a file that has fewer gives fewer
  uint64_t seed = 0;
  int32_t input_len = 1024, output_len = 128;
  double input_len_std = 0, output_len_std = 0;  // normal around the lengths
  double range_ratio = 0;  // uniform in length * [1 - ratio, 1 + ratio]; not with a deviation
  int32_t prefix_len = 0;  // tokens that prompts share, in front of input_len
  int32_t num_prefixes = 1;
  int32_t turns = 1;              // of a conversation
  bool token_ids = false;         // send ids where the endpoint takes them
  bool chat = false;              // messages rather than text
  bool renders = false;           // a file's messages are taken though it is not `chat`
  bool input_len_given = false;   // `input_len` is the user's wish: files have their own
  bool output_len_given = false;  // `output_len` is the user's wish: it goes before the file's own
};

// Whether they can be met at all, before anything is read or made; errors name the flag.
Status CheckDataset(const DatasetOptions& options);

// `counter` may be null: lengths are then approximate (a common word for a token) and
// Workload::name says so.
Result<Workload> MakeWorkload(const DatasetOptions& options, TokenCounter* counter);

// The kinds there are, for help and for errors.
struct DatasetKind {
  std::string_view name;
  std::string_view help;  // one line
  bool needs_path;
  Result<Workload> (*make)(const DatasetOptions&, TokenCounter*);
};
std::span<const DatasetKind> Datasets();

// The kind of a user's file, by its first entry: what has conversations is ShareGPT's, what has
// lengths, or is no JSON, a trace.
Result<std::string_view> KindOfFile(const std::string& path);

// Turns of a conversation: those that are asked for, 3 of multi-turn where none are, else 1.
int32_t TurnsOf(const DatasetOptions& options);

// Lengths that stand for a kind of use. Each is a kind of dataset by its name, too.
struct LengthPreset {
  std::string_view name;
  int32_t input, output;
};
inline constexpr LengthPreset kLengthPresets[] = {{"prefill-heavy", 768, 128},
                                                  {"decode-heavy", 128, 768}};

}  // namespace vivace::load
