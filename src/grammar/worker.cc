#include "grammar/worker.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/limits.h"
#include "base/thread_priority.h"
#include "grammar/backend.h"
#include "grammar/counted.h"
#include "grammar/worker_wire.h"
#include "sample/token_mask.h"

namespace vivace::grammar {
namespace {

constexpr int kSocket = 0;

bool ReadAll(char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = recv(kSocket, data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool ReadMessage(std::string* payload) {
  uint32_t size = 0;
  if (!ReadAll(reinterpret_cast<char*>(&size), sizeof(size)) || size > wire::kMostBytes)
    return false;
  payload->resize(size);
  return ReadAll(payload->data(), size);
}

bool WriteMessage(std::string_view payload) {
  std::string message;
  wire::PutText(payload, &message);
  std::string_view rest = message;
  while (!rest.empty()) {
    const ssize_t sent = send(kSocket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::shared_ptr<const Vocabulary> ReadVocabulary() {
  std::string message;
  if (!ReadMessage(&message)) return nullptr;
  wire::Reader reader(message);
  const auto size = reader.U32(), stops = reader.U32();
  if (!size || !stops || *size > static_cast<uint32_t>(limits::kMaxVocab)) return nullptr;
  std::vector<TokenId> stop;
  for (uint32_t i = 0; i < *stops; ++i) {
    const auto id = reader.U32();
    if (!id) return nullptr;
    stop.push_back(static_cast<TokenId>(*id));
  }
  std::vector<std::string> tokens;
  while (const auto text = reader.Text()) tokens.emplace_back(*text);
  return std::make_shared<Vocabulary>(std::move(tokens), std::move(stop),
                                      static_cast<int32_t>(*size));
}

// Bounds this process's memory to what it has and kGrammarWorkerBytes more. Sanitizers need all
// addresses.
void LimitMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most =
      pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + limits::kGrammarWorkerBytes;
  const rlimit limit = {most, most};
  setrlimit(RLIMIT_AS, &limit);
#endif
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// Ends this process, by SIGPROF, once it has computed for so long from now on; 0: no limit. Of
// computing, not of waiting, so that a busy machine refuses nothing.
void LimitTime(uint32_t ms) {
  itimerval timer = {};
  timer.it_value.tv_sec = ms / 1000;
  timer.it_value.tv_usec = static_cast<suseconds_t>(ms % 1000) * 1000;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

constexpr int kWalkTokens = 24;  // of each manner of walking
constexpr int kMostWalks = 24;   // of each: outputs may be short
constexpr size_t kFlags = 3;     // bytes of a request before its text

// How the tokens of a walk are drawn from what is allowed.
enum class Draw : uint8_t {
  kEvenly,
  kRepeating,  // the last one again where it may be: so repeats are followed
};

// Takes what ends the output from the mask, so that nothing but its grammar ends a walk.
void TakeStops(const xgrammar::TokenizerInfo& tokens, std::span<uint32_t> mask) {
  for (const TokenId stop : tokens.GetStopTokenIds()) TakeFromMask(mask, stop);
}

// One output's masks, at most `most`; how many were made.
int WalkOnce(const xgrammar::CompiledGrammar& compiled, Draw draw, int most,
             std::minstd_rand* random) {
  const xgrammar::TokenizerInfo& tokens = compiled.GetTokenizerInfo();
  const int32_t vocab_size = tokens.GetVocabSize();
  xgrammar::GrammarMatcher matcher(compiled);
  std::vector<uint32_t> mask(MaskWords(vocab_size));
  TokenId token = -1;
  int made = 0;
  while (made < most && !matcher.IsTerminated()) {
    std::ranges::fill(mask, ~0u);
    FillTokenMask(&matcher, mask);
    ++made;
    TakeStops(tokens, mask);
    if (draw == Draw::kEvenly || token < 0 || !InMask(mask, token)) {
      token = static_cast<TokenId>((*random)() % static_cast<uint32_t>(vocab_size));
      for (int32_t tried = 0; tried < vocab_size && !InMask(mask, token); ++tried)
        token = (token + 1) % vocab_size;
    }
    if (!InMask(mask, token) || !matcher.AcceptToken(token)) break;
  }
  return made;
}

// Makes the masks of some tokens. Rules that can be followed in very many ways at once compile in
// no time and take a second for each token, in which nobody's step ends: here the limits of
// compiling stop them. What no walk comes by is stopped when it is met (GrammarConstraint).
void WalkAhead(const xgrammar::CompiledGrammar& compiled) {
  std::minstd_rand random(1);
  for (const Draw draw : {Draw::kEvenly, Draw::kRepeating}) {
    int left = kWalkTokens;
    for (int walk = 0; walk < kMostWalks && left > 0; ++walk) {
      left -= WalkOnce(compiled, draw, left, &random);
    }
  }
}

std::string Answer(TokenizerInfos* tokens, std::string_view request) {
  const auto reply = [](wire::Status status, std::string_view text) {
    return std::string(1, static_cast<char>(status)) + std::string(text);
  };
  try {
    const Lowered text{.kind = static_cast<Lowered::Kind>(request[0]),
                       .text = std::string(request.substr(kFlags)),
                       .names_tokens = request[1] != 0,
                       .of_client = request[2] != 0};
    const xgrammar::TokenizerInfo& info = tokens->For(text);
    const auto compiled = CompileText(info, text);
    if (compiled) {
      // Our own counted strings get the tables that make them cheap on the other side.
      if (text.of_client || !HasCountedStrings(text.text)) {
        WalkAhead(*compiled);
      }
      return reply(wire::Status::kCompiled, compiled->SerializeJSON());
    }
    const bool costly = compiled.error().reason == "grammar_too_costly";
    return reply(costly ? wire::Status::kTooCostly : wire::Status::kBad, compiled.error().message);
  } catch (const std::exception&) {
    return reply(wire::Status::kTooCostly, "it takes too much memory to compile");
  }
}

}  // namespace

int RunWorker() {
  LowerThreadPriority(10);
  try {
    const auto vocabulary = ReadVocabulary();
    if (vocabulary == nullptr) return 0;
    TokenizerInfos tokens(vocabulary);
    tokens.For({});
    LimitMemory();
    std::string request;
    while (ReadMessage(&request)) {
      wire::Reader head(request);
      const auto time_ms = head.U32();
      if (!time_ms || request.size() < sizeof(uint32_t) + kFlags) return 1;
      LimitTime(*time_ms);
      const std::string answer =
          Answer(&tokens, std::string_view(request).substr(sizeof(uint32_t)));
      LimitTime(0);
      if (!WriteMessage(answer)) break;
    }
  } catch (const std::exception&) {
    return wire::kOutOfMemory;  // the server starts another one
  }
  return 0;
}

}  // namespace vivace::grammar
