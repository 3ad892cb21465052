#include "hub/file_choice.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "base/limits.h"

namespace vivace::hub {
namespace {

// "model-00001-of-00003.gguf": stem "model", part 1 of 3.
struct Part {
  std::string stem;  // without ending and counters
  size_t index = 1;
  size_t count = 1;
};

std::string_view BaseName(std::string_view name) { return name.substr(name.rfind('/') + 1); }

std::optional<size_t> Number(std::string_view digits) {
  if (digits.size() < 5 || digits.size() > 6) return std::nullopt;
  size_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<size_t>(c - '0');
  }
  return value;
}

Part PartOf(std::string_view name, std::string_view ending) {
  const std::string_view stem = name.substr(0, name.size() - ending.size());
  const size_t of = stem.rfind("-of-");
  const size_t dash = of == std::string_view::npos || of == 0 ? of : stem.rfind('-', of - 1);
  if (of != std::string_view::npos && dash != std::string_view::npos && dash < of) {
    const auto index = Number(stem.substr(dash + 1, of - dash - 1));
    const auto count = Number(stem.substr(of + 4));
    if (index && count && *index >= 1 && *index <= *count) {
      return {std::string(stem.substr(0, dash)), *index, *count};
    }
  }
  return {std::string(stem), 1, 1};
}

// A file, or all parts of one, in order.
struct Whole {
  std::string stem;
  size_t count = 1;
  std::map<size_t, std::string> parts;
  bool complete() const { return parts.size() == count; }
};

std::vector<Whole> Gather(std::span<const std::string> names, std::string_view ending) {
  std::map<std::pair<std::string, size_t>, Whole> wholes;
  for (const std::string& name : names) {
    const Part part = PartOf(name, ending);
    Whole& whole = wholes[{part.stem, part.count}];
    whole.stem = part.stem;
    whole.count = part.count;
    whole.parts[part.index] = name;
  }
  std::vector<Whole> out;
  for (auto& [key, whole] : wholes) out.push_back(std::move(whole));
  return out;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

// "Q4_K" is not in "m-Q4_K_M", nor "Q4_NL" in "m.IQ4_NL".
bool HasWord(std::string_view stem, std::string_view word) {
  const std::string text = Upper(BaseName(stem)), wanted = Upper(word);
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
    const size_t end = at + wanted.size();
    const auto is_alnum = [&](size_t i) {
      return std::isalnum(static_cast<unsigned char>(text[i])) != 0;
    };
    if ((at == 0 || !is_alnum(at - 1)) &&
        (end == text.size() || (!is_alnum(end) && text[end] != '_'))) {
      return true;
    }
  }
  return false;
}

Result<Choice> FromWhole(const Whole& whole) {
  if (!whole.complete()) {
    return Fail(ErrorCode::kNotFound, "missing_parts", whole.stem, "{} has {} of its {} parts",
                whole.stem, whole.parts.size(), whole.count);
  }
  Choice choice;
  for (const auto& [index, name] : whole.parts) choice.files.push_back(name);
  choice.model = choice.files.front();
  return choice;
}

std::vector<std::string> Ending(std::span<const std::string> names, std::string_view ending) {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out),
               [ending](const std::string& name) { return name.ends_with(ending); });
  return out;
}

std::vector<Whole> Ggufs(std::span<const std::string> names) {
  std::vector<Whole> wholes = Gather(Ending(names, ".gguf"), ".gguf");
  std::erase_if(wholes, [](const Whole& whole) {  // vision projectors, calibration data
    const std::string base = Upper(BaseName(whole.stem));
    return base.starts_with("MMPROJ") || base.find("IMATRIX") != std::string::npos;
  });
  return wholes;
}

std::vector<Whole> WithWord(const std::vector<Whole>& wholes, std::string_view word) {
  std::vector<Whole> out;
  std::copy_if(wholes.begin(), wholes.end(), std::back_inserter(out),
               [word](const Whole& whole) { return HasWord(whole.stem, word); });
  return out;
}

tl::unexpected<Error> AskWhich(const std::vector<Whole>& wholes, const ModelName& wanted) {
  constexpr size_t kMostNamed = 40;
  std::string list;
  for (size_t i = 0; i < std::min(wholes.size(), kMostNamed); ++i) {
    list += fmt::format("\n  {}:{}", wanted.repo, wholes[i].parts.begin()->second);
  }
  if (wholes.size() > kMostNamed)
    list += fmt::format("\n  and {} more", wholes.size() - kMostNamed);
  return Fail(ErrorCode::kInvalidArgument, "several_models", wanted.text(),
              "{} has several models; name one:{}", wanted.text(), list);
}

Result<Choice> ChooseGguf(const std::vector<Whole>& ggufs, const ModelName& wanted) {
  for (const std::string_view word : kGgufPreference) {
    const std::vector<Whole> found = WithWord(ggufs, word);
    if (found.size() == 1) return FromWhole(found[0]);
    if (found.size() > 1) return AskWhich(found, wanted);
  }
  if (ggufs.size() == 1) return FromWhole(ggufs[0]);
  return AskWhich(ggufs, wanted);
}

