// Response objects and their events against the sequences of OpenAI's reference.
#include "server/openai/responses_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "server/json/strict_json.h"
#include "server/testing/test_tokenizer.h"
#include "server/testing/typed_events.h"

namespace vivace::server {
namespace {

using testing::kSpaceOk;
using testing::TypedEvents;

const std::vector<OutputPiece> kPieces = {
    {PieceKind::kReasoning, -1, "h", ""},     {PieceKind::kReasoning, -1, "m", ""},
    {PieceKind::kContent, -1, "o\"", ""},     {PieceKind::kContent, -1, "k", ""},
    {PieceKind::kToolCall, 0, "f", "call_1"}, {PieceKind::kToolArguments, 0, "{\"a\":", ""},
    {PieceKind::kToolArguments, 0, "1}", ""}, {PieceKind::kToolCall, 1, "g", "call_2"},
};

class ResponsesWriterTest : public ::testing::Test {
 protected:
  ResponsesWriterTest() { params_.endpoint = kResponses; }

  std::string Stream(const std::vector<OutputPiece>& pieces, const ChoiceEnd& end) {
    const auto writer = MakeAnswerWriter(params_, *tokenizer_, {"resp_7", 17, "m"});
    std::string out;
    writer->Begin(usage_, &out);
    ChoicePart part;
    writer->Open(part, usage_, &out);
    for (const OutputPiece& piece : pieces) {
      part.pieces = {&piece, 1};
      writer->Delta(part, usage_, &out);
    }
    part.pieces = {};
    part.end = &end;
    writer->Close(part, usage_, &out);
    writer->End(usage_, &out);
    return out;
  }
  json::value Whole(const std::vector<OutputPiece>& pieces, const ChoiceEnd& end) {
    ChoicePart part;
    part.pieces = pieces;
    part.end = &end;
    auto value = ParseStrictJson(
        MakeAnswerWriter(params_, *tokenizer_, {"resp_7", 17, "m"})->Whole({{part}}, usage_));
    EXPECT_TRUE(value);
    return std::move(*value);
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = testing::TestTokenizer();
  RequestParams params_;
  Usage usage_{31, 8, 16, 2};
};

TEST_F(ResponsesWriterTest, EventsOfAText) {
  EXPECT_THAT(TypedEvents(Stream({kPieces[2], kPieces[3]}, {})).types,
              ::testing::ElementsAre("response.created", "response.in_progress",
                                     "response.output_item.added", "response.content_part.added",
                                     "response.output_text.delta", "response.output_text.delta",
                                     "response.output_text.done", "response.content_part.done",
                                     "response.output_item.done", "response.completed"));
}

TEST_F(ResponsesWriterTest, EventsOfAllKinds) {
  const TypedEvents events(Stream(kPieces, {}));
  EXPECT_THAT(events.types,
              ::testing::ElementsAre(
                  "response.created", "response.in_progress",                              //
                  "response.output_item.added", "response.content_part.added",             //
                  "response.reasoning_text.delta", "response.reasoning_text.delta",        //
                  "response.reasoning_text.done", "response.content_part.done",            //
                  "response.output_item.done",                                             //
                  "response.output_item.added", "response.content_part.added",             //
                  "response.output_text.delta", "response.output_text.delta",              //
                  "response.output_text.done", "response.content_part.done",               //
                  "response.output_item.done",                                             //
                  "response.output_item.added", "response.function_call_arguments.delta",  //
                  "response.function_call_arguments.delta",                                //
                  "response.function_call_arguments.done", "response.output_item.done",    //
                  "response.output_item.added", "response.function_call_arguments.done",   //
                  "response.output_item.done", "response.completed"));
  int64_t number = 0;
  for (const json::value& event : events.data) {
    EXPECT_EQ(event.at("sequence_number"), number++);
  }
  EXPECT_EQ(json::serialize(events.data[4]),
            R"({"type":"response.reasoning_text.delta","sequence_number":4,"item_id":"rs_7_0",)"
            R"("output_index":0,"content_index":0,"delta":"h"})");
  EXPECT_EQ(json::serialize(events.data[11]),
            R"({"type":"response.output_text.delta","sequence_number":11,"item_id":"msg_7_1",)"
            R"("output_index":1,"content_index":0,"delta":"o\"","logprobs":[]})");
  EXPECT_EQ(json::serialize(events.data[16].at("item")),
            R"({"id":"fc_7_2","type":"function_call","status":"in_progress","call_id":"call_1",)"
            R"("name":"f","arguments":""})");
  EXPECT_EQ(json::serialize(events.data[19]),
            R"({"type":"response.function_call_arguments.done","sequence_number":19,)"
            R"("item_id":"fc_7_2","output_index":2,"name":"f","arguments":"{\"a\":1}"})");
}

// A stream's last word is the whole answer.
TEST_F(ResponsesWriterTest, TheStreamEndsWithTheWholeAnswer) {
  params_.ignored = {"user"};
  const TypedEvents events(Stream(kPieces, {}));
  const json::value whole = Whole(kPieces, {});
  EXPECT_EQ(events.data.back().at("response"), whole);
  EXPECT_EQ(whole.at("status"), "completed");
  EXPECT_EQ(whole.at("output").as_array().size(), 4u);
  EXPECT_EQ(json::serialize(whole.at("output").at(0)),
            R"({"id":"rs_7_0","type":"reasoning","status":"completed","summary":[],)"
            R"("content":[{"type":"reasoning_text","text":"hm"}]})");
  EXPECT_EQ(json::serialize(whole.at("output").at(1)),
            R"({"id":"msg_7_1","type":"message","status":"completed","role":"assistant",)"
            R"("content":[{"type":"output_text","text":"o\"k","annotations":[],"logprobs":[]}]})");
  EXPECT_EQ(json::serialize(whole.at("usage")),
            R"({"input_tokens":31,"input_tokens_details":{"cached_tokens":16,)"
            R"("cache_write_tokens":0},"output_tokens":8,)"
            R"("output_tokens_details":{"reasoning_tokens":2},"total_tokens":39})");
  EXPECT_EQ(whole.at("vivace").at("ignored"), json::value({"user"}));
}

