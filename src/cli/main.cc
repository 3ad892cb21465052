#include <fmt/format.h>

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/verbs.h"
#include "grammar/worker_main.h"

namespace {

using namespace vivace::cli;

constexpr const char* kLowerCache = ", or lower --kv-cache-memory-bytes or --max-num-seqs";

constexpr Verb kVerbs[] = {
    {"serve", Serve, "serve a model over the OpenAI API", kLowerCache},
    {"chat", Chat, "talk to a model file or a server in the terminal", kLowerCache},
    {"tokenize", Tokenize, "text on stdin to token ids on stdout, or back"},
    {"inspect", Inspect, "what a model file holds; --check: would it load"},
    {"pull", Pull, "get a model from the hub into its cache"},
    {"list", List, "the models in the cache"},
    {"rm", Remove, "remove a model from the cache"},
    {"plan", Plan, "what serving a model takes, and what fits, without loading it"},
    {"bench", Bench, "how fast servers, this machine and models on it are"},
    {"tune", Tune, "find the settings that serve your traffic best"},
};

void PrintHelp(FILE* out) {
  fmt::print(out, "Vivace {}: a fast, exact LLM server.\n\nusage: vivace COMMAND [ARGUMENTS]\n\n",
             VIVACE_VERSION);
  PrintVerbs(kVerbs, out);
  fmt::print(out,
             "\nTry:\n"
             "  vivace serve model.gguf              then open any OpenAI client on "
             "http://127.0.0.1:8000/v1\n"
             "  vivace serve org/name                a model of the hub\n"
             "  vivace chat model.gguf               without a server\n"
             "  vivace COMMAND --help                every flag of a command\n");
}

int Run(const std::vector<std::string>& args) {
  if (args.empty()) {
    PrintHelp(stderr);
    return kExitUsage;
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    PrintHelp(stdout);
    return 0;
  }
  if (args[0] == kGrammarWorkerVerb) return vivace::grammar::RunWorker();
  if (args[0] == "--version" || args[0] == "version") {
    fmt::print("vivace {}\n", VIVACE_VERSION);
    return 0;
  }
  return RunVerb("vivace", kVerbs, args);
}

int OutOfMemory(std::string_view verb) {
  const auto* found = std::ranges::find(kVerbs, verb, &Verb::name);
  std::fprintf(stderr, "vivace: out of memory; free some%s\n",
               found == std::end(kVerbs) ? "" : found->less_memory);
  return kExitRefused;
}

// Output that nobody takes is an error, but not one to talk about: the reader left.
int Finish(int code) {
  if (std::fflush(stdout) == 0) return code;
  if (errno != EPIPE)
    fmt::print(stderr, "vivace: cannot write the output: {}\n", std::strerror(errno));
  return code == 0 ? kExitRefused : code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of that write
  try {
    return Finish(Run({argv + 1, argv + argc}));
  } catch (const std::bad_alloc&) {
    return OutOfMemory(argc > 1 ? argv[1] : "");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::broken_pipe) return kExitRefused;
    std::fprintf(stderr, "vivace: the system refused: %s\n", error.what());
  } catch (const boost::system::system_error& error) {  // not a std::system_error
    std::fprintf(stderr, "vivace: the system refused: %s\n", error.what());
  }
  return kExitRefused;
}