Result<Choice> ChooseNamed(std::span<const std::string> names, const ModelName& wanted) {
  if (std::find(names.begin(), names.end(), wanted.file) != names.end()) {
    if (!wanted.file.ends_with(".gguf")) return Choice{{wanted.file}, wanted.file};
    const Part part = PartOf(wanted.file, ".gguf");
    for (const Whole& whole : Gather(Ending(names, ".gguf"), ".gguf")) {
      if (whole.stem == part.stem && whole.count == part.count) return FromWhole(whole);
    }
  }
  const std::vector<Whole> ggufs = Ggufs(names);
  const std::vector<Whole> found = WithWord(ggufs, wanted.file);
  if (found.size() == 1) return FromWhole(found[0]);
  if (found.size() > 1) return AskWhich(found, wanted);
  if (!ggufs.empty()) {
    auto error = AskWhich(ggufs, {wanted.repo, {}});
    error.value().reason = "no_such_file";
    error.value().message =
        fmt::format("{}: no such file; {}", wanted.text(), error.value().message);
    return error;
  }
  return Fail(ErrorCode::kNotFound, "no_such_file", wanted.file, "{} has no file {}", wanted.repo,
              wanted.file);
}

constexpr std::string_view kSmallFiles[] = {"config.json",
                                            "generation_config.json",
                                            "special_tokens_map.json",
                                            "added_tokens.json",
                                            "vocab.json",
                                            "vocab.txt",
                                            "merges.txt",
                                            "spiece.model",
                                            "chat_template.jinja",
                                            "chat_template.json"};

bool IsSmallFile(std::string_view name) {
  if (std::find(std::begin(kSmallFiles), std::end(kSmallFiles), name) != std::end(kSmallFiles)) {
    return true;
  }
  return name.starts_with("tokenizer") && name.find('/') == std::string_view::npos &&
         (name.ends_with(".json") || name.ends_with(".model"));
}

constexpr std::string_view kIndex = "model.safetensors.index.json";

// The weights beside config.json, as transformers names them: model.safetensors, or shards of it
// with their index. Empty if there are none.
Result<std::vector<std::string>> ChooseSafetensors(std::span<const std::string> names) {
  std::vector<Whole> wholes = Gather(Ending(names, ".safetensors"), ".safetensors");
  std::erase_if(wholes, [](const Whole& whole) { return whole.stem != "model"; });
  if (wholes.empty()) return std::vector<std::string>{};
  const Whole& first = wholes.front();  // of the fewest parts: model.safetensors, if it is there
  VIVACE_ASSIGN(Choice choice, FromWhole(first));
  if (first.count > 1) {
    if (std::find(names.begin(), names.end(), kIndex) == names.end()) {
      return Fail(ErrorCode::kNotFound, "missing_parts", "", "the weights have no {}", kIndex);
    }
    choice.files.insert(choice.files.begin(), std::string(kIndex));
  }
  return std::move(choice.files);
}

// config.json, safetensors and what stands beside them; no files if it is not all there.
Result<Choice> ChooseFolder(std::span<const std::string> names) {
  Choice choice;
  if (std::find(names.begin(), names.end(), "config.json") == names.end()) return choice;
  VIVACE_ASSIGN(const std::vector<std::string> weights, ChooseSafetensors(names));
  if (weights.empty()) return choice;
  std::copy_if(names.begin(), names.end(), std::back_inserter(choice.files), IsSmallFile);
  choice.files.insert(choice.files.end(), weights.begin(), weights.end());
  return choice;
}

std::vector<std::string> Sane(std::span<const std::string> names) {
  std::vector<std::string> sane;
  std::copy_if(names.begin(), names.end(), std::back_inserter(sane), IsFileName);
  return sane;
}

}  // namespace

Result<Choice> ChooseFiles(std::span<const std::string> names, const ModelName& wanted) {
  const std::vector<std::string> sane = Sane(names);
  if (!wanted.file.empty()) return ChooseNamed(sane, wanted);
  VIVACE_ASSIGN(Choice folder, ChooseFolder(sane));
  if (!folder.files.empty()) return folder;
  const std::vector<Whole> ggufs = Ggufs(sane);
  if (!ggufs.empty()) return ChooseGguf(ggufs, wanted);
  return Fail(ErrorCode::kUnsupported, "no_model_files", wanted.repo,
              "{} has neither safetensors with a config.json nor a GGUF file", wanted.repo);
}

std::vector<Choice> AllModels(std::span<const std::string> names) {
  const std::vector<std::string> sane = Sane(names);
  std::vector<Choice> out;
  if (auto folder = ChooseFolder(sane); folder && !folder->files.empty()) {
    out.push_back(std::move(*folder));
  }
  for (const Whole& whole : Ggufs(sane)) {
    if (auto choice = FromWhole(whole)) out.push_back(std::move(*choice));
  }
  return out;
}

}  // namespace vivace::hub
