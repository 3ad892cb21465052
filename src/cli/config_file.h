// A file of flags, as `vivace tune` writes it and people do: one JSON object.
//
//   {"model": "model.gguf", "max-num-seqs": 32, "max_itl": 50, "enable-prefix-caching": true,
//    "served-model-name": ["a", "b"]}
//
// Keys are the names of flags without their dashes in front, with dashes or underscores; "model" is
// the word that is no flag. Values are strings, numbers, true or false for switches, and lists for
// flags that may be given several times. "provenance" may hold anything: it says where the file
// comes from, and is not read. Nothing of a file is trusted: bounded, and refused with its key.
// Cost: reads the file, at most limits::kMaxConfigBytes. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace vivace::cli {

struct ConfigEntry {
  std::string key = {};   // as the file has it
  std::string name = {};  // with dashes
  std::vector<std::string> words = {};
  bool is_switch = false;  // true or false
  std::string shown = {};  // the value, for errors
};

struct ConfigFile {
  std::string path = {};
  std::string model = {};  // empty: it names none
  std::vector<ConfigEntry> entries = {};
};

Result<ConfigFile> ReadConfigFile(const std::string& path);

}  // namespace vivace::cli
