// The verbs of the binary. Each takes the arguments after its name and returns the exit code: 0
// done, 1 refused with one line on stderr, 2 a wrong command line.
#pragma once

#include <span>
#include <string>

#include "base/result.h"

namespace vivace::cli {

inline constexpr int kExitRefused = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C: 128 + SIGINT, as shells have it

// What `serve` starts itself as to compile grammars (grammar/worker.h); no verb for people.
inline constexpr char kGrammarWorkerVerb[] = "grammar-worker";

int Serve(std::span<const std::string> args);
int Chat(std::span<const std::string> args);
int Tokenize(std::span<const std::string> args);
int Inspect(std::span<const std::string> args);
int Pull(std::span<const std::string> args);
int List(std::span<const std::string> args);
int Remove(std::span<const std::string> args);
int Plan(std::span<const std::string> args);
int Bench(std::span<const std::string> args);
int Tune(std::span<const std::string> args);

// Prints "vivace: <message>" on stderr, once.
int Refuse(const Error& error);

}  // namespace vivace::cli
