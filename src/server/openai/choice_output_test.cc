#include "server/openai/choice_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/testing/test_tokenizer.h"

namespace vivace::server {
namespace {

using testing::ByteToken;
using ::testing::ElementsAre;
using testing::kHalfEmoji;
using testing::kImEnd;
using testing::kSpaceHello;
using testing::kSpaceOk;

constexpr TokenId kEos[] = {kImEnd};

class ChoiceOutputTest : public ::testing::Test {
 protected:
  // Feeds tokens one by one and joins what comes out; the engine ends with `reason` if one is
  // given.
  std::string Run(std::vector<TokenId> tokens, FinishReason reason = FinishReason::kNone,
                  TokenId stop = -1) {
    stream_ = std::make_unique<TokenStream>(64, params_.sampling.logprobs);
    output_ = std::make_unique<ChoiceOutput>(params_, tokenizer_, kEos);
    deltas_.clear();
    entries_.clear();
    for (const TokenId token : tokens) {
      const TokenLogprob chosen{token, -1.0f};
      stream_->Push(token, &chosen, {});
      Take();
    }
    if (reason != FinishReason::kNone) {
      stream_->Finish(reason, stop);
      Take();
    }
    std::string text;
    for (const std::string& delta : deltas_) text += delta;
    return text;
  }

  void Take() {
    output_->Feed(stream_.get());
    deltas_.push_back(Text());
    for (const LogprobEntry& entry : output_->logprobs()) entries_.push_back(entry);
    output_->Consume();
  }

  std::string Text() const {
    std::string text;
    for (const OutputPiece& piece : output_->pieces()) text += piece.text;
    return text;
  }

