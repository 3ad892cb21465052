// The pipelines of a tokenizer.json: normaliser, pre-tokeniser, decoder. Each type that a step may
// have is a row of a table; a type that no table has is refused by its name.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/utf8.h"
#include "text/base64.h"
#include "text/charsmap.h"
#include "text/tokenizer_json_reader.h"

namespace vivace::tokenizer_json {
namespace {

template <typename Step>
struct StepType {
  std::string_view name;
  Status (*read)(const json::object& step, std::vector<Step>* out);
};

template <typename Step>
Result<std::vector<Step>> ReadSteps(const json::object& root, std::string_view part,
                                    std::string_view list, std::span<const StepType<Step>> types,
                                    std::string_view reason) {
  std::vector<Step> out;
  VIVACE_ASSIGN(const auto steps, Steps(root, part, list));
  for (const json::object* step : steps) {
    VIVACE_ASSIGN(const std::string_view type, TypeOf(*step));
    const auto found = std::ranges::find(types, type, &StepType<Step>::name);
    if (found == types.end()) return Unsupported(reason, part, type);
    VIVACE_RETURN_IF_ERROR(found->read(*step, &out));
  }
  return out;
}

// ---- Normalisers

using Normalizers = std::vector<NormalizerStep>;

template <unicode::Form form>
Status ReadForm(const json::object&, Normalizers* out) {
  out->push_back(form);
  return {};
}
template <typename Plain>
Status ReadPlainNormalizer(const json::object&, Normalizers* out) {
  out->push_back(Plain{});
  return {};
}
Status ReadStripNormalizer(const json::object& step, Normalizers* out) {
  normalize::Strip strip;
  VIVACE_ASSIGN(strip.left, GetBool(step, "strip_left", true));
  VIVACE_ASSIGN(strip.right, GetBool(step, "strip_right", true));
  out->push_back(strip);
  return {};
}
Status ReadPrepend(const json::object& step, Normalizers* out) {
  VIVACE_ASSIGN(std::string text, GetContent(step, "prepend"));
  out->push_back(normalize::Prepend{std::move(text)});
  return {};
}
Status ReadReplaceNormalizer(const json::object& step, Normalizers* out) {
  VIVACE_ASSIGN(TextPattern pattern, GetPattern(step, /*scanner=*/false));
  VIVACE_ASSIGN(std::string content, GetContent(step, "content"));
  out->push_back(normalize::Replace{std::move(pattern), std::move(content)});
  return {};
}
Status ReadBert(const json::object& step, Normalizers* out) {
  normalize::Bert bert;
  VIVACE_ASSIGN(bert.clean, GetBool(step, "clean_text", true));
  VIVACE_ASSIGN(bert.ideographs, GetBool(step, "handle_chinese_chars", true));
  VIVACE_ASSIGN(bert.lowercase, GetBool(step, "lowercase", true));
  VIVACE_ASSIGN(bert.strip_accents, GetBool(step, "strip_accents", bert.lowercase));
  out->push_back(bert);
  return {};
}
Status ReadPrecompiled(const json::object& step, Normalizers* out) {
  VIVACE_ASSIGN(const std::string_view text, GetString(step, "precompiled_charsmap"));
  const auto blob = DecodeBase64(text);
  if (!blob) return WrongType("precompiled_charsmap", "base64");
  if (blob->empty()) return {};
  VIVACE_ASSIGN(Charsmap map, Charsmap::Parse(*blob));
  out->push_back(std::make_shared<const Charsmap>(std::move(map)));
  return {};
}

constexpr StepType<NormalizerStep> kNormalizers[] = {
    {"NFC", ReadForm<unicode::Form::kNfc>},
    {"NFD", ReadForm<unicode::Form::kNfd>},
    {"NFKC", ReadForm<unicode::Form::kNfkc>},
    {"NFKD", ReadForm<unicode::Form::kNfkd>},
    {"Lowercase", ReadPlainNormalizer<normalize::Lowercase>},
    {"StripAccents", ReadPlainNormalizer<normalize::StripAccents>},
    {"Nmt", ReadPlainNormalizer<normalize::Nmt>},
    {"ByteLevel", ReadPlainNormalizer<normalize::ByteLevel>},
    {"Strip", ReadStripNormalizer},
    {"Prepend", ReadPrepend},
    {"Replace", ReadReplaceNormalizer},
    {"BertNormalizer", ReadBert},
    {"Precompiled", ReadPrecompiled},
};

// ---- Pre-tokenisers

using Cutters = std::vector<CutterStep>;

struct NamedBehavior {
  std::string_view name;
  cut::Behavior behavior;
};
constexpr NamedBehavior kBehaviors[] = {
    {"Removed", cut::Behavior::kRemoved},
    {"Isolated", cut::Behavior::kIsolated},
    {"MergedWithPrevious", cut::Behavior::kMergedWithPrevious},
    {"MergedWithNext", cut::Behavior::kMergedWithNext},
    {"Contiguous", cut::Behavior::kContiguous},
};

Result<cut::Behavior> GetBehavior(const json::object& step, std::string_view fallback) {
  VIVACE_ASSIGN(std::string_view name, GetString(step, "behavior"));
  if (name.empty()) name = fallback;
  const auto found = std::ranges::find(kBehaviors, name, &NamedBehavior::name);
  if (found == std::end(kBehaviors)) {
    return Unsupported("unknown_pretokenizer", "Split behavior", name);
  }
  return found->behavior;
}

template <typename Kind>
cut::Split SplitBy(Kind kind, cut::Behavior behavior, bool invert = false) {
  return {TextPattern(std::move(kind)), behavior, invert};
}

Status ReadSplit(const json::object& step, Cutters* out) {
  VIVACE_ASSIGN(TextPattern pattern, GetPattern(step, /*scanner=*/true));
  VIVACE_ASSIGN(const cut::Behavior behavior, GetBehavior(step, ""));
  VIVACE_ASSIGN(const bool invert, GetBool(step, "invert", false));
  out->push_back(cut::Split{std::move(pattern), behavior, invert});
  return {};
}
Status ReadByteLevel(const json::object& step, Cutters* out) {
  cut::ByteLevel bytes;
  VIVACE_ASSIGN(bytes.add_prefix_space, GetBool(step, "add_prefix_space", true));
  VIVACE_ASSIGN(bytes.use_regex, GetBool(step, "use_regex", true));
  for (const CutterStep& before : *out) {
    if (std::holds_alternative<cut::ByteLevel>(before)) {
      return Unsupported("unknown_pretokenizer", "pre_tokenizer", "two ByteLevel");
    }
  }
  out->push_back(bytes);
  return {};
}
Status ReadMetaspace(const json::object& step, Cutters* out) {
  cut::Metaspace meta;
  VIVACE_ASSIGN(meta.replacement, GetCharacter(step, "replacement", "\u2581"));
  VIVACE_ASSIGN(const std::string_view scheme, GetString(step, "prepend_scheme"));
  VIVACE_ASSIGN(const bool prefix, GetBool(step, "add_prefix_space", true));
  VIVACE_ASSIGN(meta.split, GetBool(step, "split", true));
  if (scheme == "never" || (scheme.empty() && !prefix)) {
    meta.prepend = cut::Prepend::kNever;
  } else if (scheme == "first") {
    meta.prepend = cut::Prepend::kFirst;
  } else if (scheme != "always" && !scheme.empty()) {
    return Unsupported("unknown_pretokenizer", "prepend_scheme", scheme);
  }
  out->push_back(std::move(meta));
  return {};
}
Status ReadWhitespace(const json::object&, Cutters* out) {
  out->push_back(SplitBy(RunKind::kWordsAndOthers, cut::Behavior::kRemoved, /*invert=*/true));
  return {};
}
Status ReadWhitespaceSplit(const json::object&, Cutters* out) {
  out->push_back(SplitBy(CharKind::kSpace, cut::Behavior::kRemoved));
  return {};
}
Status ReadPunctuation(const json::object& step, Cutters* out) {
  VIVACE_ASSIGN(const cut::Behavior behavior, GetBehavior(step, "Isolated"));
  out->push_back(SplitBy(CharKind::kPunctuation, behavior));
  return {};
}
Status ReadDigits(const json::object& step, Cutters* out) {
  VIVACE_ASSIGN(const bool individual, GetBool(step, "individual_digits", false));
  out->push_back(SplitBy(CharKind::kNumeric,
                         individual ? cut::Behavior::kIsolated : cut::Behavior::kContiguous));
  return {};
}
Status ReadBertPretokenizer(const json::object&, Cutters* out) {
  for (CutterStep& step : BertCutter()) out->push_back(std::move(step));
  return {};
}
Status ReadDelimiter(const json::object& step, Cutters* out) {
  VIVACE_ASSIGN(std::string delimiter, GetCharacter(step, "delimiter", ""));
  out->push_back(SplitBy(std::move(delimiter), cut::Behavior::kRemoved));
  return {};
}
Status ReadFixedLength(const json::object& step, Cutters* out) {
  cut::FixedLength fixed;
  VIVACE_ASSIGN(fixed.length, GetSize(step, "length", 5, 1u << 30));
  if (fixed.length == 0) return WrongType("length", "a positive number");
  out->push_back(fixed);
  return {};
}

constexpr StepType<CutterStep> kCutters[] = {
    {"Split", ReadSplit},
    {"ByteLevel", ReadByteLevel},
    {"Metaspace", ReadMetaspace},
    {"Whitespace", ReadWhitespace},
    {"WhitespaceSplit", ReadWhitespaceSplit},
    {"Punctuation", ReadPunctuation},
    {"Digits", ReadDigits},
    {"BertPreTokenizer", ReadBertPretokenizer},
    {"CharDelimiterSplit", ReadDelimiter},
    {"FixedLength", ReadFixedLength},
};

// Single digits and then GPT-2's pattern are one scanner.
void FuseScanners(Cutters* steps) {
  if (steps->size() != 2) return;
  const auto* digits = std::get_if<cut::Split>(&steps->front());
  auto* bytes = std::get_if<cut::ByteLevel>(&steps->back());
  if (digits == nullptr || bytes == nullptr || !bytes->use_regex || bytes->add_prefix_space) return;
  if (digits->behavior != cut::Behavior::kIsolated || !digits->pattern.Is(CharKind::kNumeric)) {
    return;
  }
  steps->front() = SplitBy(Pretokenizer::kSmolLm, cut::Behavior::kIsolated);
  bytes->use_regex = false;
}

// ---- Decoders

using Decoders = std::vector<DecoderStep>;

template <typename Plain>
Status ReadPlainDecoder(const json::object&, Decoders* out) {
  out->push_back(Plain{});
  return {};
}
Status ReadMetaspaceDecoder(const json::object& step, Decoders* out) {
  decode::Metaspace meta;
  VIVACE_ASSIGN(meta.replacement, GetCharacter(step, "replacement", "\u2581"));
  VIVACE_ASSIGN(const std::string_view scheme, GetString(step, "prepend_scheme"));
  VIVACE_ASSIGN(const bool prefix, GetBool(step, "add_prefix_space", true));
  meta.strip_first = scheme.empty() ? prefix : scheme != "never";
  out->push_back(std::move(meta));
  return {};
}
Status ReadReplaceDecoder(const json::object& step, Decoders* out) {
  VIVACE_ASSIGN(TextPattern pattern, GetPattern(step, /*scanner=*/false));
  VIVACE_ASSIGN(std::string content, GetContent(step, "content"));
  out->push_back(decode::Replace{std::move(pattern), std::move(content)});
  return {};
}
Status ReadStripDecoder(const json::object& step, Decoders* out) {
  decode::Strip strip;
  VIVACE_ASSIGN(strip.content, GetCharacter(step, "content", " "));
  VIVACE_ASSIGN(strip.start, GetSize(step, "start", 0, limits::kMaxReplacementBytes));
  VIVACE_ASSIGN(strip.stop, GetSize(step, "stop", 0, limits::kMaxReplacementBytes));
  out->push_back(std::move(strip));
  return {};
}
Status ReadWordPieceDecoder(const json::object& step, Decoders* out) {
  decode::WordPiece pieces;
  if (Get(step, "prefix") != nullptr) {
    VIVACE_ASSIGN(pieces.prefix, GetContent(step, "prefix"));
  }
  VIVACE_ASSIGN(pieces.cleanup, GetBool(step, "cleanup", true));
  out->push_back(std::move(pieces));
  return {};
}
Status ReadBpeDecoder(const json::object& step, Decoders* out) {
  decode::Bpe bpe{"</w>"};
  if (Get(step, "suffix") != nullptr) {
    VIVACE_ASSIGN(bpe.suffix, GetContent(step, "suffix"));
  }
  out->push_back(std::move(bpe));
  return {};
}

constexpr StepType<DecoderStep> kDecoders[] = {
    {"ByteLevel", ReadPlainDecoder<decode::ByteLevel>},
    {"ByteFallback", ReadPlainDecoder<decode::ByteFallback>},
    {"Fuse", ReadPlainDecoder<decode::Fuse>},
    {"Metaspace", ReadMetaspaceDecoder},
    {"Replace", ReadReplaceDecoder},
    {"Strip", ReadStripDecoder},
    {"WordPiece", ReadWordPieceDecoder},
    {"BPEDecoder", ReadBpeDecoder},
};

}  // namespace

Result<std::vector<const json::object*>> Steps(const json::object& root, std::string_view part,
                                               std::string_view list) {
  std::vector<const json::object*> steps;
  VIVACE_ASSIGN(const json::object* only, GetObject(root, part));
  if (only == nullptr) return steps;
  std::vector<const json::object*> open = {only};  // the next one last
  while (!open.empty()) {
    const json::object* step = open.back();
    open.pop_back();
    VIVACE_ASSIGN(const std::string_view type, TypeOf(*step));
    if (type != "Sequence") {
      steps.push_back(step);
    } else {
      VIVACE_ASSIGN(const json::array* items, GetArray(*step, list));
      for (size_t i = items->size(); i-- > 0;) {
        if (!items->at(i).is_object()) return WrongType(list, "an array of objects");
        open.push_back(&items->at(i).get_object());
      }
    }
    if (steps.size() + open.size() > limits::kMaxTokenizerSteps) {
      return Fail(ErrorCode::kUnsupported, "too_many_steps", std::string(part),
                  "{} has more than {} steps", part, limits::kMaxTokenizerSteps);
    }
  }
  return steps;
}

Result<std::string> GetCharacter(const json::object& object, std::string_view key,
                                 std::string_view fallback) {
  VIVACE_ASSIGN(std::string_view text, GetString(object, key));
  if (text.empty()) text = fallback;
  if (text.empty() || utf8::Decode(text, 0).length != text.size()) {
    return WrongType(key, "one character");
  }
  return std::string(text);
}

Result<TextPattern> GetPattern(const json::object& step, bool scanner) {
  VIVACE_ASSIGN(const json::object* pattern, GetObject(step, "pattern"));
  if (pattern != nullptr && Get(*pattern, "String") != nullptr) {
    VIVACE_ASSIGN(const std::string_view text, GetString(*pattern, "String"));
    return TextPattern(std::string(text));
  }
  if (pattern == nullptr || Get(*pattern, "Regex") == nullptr) {
    return WrongType("pattern", "a String or a Regex");
  }
  VIVACE_ASSIGN(const std::string_view text, GetString(*pattern, "Regex"));
  const auto kind = scanner ? PretokenizerByPattern(text) : std::nullopt;
  if (kind) return TextPattern(*kind);
  VIVACE_ASSIGN(auto regex, Regex::Compile(text));
  return TextPattern(std::move(regex));
}

Result<std::string> GetContent(const json::object& step, std::string_view key) {
  VIVACE_ASSIGN(const std::string_view text, GetString(step, key));
  if (text.size() > limits::kMaxReplacementBytes) {
    return Fail(ErrorCode::kUnsupported, "text_too_long", std::string(key),
                "'{}' has {} bytes, more than {}", key, text.size(), limits::kMaxReplacementBytes);
  }
  return std::string(text);
}

Result<std::vector<NormalizerStep>> ReadNormalizer(const json::object& root) {
  return ReadSteps<NormalizerStep>(root, "normalizer", "normalizers", kNormalizers,
                                   "unknown_normalizer");
}

Result<std::vector<CutterStep>> ReadCutter(const json::object& root) {
  VIVACE_ASSIGN(auto steps, ReadSteps<CutterStep>(root, "pre_tokenizer", "pretokenizers", kCutters,
                                                  "unknown_pretokenizer"));
  FuseScanners(&steps);
  return steps;
}

Result<std::vector<DecoderStep>> ReadDecoder(const json::object& root) {
  VIVACE_ASSIGN(auto steps,
                ReadSteps<DecoderStep>(root, "decoder", "decoders", kDecoders, "unknown_decoder"));
  if (Get(root, "decoder") == nullptr) steps.push_back(decode::Join{});
  return steps;
}

}  // namespace vivace::tokenizer_json
