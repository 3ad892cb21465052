#include "text/pretokenizer_names.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace vivace {
namespace {

// What several patterns share.
#define CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define NOT_WORD R"([^\r\n\p{L}\p{N}]?)"

constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|)" SPACES;
// Characters that Unicode normalisation would replace are escaped.
constexpr std::string_view kDeepseekLatin =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗ)"
    R"(ὙὛὝὟ-\u1F7Dᾀ-ᾴᾶ-ᾼ\u1FBEῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿ)"
    R"(ﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr std::string_view kDeepseekSigns = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr std::string_view kDeepseekCjk = "[一-龥ࠀ-一가-퟿]+";
constexpr std::string_view kExaone4 =
    CONTRACTIONS "|" NOT_WORD R"((?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})"
                 R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    CONTRACTIONS "|" NOT_WORD R"(\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" SPACES;

#undef CONTRACTIONS
#undef SPACES
#undef NOT_WORD

enum Flags : uint8_t {
  kIgnoreMerges = 1,
  kAddBos = 2,
  kNfc = 4,
  kMayPrefixSpace = 8,
  kDigitsFirst = 16,     // `Digits`, one by one, before the patterns
  kDigitsBehind = 32,    // `Digits`, in runs, behind the patterns
  kThreeDigitsLast = 64  // and then three by three
};

struct Family {
  std::optional<Pretokenizer> scanner{};  // or
  std::string_view patterns[5]{};         // one after the other
  uint8_t flags = 0;
};
struct Name {
  std::string_view name;
  Family family;
};

constexpr Family kGpt2Family = {.scanner = Pretokenizer::kGpt2, .flags = kMayPrefixSpace};
constexpr Family kStarcoderFamily = {.scanner = Pretokenizer::kSmolLm};
constexpr Family kLlama3Family = {.scanner = Pretokenizer::kLlama3,
                                  .flags = kIgnoreMerges | kAddBos};
constexpr Family kPlainLlama3Family = {.scanner = Pretokenizer::kLlama3};
constexpr Family kQwen2Family = {.scanner = Pretokenizer::kQwen2, .flags = kNfc};
constexpr Family kPlainQwen2Family = {.scanner = Pretokenizer::kQwen2};
constexpr Family kO200kFamily = {.scanner = Pretokenizer::kO200k};
constexpr Family kDeepseek3Family = {
    .patterns = {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepseek3}};

constexpr Name kNames[] = {
    {"gpt-2", kGpt2Family},
    {"phi-2", kGpt2Family},
    {"jina-es", kGpt2Family},
    {"jina-de", kGpt2Family},
    {"jina-v2-es", kGpt2Family},
    {"jina-v2-de", kGpt2Family},
    {"gigachat", kGpt2Family},
    {"roberta-bpe", kGpt2Family},
    {"mpt", kGpt2Family},
    {"olmo", kGpt2Family},
    {"jais", kGpt2Family},
    {"trillion", kGpt2Family},
    {"granite-docling", kGpt2Family},
    {"smollm", kStarcoderFamily},
    {"starcoder", kStarcoderFamily},
    {"refact", kStarcoderFamily},
    {"command-r", {.scanner = Pretokenizer::kSmolLm, .flags = kNfc | kAddBos}},
    {"codeshell", kStarcoderFamily},
    {"exaone", kStarcoderFamily},
    {"minerva-7b", kStarcoderFamily},
    {"llama-bpe", kLlama3Family},
    {"llama3", kLlama3Family},
    {"llama-v3", kLlama3Family},
    {"falcon3", kLlama3Family},
    {"lfm2", kLlama3Family},
    {"pixtral", kLlama3Family},
    {"smaug-bpe", kPlainLlama3Family},
    {"dbrx", kPlainLlama3Family},
    {"chatglm-bpe", kPlainLlama3Family},
    {"glm4", kPlainLlama3Family},
    {"qwen2", kQwen2Family},
    {"deepseek-r1-qwen", kQwen2Family},
    {"megrez", kQwen2Family},
    {"stablelm2", kPlainQwen2Family},
    {"hunyuan", kPlainQwen2Family},
    {"grok-2", kPlainQwen2Family},
    {"gpt-4o", kO200kFamily},
    {"llama4", kO200kFamily},
    {"tekken", {.scanner = Pretokenizer::kTekken, .flags = kIgnoreMerges | kAddBos}},
    {"exaone4", {.patterns = {kExaone4}}},
    {"bailingmoe", {.patterns = {kBailing}}},
    {"seed-coder", {.patterns = {kSeedCoder}, .flags = kIgnoreMerges}},
    {"deepseek-v3", kDeepseek3Family},
    {"hunyuan-dense", kDeepseek3Family},
    {"deepseek-llm",
     {.patterns = {"[\r\n]", kDeepseekLatin, kDeepseekSigns, R"(\s+$)", kDeepseekCjk},
      .flags = kDigitsBehind}},
    {"deepseek-coder",
     {.patterns = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk}, .flags = kDigitsFirst}},
    {"falcon", {.scanner = Pretokenizer::kGpt2, .flags = kThreeDigitsLast}},
};

using cut::Behavior;

Result<CutterStep> Split(std::string_view pattern) {
  VIVACE_ASSIGN(auto regex, Regex::Compile(pattern));
  return cut::Split{TextPattern(std::move(regex)), Behavior::kIsolated, false};
}

CutterStep Digits(bool one_by_one) {
  return cut::Split{TextPattern(CharKind::kNumeric),
                    one_by_one ? Behavior::kIsolated : Behavior::kContiguous, false};
}

}  // namespace

Result<std::optional<PretokenizerFamily>> PretokenizerFamilyByName(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, &Name::name);
  if (found == std::end(kNames)) return std::optional<PretokenizerFamily>();
  const auto& [scanner, patterns, flags] = found->family;
  PretokenizerFamily family;
  if ((flags & kDigitsFirst) != 0) family.cutter.push_back(Digits(/*one_by_one=*/true));
  if ((flags & kThreeDigitsLast) != 0) {
    family.cutter.emplace_back(
        cut::Split{TextPattern(CharKind::kPunctuation), Behavior::kContiguous});
  }
  if (scanner) family.cutter.emplace_back(cut::Split{TextPattern(*scanner)});
  for (const std::string_view pattern : patterns) {
    if (pattern.empty()) break;
    VIVACE_ASSIGN(CutterStep step, Split(pattern));
    family.cutter.push_back(std::move(step));
  }
  if ((flags & kDigitsBehind) != 0) family.cutter.push_back(Digits(/*one_by_one=*/false));
  family.cutter.emplace_back(cut::ByteLevel{false, false});
  if ((flags & kThreeDigitsLast) != 0) {  // Falcon's: these see the byte-level alphabet
    family.cutter.push_back(Digits(/*one_by_one=*/false));
    VIVACE_ASSIGN(CutterStep step, Split("[0-9][0-9][0-9]"));
    family.cutter.push_back(std::move(step));
  }
  if ((flags & kNfc) != 0) family.normalizer.emplace_back(unicode::Form::kNfc);
  family.ignore_merges = (flags & kIgnoreMerges) != 0;
  family.add_bos = (flags & kAddBos) != 0;
  family.may_prefix_space = (flags & kMayPrefixSpace) != 0;
  return std::optional<PretokenizerFamily>(std::move(family));
}

}  // namespace vivace
