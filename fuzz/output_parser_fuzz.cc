// Outputs of models in every dialect: no input may make a parser throw, loop or depend on cuts. The
// first byte chooses the format, the second where the output begins, the third how it is cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/dialect/output_parser.h"

namespace {

using vivace::Dialect;
using vivace::OutputParser;
using vivace::OutputPiece;

std::string Told(const Dialect& dialect, vivace::ReasoningStart start, std::string_view text,
                 size_t cut) {
  auto tools = std::make_shared<vivace::dialect::ToolSet>();
  tools->tools.push_back({"f", nullptr, false});
  const auto parser = OutputParser::New(dialect, start, tools);
  std::vector<OutputPiece> pieces;
  while (!text.empty()) {
    parser->Feed(text.substr(0, cut), &pieces);
    text.remove_prefix(std::min(cut, text.size()));
  }
  parser->Finish(&pieces);
  std::string told;
  for (const OutputPiece& piece : pieces) {
    told += static_cast<char>('a' + static_cast<int>(piece.kind));
    told += piece.text + '\n';
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const auto formats = vivace::dialect::ToolFormats();
  Dialect dialect;
  dialect.tools = &formats[data[0] % formats.size()];
  dialect.reasoning = &vivace::dialect::ReasoningFormats()[data[0] % 6];
  const auto start = static_cast<vivace::ReasoningStart>(data[1] % 3);
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  if (Told(dialect, start, text, 1 + data[2] % 16) != Told(dialect, start, text, size)) {
    std::abort();
  }
  return 0;
}
