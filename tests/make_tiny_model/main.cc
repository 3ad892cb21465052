// Writes the small model the end-to-end tests serve: make_tiny_model FILE.gguf
// Two layers of random Q4_1 weights: thousands of tokens a second, also under sanitizers.
#include "formats/tiny_llama.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto model =
      vivace::formats::MakeTinyLlama({.context = 1024, .matrices = vivace::DType::kQ4_1});
  return model.WriteFile(argv[1]) ? 0 : 1;
}
