// Counters of tokens for datasets: the server's own /tokenize and /detokenize (vLLM's and Vivace's
// shape, or llama-server's), or a tokenizer file in this process. Before a run, never during one.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "load/client/target.h"
#include "load/datasets/dataset.h"

namespace vivace::load {

// Asks the server once whether it can; an error says why not. Each call is a request; the size of
// the vocabulary is found by some twenty.
Result<std::unique_ptr<TokenCounter>> MakeServerCounter(const Target& target,
                                                        const std::string& model);

// `path`: a tokenizer.json, a folder with one, or a GGUF file. It has to be the server's.
Result<std::unique_ptr<TokenCounter>> MakeFileCounter(const std::string& path);

}  // namespace vivace::load
