// Conversations in other shapes than chat's (Responses' items, Anthropic's blocks) become chat's
// messages while their parameters are read, so that everything after the table knows one shape.
//
// Pure, any thread; linear in the input.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/params/request_params.h"
#include "server/params/table.h"

namespace vivace::server {

// Gathers turns. What an assistant thinks, says and calls is one message until EndTurn or until
// somebody else speaks.
class ConversationBuilder {
 public:
  // `content`: a string, or a list of text parts.
  void Say(std::string_view role, json::value content);
  void ToolResult(std::string_view call_id, json::value content);

  void Think(std::string_view text) { Append("reasoning_content", text); }
  void Speak(std::string_view text) { Append("content", text); }
  void Call(std::string_view id, std::string_view name, json::object arguments);
  // The assistant's turn has said or called something.
  bool spoke() const { return turn_.contains("content") || turn_.contains("tool_calls"); }
  void EndTurn();

  size_t size() const { return out_.size() + (turn_.empty() ? 0 : 1); }
  json::array Finish();

 private:
  void Append(std::string_view member, std::string_view text);

  json::array out_;
  json::object turn_;  // the assistant's, under way
};

// A list of notes on a text, as answers bring them, that has none: it says nothing.
bool IsEmptyNote(std::string_view name, const boost::json::value& value);

// Reads one object of a request; errors and reports name members by its path ("input[3]").
class ItemReader {
 public:
  // An object, or an error.
  static Result<ItemReader> Of(const json::value& value, std::string path);

  // Null counts as absent.
  const json::value* Find(std::string_view member) const;
  Result<std::string_view> String(std::string_view member) const;
  // "" if absent.
  Result<std::string_view> StringOr(std::string_view member) const;
  // As ReadTextContent.
  Result<json::value> Text(std::string_view member, std::initializer_list<std::string_view> types,
                           RequestParams* params) const;
  // Reports members that are not null and not among those that are read, and not an empty list of
  // notes on a text.
  Status ReportOthers(std::initializer_list<std::string_view> known, RequestParams* params) const;

  std::string Path(std::string_view member) const;
  tl::unexpected<Error> Wrong(std::string_view member, std::string_view rest) const;

 private:
  ItemReader(const json::object& object, std::string path)
      : object_(&object), path_(std::move(path)) {}

  const json::object* object_;
  std::string path_;
};

// A string, or a list of parts whose type is one of `types` and whose text is a string. `path`
// names it.
Result<json::value> ReadTextContent(const json::value& content, const std::string& path,
                                    std::initializer_list<std::string_view> types,
                                    RequestParams* params);

// The text of a string or of its text parts, one after the other.
std::string JoinedText(const json::value& content);

// A list for a conversation: not empty, not too long.
Result<const json::array*> ReadTurnList(std::string_view name, const json::value& value);

// Reads `value` as chat reads its parameter `row`; errors call it `member`.
Status ReadAsChat(std::string_view row, std::string_view member, const json::value& value,
                  const ParamContext& context, RequestParams* params);
// The same for a value that was made; it lives as long as `params`.
Status ReadMadeAsChat(std::string_view row, std::string_view member, json::value value,
                      const ParamContext& context, RequestParams* params);

// Reads a list of tools of another shape as chat's: `function` makes of one the object that chat
// has inside a tool.
using FunctionOf = Result<json::object> (*)(const ItemReader& tool, const json::object& given,
                                            RequestParams* params);
Status ReadToolsAsChat(std::string_view name, const json::value& value, FunctionOf function,
                       const ParamContext& context, RequestParams* params);

// ReportIgnored, each name once: of the items of a list the first that has it. A conversation has
// as many as it likes.
Status ReportOnce(std::string_view name, RequestParams* params);

// Keeps `path` if it is the first that a thought stands at.
void NoteThought(std::string_view thought, std::string path, RequestParams* params);

// Puts the system message before the turns and shows them as `messages`.
void ShowTurns(RequestParams* params);

}  // namespace vivace::server
