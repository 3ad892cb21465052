// Segment: a byte range of a rendered text with its origin.
//
// A chat template renders to one string plus a list of segments that tile it. Text the template
// author wrote is trusted (its "<|im_start|>" is the control token); text that came from outside
// (messages, tool output) is not, so it can never become a control token. Plain value, no
// ownership.
#pragma once

#include <cstddef>

namespace vivace {

struct Segment {
  size_t begin = 0;  // first byte
  size_t end = 0;    // one past the last byte
  bool trusted = false;
};

}  // namespace vivace
