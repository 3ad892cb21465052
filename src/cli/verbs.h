// A table of words a command line may start with, each with what runs for it: `vivace` itself, and
// verbs that have verbs of their own.
#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace vivace::cli {

struct Verb {
  const char* name;
  int (*run)(std::span<const std::string>);  // the arguments after the name; the exit code
  const char* summary;
  const char* less_memory = "";  // flags of its own that make it need less, as ", or lower --x"
};

// One line per verb.
void PrintVerbs(std::span<const Verb> verbs, FILE* out);

// Runs the verb that args[0] names. `prefix` is what stands before it ("vivace", "vivace bench"),
// for the sentence about a name that is not in the table. `args` is not empty.
int RunVerb(const std::string& prefix, std::span<const Verb> verbs,
            std::span<const std::string> args);

}  // namespace vivace::cli
