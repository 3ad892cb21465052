#include "text/dialect/call_reader.h"

#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "text/dialect/json_calls.h"
#include "text/dialect/json_scanner.h"
#include "text/dialect/listed_calls.h"
#include "text/dialect/literals.h"
#include "text/dialect/mark_match.h"
#include "text/dialect/named_calls.h"
#include "text/dialect/xml_calls.h"

namespace vivace::dialect {
namespace {

// Calls in a notation that is turned into JSON as a whole, up to the call's end mark or the end of
// the output.
class WholeCalls : public CallReader {
 public:
  WholeCalls(const ToolFormat& format, const ToolSet& tools) : format_(format), tools_(tools) {}

  Step Take(char c, PieceSink* sink) override {
    text_ += c;
    if (text_.ends_with(format_.call_end)) {
      text_.resize(text_.size() - format_.call_end.size());
      return Tell(sink) ? Step::kDone : Step::kBad;
    }
    return text_.size() <= limits::kMaxCallBufferBytes ? Step::kMore : Step::kBad;
  }

  bool Finish(PieceSink* sink) override { return Tell(sink); }

 private:
  std::optional<std::vector<WholeCall>> Read() const {
    return format_.shape == CallShape::kPython ? PythonCalls(text_, tools_) : GemmaCalls(text_);
  }

  // All of them or none.
  bool Tell(PieceSink* sink) {
    if (auto calls = Read()) {
      for (WholeCall& call : *calls) {
        sink->BeginCall(std::move(call.name));
        sink->Arguments(call.arguments);
      }
      return true;
    }
    // JSON, which Python's list brackets hid.
    std::vector<OutputPiece> pieces;
    int32_t counted = sink->calls();
    PieceSink own(&counted);
    own.set_pieces(&pieces);
    JsonCalls json(nullptr);
    Step step = Step::kMore;
    for (const char c : text_) {
      if (step == Step::kDone && IsJsonSpace(c)) continue;
      step = step == Step::kMore ? json.Take(c, &own) : Step::kBad;
    }
    if (step != Step::kDone) return false;
    for (OutputPiece& piece : pieces) {
      if (piece.kind == PieceKind::kToolCall) {
        sink->BeginCall(std::move(piece.text));
      } else {
        sink->Arguments(piece.text);
      }
    }
    return true;
  }

  const ToolFormat& format_;
  const ToolSet& tools_;
  std::string text_;
};

std::unique_ptr<CallReader> ReaderOfShape(const ToolFormat& format, const ToolSet& tools) {
  switch (format.shape) {
    case CallShape::kNamed:
      return std::make_unique<NamedCall>(format.name_rule);
    case CallShape::kXml:
      return std::make_unique<XmlCall>(format.xml, format.call_end, tools);
    case CallShape::kPython:
    case CallShape::kGemma:
      return std::make_unique<WholeCalls>(format, tools);
    default:
      return std::make_unique<JsonCalls>(format.marked() ? nullptr : &tools);
  }
}

// JSON is read as such in the formats of every shape, but those that are read as a whole.
class ReaderByFirstByte : public CallReader {
 public:
  ReaderByFirstByte(const ToolFormat& format, const ToolSet& tools)
      : format_(format), tools_(tools) {}

  Step Take(char c, PieceSink* sink) override {
    if (inner_ == nullptr) {
      if (IsJsonSpace(c)) return ++spaces_ <= limits::kMaxHeldSpaceBytes ? Step::kMore : Step::kBad;
      const bool json = c == '{' || c == '[';
      inner_ = json ? std::make_unique<JsonCalls>(format_.marked() ? nullptr : &tools_)
                    : ReaderOfShape(format_, tools_);
    }
    const Step step = inner_->Take(c, sink);
    in_call_ = inner_->in_call();
    return step;
  }

  bool Finish(PieceSink* sink) override { return inner_ != nullptr && inner_->Finish(sink); }
  bool unclosed() const override { return inner_ != nullptr && inner_->unclosed(); }

 private:
  const ToolFormat& format_;
  const ToolSet& tools_;
  std::unique_ptr<CallReader> inner_;
  size_t spaces_ = 0;
};

}  // namespace

std::unique_ptr<CallReader> NewCallReader(const ToolFormat& format, const ToolSet& tools) {
  switch (format.shape) {
    case CallShape::kNone:
    case CallShape::kHarmony:
      return nullptr;
    case CallShape::kPython:
      if (!format.marked()) return std::make_unique<ListedCalls>(tools);
      [[fallthrough]];
    case CallShape::kGemma:
      return ReaderOfShape(format, tools);
    default:
      return std::make_unique<ReaderByFirstByte>(format, tools);
  }
}

}  // namespace vivace::dialect
