#include "base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/cgroup.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace vivace {
namespace {

struct Features {
  bool avx2 = false;
  bool avx_vnni = false;
  bool avx512 = false;
  bool avx512_bf16 = false;
};

#if defined(__x86_64__)

constexpr bool Bit(uint32_t word, int bit) { return (word >> bit) & 1; }

// Which register files the operating system saves on a context switch.
uint64_t ReadXcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

Features Detect() {
  Features features;
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return features;
  const bool fma = Bit(c, 12), osxsave = Bit(c, 27), avx = Bit(c, 28), f16c = Bit(c, 29);
  if (!osxsave || !avx || !fma || !f16c) return features;
  const uint64_t xcr0 = ReadXcr0();
  constexpr uint64_t kYmm = 0x6, kZmm = 0xe6;  // xmm + ymm; also opmask, zmm0-15 high, zmm16-31
  if ((xcr0 & kYmm) != kYmm || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  features.avx2 = Bit(b, 5);
  const bool f = Bit(b, 16), dq = Bit(b, 17), bw = Bit(b, 30), vl = Bit(b, 31), vnni = Bit(c, 11);
  const uint32_t last_subleaf = a;
  features.avx512 = features.avx2 && f && dq && bw && vl && vnni && (xcr0 & kZmm) == kZmm;
  if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    features.avx_vnni = features.avx2 && Bit(a, 4);
    features.avx512_bf16 = features.avx512 && Bit(a, 5);
  }
  return features;
}

#else

Features Detect() { return {}; }

#endif

const Features& Machine() {
  static const Features features = Detect();
  return features;
}

int AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

std::string_view Name(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return "reference";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512bf16";
  }
  return "unknown";
}

std::optional<Isa> ParseIsa(std::string_view name) {
  for (Isa isa : kIsas) {
    if (name == Name(isa)) return isa;
  }
  return std::nullopt;
}

bool Supported(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return true;
    case Isa::kAvx2:
      return Machine().avx2;
    case Isa::kAvxVnni:
      return Machine().avx_vnni;
    case Isa::kAvx512:
      return Machine().avx512;
    case Isa::kAvx512Bf16:
      return Machine().avx512_bf16;
  }
  return false;
}

Isa BestIsa() {
  Isa best = Isa::kReference;
  for (Isa isa : kIsas) {
    if (isa <= Isa::kAvx512 && Supported(isa)) best = isa;
  }
  return best;
}

int UsableCpus() {
  const int cpus = AffinityCpus();
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream text;
  text << file.rdbuf();
  const auto quota = CgroupCpuQuota(text.str(), "/sys/fs/cgroup");
  if (!quota || *quota >= cpus) return cpus;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

}  // namespace vivace
