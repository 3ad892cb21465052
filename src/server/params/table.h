// The one table of request parameters: what parses, validates and documents them. Each row is
// honoured, refused (400 that names it) or ignored and reported; a member that no row knows is
// ignored and reported as well. There is no other outcome. Null means absent, everywhere. Endpoints
// whose requests have shapes of their own have rows of their own, whose readers bring them to
// chat's.
//
// The table is constant data; every function here is pure and may be called from any thread.
#pragma once

#include <boost/json/value.hpp>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "server/params/known_members.h"
#include "server/params/request_params.h"

namespace vivace::server {

// What the checks need to know of the model.
struct ParamContext {
  Endpoint endpoint = kChat;
  int32_t vocab = 0;
};

struct IntField {
  int64_t min;
  int64_t max;
  void (*set)(RequestParams& params, int64_t value);
};
struct NumberField {
  double min;
  double max;
  bool min_excluded;
  void (*set)(RequestParams& params, float value);
};
struct BoolField {
  void (*set)(RequestParams& params, bool value);
};
struct StringField {
  size_t max_bytes;
  void (*set)(RequestParams& params, std::string_view value);
};
// A shape of its own; the reader reports errors with `name` as their field.
struct CustomField {
  std::string_view type;
  Status (*read)(std::string_view name, const json::value& value, const ParamContext& context,
                 RequestParams* params);
  std::string_view schema = "{}";  // JSON Schema of what it reads, roughly; for /openapi.json
  const KnownMembers* members = nullptr;  // of its objects; null: the reader reports the others
};
// Would change the answer and is not offered: 400.
struct RefusedField {
  std::string_view why;
  bool false_passes = false;  // `false` asks for nothing
  double passes = NAN;        // nor does this number
};
// Cannot change the answer, or not in a way worth a refusal: reported.
struct IgnoredField {
  bool false_passes = false;  // `false` asks for nothing
};

struct ParamRow {
  std::string_view name;
  std::string_view alias;  // another server's name for it; empty: none
  EndpointSet endpoints;
  std::variant<IntField, NumberField, BoolField, StringField, CustomField, RefusedField,
               IgnoredField>
      field;
  std::string_view default_value;
  std::string_view doc;
};

std::span<const ParamRow> ParamTable();

// The row of a member (by name or alias) at an endpoint; null if there is none.
const ParamRow* FindParam(std::string_view member, Endpoint endpoint);

// Reads one value by its row; `member` is the name the client used. Null is the caller's matter.
Status ReadParam(const ParamRow& row, std::string_view member, const json::value& value,
                 const ParamContext& context, RequestParams* params);

// Reads every member of `body` and checks the combinations. `body` must outlive the result.
Result<RequestParams> ParseParams(const json::value& body, const ParamContext& context);

// The checks that concern more than one parameter; fills what follows from several.
Status CombineParams(RequestParams* params);

// 400 for the first report, if the request is strict.
Status CheckStrict(const Reports& reports);

// The name of the input member that is the prompt, for errors.
std::string_view InputName(Endpoint endpoint);

// What clients of an endpoint with a shape of its own call chat's parameter, for errors and
// reports.
std::string_view ClientName(Endpoint endpoint, std::string_view name);

// The table as a markdown page.
std::string ParamTableMarkdown();

}  // namespace vivace::server
