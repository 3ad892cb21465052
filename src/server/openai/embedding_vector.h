// What is made of a pooled hidden state: an embedding, its base64, and how near two are. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vivace::server {

// The first `dimensions` values, scaled to a length of 1 if `normalize`. Empty if a value is not
// finite.
std::vector<float> MakeEmbedding(std::span<const float> hidden, int32_t dimensions, bool normalize);

// Of two embeddings of length 1; in [-1, 1].
float CosineSimilarity(std::span<const float> a, std::span<const float> b);

// The values as little-endian float32, which is what OpenAI's clients read.
std::string EncodeBase64(std::span<const float> values);

}  // namespace vivace::server
