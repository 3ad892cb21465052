// Readers of what embedding, rerank and score requests have of their own.
#include "base/limits.h"
#include "server/params/readers.h"

namespace vivace::server {
namespace {

// A string or a list of strings, or of objects with a "text" as Cohere's clients send them.
Status ReadTexts(std::string_view name, const json::value& value, std::vector<std::string>* texts) {
  if (const auto* text = value.if_string()) {
    texts->emplace_back(*text);
    return {};
  }
  const auto* list = value.if_array();
  if (list == nullptr) {
    return WrongType(name, "a string, or a list of strings or of objects with a \"text\"", value);
  }
  if (list->empty()) return WrongValue(name, "is an empty list; give at least one text");
  if (list->size() > limits::kMaxScoredTexts) {
    return WrongValue(name, fmt::format("has {} texts; at most {} are allowed", list->size(),
                                        limits::kMaxScoredTexts));
  }
  for (const auto& item : *list) {
    const auto path = [&] { return fmt::format("{}[{}]", name, texts->size()); };
    const auto* object = item.if_object();
    const json::value* text = object == nullptr ? &item : object->if_contains("text");
    if (text == nullptr) return WrongValue(path(), "needs a \"text\", which is a string");
    if (!text->is_string() && object != nullptr) {
      return WrongType(path() + ".text", "a string", *text);
    }
    if (!text->is_string())
      return WrongType(path(), "a string, or an object with a \"text\"", *text);
    texts->emplace_back(text->get_string());
  }
  return {};
}

}  // namespace

Status ReadFirstTexts(std::string_view name, const json::value& value, const ParamContext&,
                      RequestParams* params) {
  return ReadTexts(name, value, &params->first_texts);
}

Status ReadSecondTexts(std::string_view name, const json::value& value, const ParamContext&,
                       RequestParams* params) {
  return ReadTexts(name, value, &params->second_texts);
}

Status ReadPooling(std::string_view name, const json::value& value, const ParamContext&,
                   RequestParams* params) {
  if (!value.is_string()) return WrongType(name, "a string", value);
  const std::string_view kind = value.get_string();
  if (kind != "mean" && kind != "last") return WrongValue(name, "must be \"mean\" or \"last\"");
  params->pooling = kind == "mean" ? Pooling::kMean : Pooling::kLast;
  return {};
}

Status ReadEncodingFormat(std::string_view name, const json::value& value, const ParamContext&,
                          RequestParams* params) {
  if (!value.is_string()) return WrongType(name, "a string", value);
  const std::string_view format = value.get_string();
  if (format != "float" && format != "base64") {
    return WrongValue(name, "must be \"float\" or \"base64\"");
  }
  params->base64 = format == "base64";
  return {};
}

}  // namespace vivace::server
