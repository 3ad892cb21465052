// Bounds of load generation (load/): what a server that is measured may make the client hold, and
// what a command line may ask for. See limits.h, whose rules hold here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vivace::limits {

inline constexpr int32_t kMaxLoadRequests = 1'000'000;  // of one run
inline constexpr int32_t kMaxLoadConcurrency = 65'536;
inline constexpr double kMaxLoadRate = 1e6;                // requests a second
inline constexpr size_t kMaxLoadAnswerBytes = 256u << 20;  // of one answer, its frames included
inline constexpr int64_t kMaxLoadEvents = 1 << 20;         // with content, of one answer
inline constexpr size_t kMaxLoadErrorBytes = 64u << 10;    // read of an error's body
inline constexpr size_t kMaxLoadReasonBytes = 240;         // kept of a server's sentence
inline constexpr size_t kMaxLoadTextBytes = 4u << 20;      // of an answer that the next turn needs
inline constexpr size_t kMaxLoadFetchBytes = 64u << 20;    // /v1/models, /tokenize, /metrics
inline constexpr size_t kMaxLoadSamples = 100'000;         // readings of /metrics in one run
inline constexpr size_t kMaxLoadHeaders = 64;              // of the command line
inline constexpr size_t kMaxLoadExtraBodyBytes = 1u << 20;
inline constexpr double kMaxLoadSeconds = 7 * 86'400;  // any time on the command line
inline constexpr size_t kMaxSimTruths = 100'000;       // requests a simulated server remembers
inline constexpr int32_t kMaxSimTokens = 1 << 20;      // max_tokens of a simulated answer

}  // namespace vivace::limits
