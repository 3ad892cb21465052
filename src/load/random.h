// Random numbers of plans: a stream named by a seed and a purpose, the same on every machine, which
// the standard library's distributions are not. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vivace::load {

class Random {
 public:
  // Streams of one seed with different purposes have nothing to do with each other.
  Random(uint64_t seed, uint64_t purpose) : seed_(seed), purpose_(purpose) {}

  uint64_t Bits();
  double Uniform();            // [0, 1)
  size_t Below(size_t bound);  // [0, bound); bound > 0
  double Normal();             // Box and Muller, 1958
  double Gamma(double shape);  // scale 1; shape > 0; Marsaglia and Tsang, 2000

 private:
  uint64_t seed_, purpose_;
  uint64_t drawn_ = 0;
};

}  // namespace vivace::load
