// Messages and their events against the sequences of Anthropic's reference.
#include "server/openai/messages_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "server/json/strict_json.h"
#include "server/testing/typed_events.h"

namespace vivace::server {
namespace {

using testing::TypedEvents;

const std::vector<OutputPiece> kPieces = {
    {PieceKind::kReasoning, -1, "h", ""},          {PieceKind::kReasoning, -1, "m", ""},
    {PieceKind::kContent, -1, "ok", ""},           {PieceKind::kToolCall, 0, "f", "call_1"},
    {PieceKind::kToolArguments, 0, "{\"a\":", ""}, {PieceKind::kToolArguments, 0, "1}", ""},
    {PieceKind::kToolCall, 1, "g", "call_2"},
};
constexpr Usage kUsage = {31, 8, 16, 0};

class MessagesWriterTest : public ::testing::Test {
 protected:
  std::string Stream(const std::vector<OutputPiece>& pieces, const ChoiceEnd& end) {
    MessagesWriter writer(params_, {"msg_7", 17, "m"});
    std::string out;
    writer.Begin(kUsage, &out);
    ChoicePart part;
    writer.Open(part, kUsage, &out);
    for (const OutputPiece& piece : pieces) {
      part.pieces = {&piece, 1};
      writer.Delta(part, kUsage, &out);
    }
    part.pieces = {};
    part.end = &end;
    writer.Close(part, kUsage, &out);
    writer.End(kUsage, &out);
    return out;
  }
  std::string Whole(const std::vector<OutputPiece>& pieces, const ChoiceEnd& end) {
    ChoicePart part;
    part.pieces = pieces;
    part.end = &end;
    return MessagesWriter(params_, {"msg_7", 17, "m"}).Whole({{part}}, kUsage);
  }

  RequestParams params_;
};

TEST_F(MessagesWriterTest, EventsOfAText) {
  EXPECT_EQ(
      Stream({{PieceKind::kContent, -1, "Hi", ""}}, {}),
      "event: message_start\ndata: "
      R"({"type":"message_start","message":{"id":"msg_7","type":"message","role":"assistant",)"
      R"("model":"m","content":[],"stop_reason":null,"stop_sequence":null,)"
      R"("usage":{"input_tokens":15,"cache_creation_input_tokens":0,"cache_read_input_tokens":16,)"
      R"("output_tokens":8}}})"
      "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: content_block_start\ndata: "
      R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
      "\n\nevent: content_block_delta\ndata: "
      R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}})"
      "\n\nevent: content_block_stop\ndata: "
      R"({"type":"content_block_stop","index":0})"
      "\n\nevent: message_delta\ndata: "
      R"({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},)"
      R"("usage":{"input_tokens":15,"cache_creation_input_tokens":0,"cache_read_input_tokens":16,)"
      R"("output_tokens":8}})"
      "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

TEST_F(MessagesWriterTest, EventsOfAllKinds) {
  const TypedEvents events(Stream(kPieces, {}));
  EXPECT_THAT(events.types, ::testing::ElementsAre("message_start", "ping",                       //
                                                   "content_block_start", "content_block_delta",  //
                                                   "content_block_delta", "content_block_stop",   //
                                                   "content_block_start", "content_block_delta",  //
                                                   "content_block_stop",                          //
                                                   "content_block_start", "content_block_delta",  //
                                                   "content_block_delta", "content_block_stop",   //
                                                   "content_block_start", "content_block_stop",   //
                                                   "message_delta", "message_stop"));
  EXPECT_EQ(json::serialize(events.data[2]),
            R"({"type":"content_block_start","index":0,)"
            R"("content_block":{"type":"thinking","thinking":"","signature":""}})");
  EXPECT_EQ(json::serialize(events.data[3].at("delta")),
            R"({"type":"thinking_delta","thinking":"h"})");
  EXPECT_EQ(json::serialize(events.data[9]),
            R"({"type":"content_block_start","index":2,)"
            R"("content_block":{"type":"tool_use","id":"call_1","name":"f","input":{}}})");
  EXPECT_EQ(json::serialize(events.data[10].at("delta")),
            R"({"type":"input_json_delta","partial_json":"{\"a\":"})");
  EXPECT_EQ(events.data[15].at("delta").at("stop_reason"), "tool_use");
}

TEST_F(MessagesWriterTest, Whole) {
  EXPECT_EQ(
      Whole(kPieces, {}),
      R"({"id":"msg_7","type":"message","role":"assistant","model":"m","content":[)"
      R"({"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"ok"},)"
      R"({"type":"tool_use","id":"call_1","name":"f","input":{"a":1}},)"
      R"({"type":"tool_use","id":"call_2","name":"g","input":{}}],)"
      R"("stop_reason":"tool_use","stop_sequence":null,)"
      R"("usage":{"input_tokens":15,"cache_creation_input_tokens":0,"cache_read_input_tokens":16,)"
      R"("output_tokens":8}})");
}

TEST_F(MessagesWriterTest, ReasonsToStop) {
  const std::vector<OutputPiece> text = {{PieceKind::kContent, -1, "x", ""}};
  const auto reason = [&](const std::vector<OutputPiece>& pieces, const ChoiceEnd& end) {
    const auto whole = ParseStrictJson(Whole(pieces, end));
    const TypedEvents events(Stream(pieces, end));
    const json::value& delta = events.data[events.data.size() - 2].at("delta");
    EXPECT_EQ(delta.at("stop_reason"), whole->at("stop_reason"));
    EXPECT_EQ(delta.at("stop_sequence"), whole->at("stop_sequence"));
    return json::serialize(delta);
  };
  EXPECT_EQ(reason(text, {}), R"({"stop_reason":"end_turn","stop_sequence":null})");
  EXPECT_EQ(reason(text, {true, {}}), R"({"stop_reason":"max_tokens","stop_sequence":null})");
  EXPECT_EQ(reason(text, {false, "END"}),
            R"({"stop_reason":"stop_sequence","stop_sequence":"END"})");
  EXPECT_EQ(reason(text, {false, TokenId{7}}),
            R"({"stop_reason":"end_turn","stop_sequence":null})");
  EXPECT_EQ(reason({}, {}), R"({"stop_reason":"end_turn","stop_sequence":null})");
}

// Arguments that the end cut are no object.
TEST_F(MessagesWriterTest, CutArguments) {
  const std::vector<OutputPiece> cut(kPieces.begin() + 3, kPieces.begin() + 5);
  const auto whole = ParseStrictJson(Whole(cut, {true, {}}));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->at("content").at(0).at("input"), json::value(json::object()));
  EXPECT_EQ(whole->at("stop_reason"), "max_tokens");
}

TEST_F(MessagesWriterTest, Failure) {
  std::string out;
  MessagesWriter writer(params_, {"msg_7", 17, "m"});
  writer.Failure({ErrorCode::kInternal, "why", "what", ""}, &out);
  EXPECT_EQ(out,
            "event: error\ndata: "
            R"({"type":"error","error":{"type":"api_error","message":"what"}})"
            "\n\n");
}

}  // namespace
}  // namespace vivace::server
