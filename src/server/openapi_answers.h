// What the endpoints answer with, for /openapi.json: a JSON Schema for each. Constant data.
#pragma once

#include <span>
#include <string_view>

namespace vivace::server {

struct AnswerSchema {
  std::string_view name;    // in components/schemas
  std::string_view schema;  // JSON
};
// All of them; their references are to each other.
std::span<const AnswerSchema> AnswerSchemas();

// What a route (its path as Route has it) answers with.
struct AnswerKind {
  std::string_view path;
  std::string_view name = {};         // of its schema; empty: an answer that is not JSON
  std::string_view media_types = {};  // then; several are separated by blanks
};
// Null: a path that is not known here.
const AnswerKind* FindAnswer(std::string_view path);

}  // namespace vivace::server
