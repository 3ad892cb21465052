#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <iterator>

#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_argument.h"
#include "text/load_tokenizer.h"

namespace vivace::cli {
namespace {

struct TokenizeOptions {
  std::string tokenizer;
  HubOptions hub;
  bool add_special_tokens = true;
  bool decode = false;
  bool lines = false;
};

Command TokenizeCommand(TokenizeOptions* options) {
  Command command = {
      .name = "tokenize",
      .positional = "MODEL",
      .summary =
          "Reads text on stdin, byte for byte, and writes its token ids as one JSON array; "
          "with --decode the other way.",
      .details =
          "Examples:\n"
          "  printf 'Hello world' | vivace tokenize model.gguf\n"
          "  echo '[19556, 905]' | vivace tokenize model.gguf --decode\n\n"
          "MODEL is a GGUF file, a tokenizer.json, a folder with one, or a name on the hub.\n"
          "Control tokens such as <|im_start|> are read as such in the text.",
      .flags = {
          {"tokenizer", "PATH", "", "the same as MODEL, by name", StoreText(&options->tokenizer)},
          {"add-special-tokens", "", "on", "add BOS and EOS if the tokenizer asks for them",
           StoreSwitch(&options->add_special_tokens)},
          {"decode", "", "off", "ids on stdin to text on stdout", StoreSwitch(&options->decode)},
          {"lines", "", "off", "one JSON value a line, in and out: a string or its ids",
           StoreSwitch(&options->lines)}}};
  for (Flag& flag : HubFlags(&options->hub)) command.flags.push_back(std::move(flag));
  return command;
}

std::string ReadStdin() {
  std::ios::sync_with_stdio(false);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

Result<std::vector<TokenId>> ParseIds(const std::string& text, const Tokenizer& tokenizer) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(text, error);
  if (error || !value.is_array()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_ids", "",
                "stdin is not a JSON array of token ids");
  }
  std::vector<TokenId> ids;
  for (const boost::json::value& item : value.get_array()) {
    const int64_t* id = item.if_int64();
    if (id == nullptr || *id < 0 || *id >= static_cast<int64_t>(tokenizer.vocab_size())) {
      return Fail(ErrorCode::kInvalidArgument, "token_id_range", "",
                  "{} is not a token id; the vocabulary has ids 0 to {}",
                  boost::json::serialize(item), tokenizer.vocab_size() - 1);
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

// A JSON string a line in, its ids a line out; or the other way.
Status TokenizeLines(const std::string& input, const Tokenizer& tokenizer,
                     const TokenizeOptions& options) {
  std::string_view left = input;
  for (int64_t number = 1; !left.empty(); ++number) {
    const std::string line(left.substr(0, left.find('\n')));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    if (options.decode) {
      VIVACE_ASSIGN(const auto ids, ParseIds(line, tokenizer));
      std::cout << boost::json::serialize(boost::json::string(tokenizer.Decode(ids, false)))
                << '\n';
      continue;
    }
    boost::system::error_code error;
    const boost::json::value text = boost::json::parse(line, error);
    if (error || !text.is_string()) {
      return Fail(ErrorCode::kInvalidArgument, "bad_line", "",
                  "line {} of stdin is not a JSON string", number);
    }
    const auto ids =
        tokenizer.Encode(text.get_string(),
                         {.add_special_tokens = options.add_special_tokens, .parse_special = true});
    std::cout << fmt::format("[{}]\n", fmt::join(ids, ", "));
  }
  return {};
}

}  // namespace

int Tokenize(std::span<const std::string> args) {
  TokenizeOptions options;
  const auto parsed = ParseFlags(TokenizeCommand(&options), args);
  if (!parsed) return Refuse(parsed.error());
  if (parsed->help) return 0;
  if (options.tokenizer.empty() && parsed->positionals.size() == 1) {
    options.tokenizer = parsed->positionals[0];
  } else if (options.tokenizer.empty() || !parsed->positionals.empty()) {
    fmt::print(stderr,
               "vivace: give one model, and the text on stdin (`vivace tokenize --help`)\n");
    return kExitUsage;
  }
  const auto model = ResolveModel(options.tokenizer, options.hub);
  if (!model) return Refuse(model.error());
  const auto tokenizer = LoadTokenizer(model->path);
  if (!tokenizer) return Refuse(tokenizer.error());
  const std::string input = ReadStdin();
  if (options.lines) {
    const auto done = TokenizeLines(input, **tokenizer, options);
    if (!done) return Refuse(done.error());
    return std::cout.flush() ? 0 : kExitRefused;
  }
  if (options.decode) {
    const auto ids = ParseIds(input, **tokenizer);
    if (!ids) return Refuse(ids.error());
    const std::string bytes = (*tokenizer)->DecodeBytes(*ids, /*skip_special=*/false);
    std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return std::cout.flush() ? 0 : kExitRefused;
  }
  const auto ids = (*tokenizer)
                       ->Encode(input, {.add_special_tokens = options.add_special_tokens,
                                        .parse_special = true});
  const std::string back = (*tokenizer)->DecodeBytes(ids, /*skip_special=*/false);
  if (options.add_special_tokens ? !back.ends_with(input) && back.size() < input.size()
                                 : back != input) {
    fmt::print(stderr,
               "vivace: the ids do not give the input back: this vocabulary lacks some of its "
               "bytes, or normalises them\n");
  }
  fmt::print("[{}]\n", fmt::join(ids, ", "));
  return 0;
}

}  // namespace vivace::cli