  std::vector<TokenId> EntryTokens() const {
    std::vector<TokenId> tokens;
    for (const LogprobEntry& entry : entries_) tokens.push_back(entry.token);
    return tokens;
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = testing::TestTokenizer();
  RequestParams params_;
  std::unique_ptr<TokenStream> stream_;
  std::unique_ptr<ChoiceOutput> output_;
  std::vector<std::string> deltas_;
  std::vector<LogprobEntry> entries_;
};

TEST_F(ChoiceOutputTest, NeverHalfACharacter) {
  EXPECT_EQ(Run({kHalfEmoji, ByteToken(0x98), ByteToken(0x80), kSpaceOk}), "😀 ok");
  EXPECT_THAT(deltas_, ElementsAre("", "", "😀", " ok"));
  // A character that the end cuts is U+FFFD.
  EXPECT_EQ(Run({kHalfEmoji}, FinishReason::kLength), "\uFFFD");
}

TEST_F(ChoiceOutputTest, StopStringOverTokens) {
  params_.stop = {"lo he"};
  EXPECT_EQ(Run({kSpaceHello, kSpaceHello, kSpaceHello}), " hel");
  EXPECT_TRUE(output_->finished());
  EXPECT_TRUE(output_->must_abort());
  EXPECT_FALSE(output_->end().by_length);
  EXPECT_EQ(std::get<std::string>(output_->end().stop_reason), "lo he");
  EXPECT_EQ(output_->tokens(), 2);
  params_.include_stop_str_in_output = true;
  EXPECT_EQ(Run({kSpaceHello, kSpaceHello}), " hello he");
}

TEST_F(ChoiceOutputTest, HeldBackTextComesAtTheEnd) {
  params_.stop = {"hello hello hello hello!"};
  EXPECT_EQ(Run({kSpaceHello, kSpaceHello, kSpaceHello}, FinishReason::kLength),
            " hello hello hello");
  EXPECT_TRUE(output_->end().by_length);
  EXPECT_FALSE(output_->must_abort());
}

TEST_F(ChoiceOutputTest, StopStringInTheLastTextNeedsNoAbort) {
  params_.stop = {"\uFFFD"};
  EXPECT_EQ(Run({kSpaceOk, kHalfEmoji}, FinishReason::kLength), " ok");
  EXPECT_FALSE(output_->end().by_length);
  EXPECT_FALSE(output_->must_abort());
}

TEST_F(ChoiceOutputTest, MinTokensLetStopStringsPass) {
  params_.stop = {"hello"};
  params_.sampling.min_tokens = 2;
  EXPECT_EQ(Run({kSpaceHello, kSpaceHello, kSpaceHello}), " hello hello ");
  EXPECT_EQ(output_->tokens(), 3);
}

TEST_F(ChoiceOutputTest, StopTokensEndWithoutTheirText) {
  params_.skip_special_tokens = false;
  // The end is known from the token, before the engine says so.
  EXPECT_EQ(Run({kSpaceOk, kImEnd}), " ok");
  EXPECT_TRUE(output_->finished());
  EXPECT_EQ(output_->tokens(), 2);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(output_->end().stop_reason));
  params_.sampling.stop_token_ids = {kSpaceHello};
  EXPECT_EQ(Run({kSpaceOk, kSpaceHello}, FinishReason::kStop, kSpaceHello), " ok");
  EXPECT_EQ(std::get<TokenId>(output_->end().stop_reason), kSpaceHello);
  params_.include_stop_str_in_output = true;
  EXPECT_EQ(Run({kSpaceOk, kSpaceHello}, FinishReason::kStop, kSpaceHello), " ok hello");
}

TEST_F(ChoiceOutputTest, IgnoreEosGoesOn) {
  params_.sampling.ignore_eos = true;
  EXPECT_EQ(Run({kSpaceOk, kImEnd, kSpaceOk}, FinishReason::kLength), " ok ok");
  params_.skip_special_tokens = false;
  EXPECT_EQ(Run({kSpaceOk, kImEnd}, FinishReason::kLength), " ok<|im_end|>");
}

TEST_F(ChoiceOutputTest, LogprobsComeWithTheirText) {
  params_.logprobs = true;
  params_.sampling.logprobs = 0;
  Run({kHalfEmoji, ByteToken(0x98), ByteToken(0x80), kSpaceOk}, FinishReason::kLength);
  EXPECT_THAT(EntryTokens(), ElementsAre(kHalfEmoji, ByteToken(0x98), ByteToken(0x80), kSpaceOk));
  EXPECT_EQ(entries_[2].text_offset, 0);
  EXPECT_EQ(entries_[3].text_offset, 1);  // characters, not bytes
  // Tokens whose text a stop string cut away have none; the one it cut in two has.
  params_.stop = {"lo hello"};
  Run({kSpaceOk, kSpaceHello, kSpaceHello});
  EXPECT_THAT(EntryTokens(), ElementsAre(kSpaceOk, kSpaceHello));
  // Nor has the token that ended the text.
  Run({kSpaceOk, kImEnd});
  EXPECT_THAT(EntryTokens(), ElementsAre(kSpaceOk));
}

TEST_F(ChoiceOutputTest, EchoComesFirstAndIsNotSearched) {
  params_.logprobs = true;
  params_.sampling.logprobs = 1;
  params_.stop = {"hello"};
  const std::vector<TokenId> prompt = {kHalfEmoji, ByteToken(0x98), ByteToken(0x80), kSpaceHello};
  PromptLogprobs logprobs;
  logprobs.stride = 1;
  logprobs.chosen.resize(4, {kSpaceHello, -2.0f});
  logprobs.top.resize(4, {kSpaceOk, -1.0f});
  logprobs.num_top.resize(4, 1);
  stream_ = std::make_unique<TokenStream>(4, 1);
  output_ = std::make_unique<ChoiceOutput>(params_, tokenizer_, kEos);
  output_->Echo(prompt, &logprobs);
  EXPECT_FALSE(output_->Feed(stream_.get()));
  EXPECT_EQ(Text(), "");
  const TokenLogprob chosen{kSpaceOk, -1.0f};
  stream_->Push(kSpaceOk, &chosen, {});
  EXPECT_TRUE(output_->Feed(stream_.get()));
  EXPECT_EQ(Text(), "😀 hello ok");
  ASSERT_EQ(output_->logprobs().size(), 5u);
  EXPECT_FALSE(output_->logprobs()[0].has_value);
  EXPECT_EQ(output_->logprobs()[3].logprob, -2.0f);
  EXPECT_EQ(output_->logprobs()[3].text_offset, 1);
  EXPECT_EQ(output_->logprobs()[4].text_offset, 7);
  EXPECT_EQ(output_->tokens(), 1);
}

TEST_F(ChoiceOutputTest, FailuresAreTold) {
  Run({kSpaceOk}, FinishReason::kError);
  EXPECT_EQ(output_->failure(), FinishReason::kError);
  Run({kSpaceOk}, FinishReason::kAborted);
  EXPECT_EQ(output_->failure(), FinishReason::kAborted);
}

TEST_F(ChoiceOutputTest, TokenIdsWhenAskedFor) {
  params_.return_token_ids = true;
  stream_ = std::make_unique<TokenStream>(4, -1);
  output_ = std::make_unique<ChoiceOutput>(params_, tokenizer_, kEos);
  stream_->Push(kSpaceOk, nullptr, {});
  stream_->Push(kImEnd, nullptr, {});
  output_->Feed(stream_.get());
  EXPECT_THAT(output_->token_ids(), ElementsAre(kSpaceOk, kImEnd));
}

}  // namespace
}  // namespace vivace::server