TEST_F(ResponsesWriterTest, CutAnswersAreIncomplete) {
  const ChoiceEnd cut{true, {}};
  const TypedEvents events(Stream({kPieces[2]}, cut));
  EXPECT_EQ(events.types.back(), "response.incomplete");
  const json::value whole = Whole({kPieces[2]}, cut);
  EXPECT_EQ(events.data.back().at("response"), whole);
  EXPECT_EQ(whole.at("status"), "incomplete");
  EXPECT_EQ(whole.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(whole.at("output").at(0).at("status"), "incomplete");
}

TEST_F(ResponsesWriterTest, Failure) {
  const auto writer = MakeAnswerWriter(params_, *tokenizer_, {"resp_7", 17, "m"});
  std::string out;
  writer->Begin({}, &out);
  writer->Failure({ErrorCode::kInternal, "why", "what", ""}, &out);
  const TypedEvents events(out);
  EXPECT_EQ(events.types.back(), "response.failed");
  EXPECT_EQ(events.data.back().at("response").at("error").at("message"), "what");
  EXPECT_EQ(events.data.back().at("response").at("status"), "failed");
}

TEST_F(ResponsesWriterTest, LogprobsAreTheMessages) {
  params_.logprobs = true;
  params_.sampling.logprobs = 0;
  const LogprobEntry entries[] = {{kSpaceOk, true, -2.5f, {}, 0}};
  const OutputPiece piece = {PieceKind::kContent, -1, " ok", ""};
  ChoicePart part;
  part.pieces = {&piece, 1};
  part.logprobs = entries;
  std::string out;
  const auto writer = MakeAnswerWriter(params_, *tokenizer_, {"resp_7", 17, "m"});
  writer->Delta(part, {}, &out);
  const ChoiceEnd end;
  ChoicePart last;
  last.end = &end;
  writer->Close(last, {}, &out);
  const TypedEvents events(out);
  const json::value entries_said =
      json::parse(R"([{"token":" ok","logprob":-2.5,"bytes":[32,111,107],"top_logprobs":[]}])");
  EXPECT_EQ(events.data[2].at("logprobs"), entries_said);
  EXPECT_EQ(events.data[3].at("logprobs"), entries_said);
}

}  // namespace
}  // namespace vivace::server
