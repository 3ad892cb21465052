#include "cli/verbs.h"

#include <fmt/format.h>

#include <vector>

#include "cli/commands.h"
#include "cli/flags.h"

namespace vivace::cli {

void PrintVerbs(std::span<const Verb> verbs, FILE* out) {
  for (const Verb& verb : verbs) fmt::print(out, "  {:<10} {}\n", verb.name, verb.summary);
}

int RunVerb(const std::string& prefix, std::span<const Verb> verbs,
            std::span<const std::string> args) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) {
    if (args[0] == verb.name) return verb.run(args.subspan(1));
    names.emplace_back(verb.name);
  }
  const std::string nearest = Nearest(args[0], names);
  fmt::print(stderr, "{}: unknown command '{}'{} (`{} --help` lists them)\n", prefix, args[0],
             nearest.empty() ? "" : "; did you mean '" + nearest + "'?", prefix);
  return kExitUsage;
}

}  // namespace vivace::cli
