#include <fmt/format.h>

#include "base/units.h"
#include "cli/check_file.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_argument.h"
#include "model/describe.h"

namespace vivace::cli {
namespace {

struct InspectOptions {
  bool check = false;
  bool tensors = true;
  bool metadata = true;
  HubOptions hub;
};

Command InspectCommand(InspectOptions* options) {
  Command command = {
      .name = "inspect",
      .positional = "FILE | MODEL",
      .summary = "Shows what a model file holds and whether Vivace can serve it.",
      .details =
          "--check takes a model (a file, a folder or a name), a safetensors or tokenizer.json "
          "file "
          "or a .jinja chat\ntemplate, does all the checks that loading it would, and exits 0, or "
          "1 "
          "with one line on stderr.",
      .flags = {{"check", "", "off", "only check, print nothing but the fault",
                 StoreSwitch(&options->check)},
                {"tensors", "", "on", "list every tensor", StoreSwitch(&options->tensors)},
                {"metadata", "", "on", "list the metadata", StoreSwitch(&options->metadata)}}};
  for (Flag& flag : HubFlags(&options->hub)) command.flags.push_back(std::move(flag));
  return command;
}

std::string Shape(const std::vector<uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void PrintFacts(const std::vector<model::MetadataFact>& facts) {
  for (const model::MetadataFact& fact : facts) {
    fmt::print("  {:<44} {}\n", fact.key, fact.value);
  }
}

void PrintDescription(const model::Description& description, const InspectOptions& options) {
  fmt::print("{}\n{}, {}, {} parameters\n", description.path, description.format,
             FormatBytes(description.file_bytes), description.parameters);
  if (!description.summary.empty()) {
    fmt::print("\nmodel\n");
    PrintFacts(description.summary);
  }
  fmt::print("\nweights\n");
  for (const model::TypeTotal& total : description.types) {
    fmt::print("  {:<8} {:>6} tensors {:>12}{}\n", total.type, total.tensors,
               FormatBytes(total.bytes), total.supported ? "" : "   not supported");
  }
  if (options.metadata && !description.metadata.empty()) {
    fmt::print("\nmetadata\n");
    PrintFacts(description.metadata);
  }
  if (options.tensors) {
    fmt::print("\ntensors\n");
    for (const model::TensorFact& tensor : description.tensors) {
      fmt::print("  {:<44} {:<8} {:<20} {}\n", tensor.name, tensor.type, Shape(tensor.shape),
                 FormatBytes(tensor.bytes));
    }
  }
  if (description.problem) {
    fmt::print("\nVivace cannot serve it: {}\n", description.problem->message);
  } else if (!description.summary.empty()) {
    fmt::print("\nVivace can serve it: vivace serve {}\n", description.path);
  }
}

}  // namespace

int Inspect(std::span<const std::string> args) {
  InspectOptions options;
  const auto words = ParseWords(InspectCommand(&options), args, {1, 1, "give one file or model"});
  if (!words) return words.error();
  const auto model = ResolveModel((*words)[0], options.hub);
  if (!model) return Refuse(model.error());
  const std::string& path = model->path;
  if (options.check) {
    const Status checked = CheckFile(path);
    return checked ? 0 : Refuse(checked.error());
  }
  const auto description = model::Describe(path);
  if (!description) return Refuse(description.error());
  PrintDescription(*description, options);
  return 0;
}

}  // namespace vivace::cli
