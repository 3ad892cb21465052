#include "server/openai/embedding_vector.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vivace::server {
namespace {

using Vector = std::vector<float>;

TEST(EmbeddingVector, IsCutThenScaled) {
  EXPECT_EQ(MakeEmbedding(Vector{3, 4, 12}, 3, false), (Vector{3, 4, 12}));
  EXPECT_EQ(MakeEmbedding(Vector{3, 4, 12}, 2, true), (Vector{0.6f, 0.8f}));
  EXPECT_EQ(MakeEmbedding(Vector{0, 0}, 2, true), (Vector{0, 0})) << "no direction, no division";
  EXPECT_TRUE(MakeEmbedding(Vector{1, NAN}, 2, true).empty());
  EXPECT_TRUE(MakeEmbedding(Vector{INFINITY, 1}, 2, false).empty());
}

TEST(EmbeddingVector, CosineIsOfDirections) {
  EXPECT_EQ(CosineSimilarity(Vector{1, 0}, Vector{0, 1}), 0.0f);
  EXPECT_EQ(CosineSimilarity(Vector{0.6f, 0.8f}, Vector{-0.6f, -0.8f}), -1.0f);
  EXPECT_EQ(CosineSimilarity(Vector{1.0000001f, 0}, Vector{1, 0}), 1.0f);
}

// RFC 4648's padding, over little-endian float32.
TEST(EmbeddingVector, Base64) {
  EXPECT_EQ(EncodeBase64({}), "");
  EXPECT_EQ(EncodeBase64(Vector{1.0f}), "AACAPw==");
  EXPECT_EQ(EncodeBase64(Vector{1.0f, -2.5f}), "AACAPwAAIMA=");
  EXPECT_EQ(EncodeBase64(Vector{1.0f, -2.5f, 0.15625f}), "AACAPwAAIMAAACA+");
}

}  // namespace
}  // namespace vivace::server
