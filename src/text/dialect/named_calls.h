// A call as a header that holds the name, then the arguments as a JSON object: Mistral, DeepSeek,
// Kimi.
#pragma once

#include <string>

#include "text/dialect/call_reader.h"
#include "text/dialect/json_scanner.h"

namespace vivace::dialect {

class NamedCall : public CallReader {
 public:
  explicit NamedCall(const NameRule& rule) : rule_(rule) {}
  Step Take(char c, PieceSink* sink) override;

 private:
  std::string_view Name() const;

  const NameRule& rule_;
  std::string header_;
  JsonScanner scanner_;
};

}  // namespace vivace::dialect
