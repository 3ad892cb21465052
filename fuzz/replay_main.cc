// Stands in for libFuzzer where the compiler has none: runs the target over every file given, then
// over seeded mutations of it.
//   NAME_fuzz [--mutations N] FILE_OR_FOLDER...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

constexpr size_t kMaxMutatedBytes = 128 << 10;  // larger files run once, as they are

Bytes Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One edit: a flipped bit, a telling value, a cut, a lost byte, or a repeated part.
void Edit(Bytes* bytes, std::mt19937_64* rng) {
  constexpr uint8_t kTelling[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '{', '[', '"', '%', '\n'};
  const auto below = [rng](size_t n) { return static_cast<size_t>((*rng)() % n); };
  const size_t at = below(bytes->size());
  const auto here = bytes->begin() + static_cast<ptrdiff_t>(at);
  switch (below(5)) {
    case 0:
      *here ^= static_cast<uint8_t>(1u << below(8));
      break;
    case 1:
      *here = kTelling[below(std::size(kTelling))];
      break;
    case 2:
      bytes->resize(at);
      break;
    case 3:
      bytes->erase(here);
      break;
    default: {
      const size_t count = std::min(1 + below(32), bytes->size() - at);
      const Bytes part(here, here + static_cast<ptrdiff_t>(count));
      bytes->insert(bytes->begin() + static_cast<ptrdiff_t>(below(bytes->size())), part.begin(),
                    part.end());
    }
  }
}

void RunFile(const fs::path& path, int mutations) {
  const Bytes seed = Read(path);
  LLVMFuzzerTestOneInput(seed.data(), seed.size());
  if (seed.size() > kMaxMutatedBytes) return;
  std::mt19937_64 rng(seed.size());
  for (int i = 0; i < mutations; ++i) {
    Bytes bytes = seed;
    for (uint64_t edits = 1 + rng() % 4; edits > 0 && !bytes.empty(); --edits) Edit(&bytes, &rng);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int mutations = 0, files = 0;
  for (int i = 1; i < argc; ++i) {
    const fs::path path = argv[i];
    if (path == "--mutations" && i + 1 < argc) {
      mutations = std::atoi(argv[++i]);
    } else if (fs::is_regular_file(path)) {
      RunFile(path, mutations);
      ++files;
    } else if (fs::is_directory(path)) {
      for (const auto& entry : fs::recursive_directory_iterator(path)) {
        if (!entry.is_regular_file()) continue;
        RunFile(entry.path(), mutations);
        ++files;
      }
    }
  }
  std::printf("%d files, %d mutations of each\n", files, mutations);
  return 0;
}
