// Why the first waiting sequence did not start in a step.
#pragma once

#include <cstdint>

namespace vivace {

enum class WaitCause : uint8_t {
  kNone,       // nothing waits, or it waited only for the step under way
  kSequences,  // max_num_seqs run already
  kTokens,     // the step's tokens, or its time, went to those before it
  kKvRoom,     // the KV cache has no room for it
};

}  // namespace vivace
