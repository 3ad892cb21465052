#include "tune/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <utility>

#include "base/limits.h"

namespace vivace::tune {
namespace {

namespace json = boost::json;

constexpr std::string_view kMark = "vivace tune";

Result<json::object> ParseLine(std::string_view line) {
  boost::system::error_code error;
  json::value value = json::parse(line, error, {}, {.max_depth = limits::kMaxJournalDepth});
  if (error || !value.is_object())
    return Fail(ErrorCode::kCorruptData, "bad_line", "", "it is no JSON object");
  return std::move(value.get_object());
}

tl::unexpected<Error> NoJournal(const std::string& path) {
  return Fail(ErrorCode::kInvalidArgument, "foreign_journal", "out",
              "{} is no journal of `vivace tune`; give another --out", path);
}

// Whether a first line that was cut off was going to be a header: what is not is left alone.
bool BeginsHeader(std::string_view text) {
  const std::string header = fmt::format(R"({{"journal":"{}")", kMark);
  return header.starts_with(text.substr(0, header.size()));
}

tl::unexpected<Error> Foreign(const std::string& path, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, "foreign_journal", std::string(what),
              "{} is of another run: {} differs; give another --out, or remove the file to begin "
              "anew",
              path, what);
}

// The header of a journal must be the run's own; the first member that differs is named.
Status CheckHeader(const std::string& path, const json::object& found, const json::object& wanted) {
  const json::value* mark = found.if_contains("journal");
  if (mark == nullptr || *mark != json::value(kMark)) return NoJournal(path);
  const json::value* version = found.if_contains("version");
  if (version == nullptr || *version != json::value(Journal::kVersion))
    return Foreign(path, "the version of the format");
  for (const auto& [name, value] : wanted) {
    const json::value* member = found.if_contains(name);
    // As text: 1 and 1.0 are one number, and what was written is compared with what would be.
    if (member == nullptr || json::serialize(*member) != json::serialize(value))
      return Foreign(path, fmt::format("the {}", std::string_view(name)));
  }
  return {};
}

}  // namespace

Result<Journal> Journal::Open(const std::string& path, const json::object& header) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return IoFault(path);
  if (!LockNamed(file.fd(), path)) {
    return Fail(ErrorCode::kUnavailable, "journal_busy", "out",
                "{} is in use by another `vivace tune`; wait for it, or give another --out", path);
  }
  Journal journal(path, std::move(file));
  VIVACE_RETURN_IF_ERROR(journal.Read(header));
  if (!journal.resumed_) {
    json::object line = {{"journal", kMark}, {"version", kVersion}};
    for (const auto& [name, value] : header) line[name] = value;
    VIVACE_RETURN_IF_ERROR(journal.WriteLine(line));
  }
  return journal;
}

Status Journal::Read(const json::object& header) {
  struct stat info {};
  if (fstat(file_.fd(), &info) != 0) return IoFault(path_);
  if (!S_ISREG(info.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, "foreign_journal", "out",
                "{} is no file; give another --out", path_);
  }
  if (static_cast<uint64_t>(info.st_size) > limits::kMaxJournalBytes) {
    return Fail(ErrorCode::kInvalidArgument, "journal_too_large", "out",
                "{} is larger than {} bytes; give another --out", path_, limits::kMaxJournalBytes);
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (!ReadAll(file_.fd(), std::as_writable_bytes(std::span(text)), 0)) return IoFault(path_);
  for (size_t number = 1; size_ < text.size(); ++number) {
    const size_t end = text.find('\n', size_);
    if (end == std::string::npos) {
      if (number == 1 && !BeginsHeader(text)) return NoJournal(path_);
      dropped_line_ = true;
      break;
    }
    auto line = ParseLine(std::string_view(text).substr(size_, end - size_));
    if (!line) {
      if (number == 1) return NoJournal(path_);
      return Fail(ErrorCode::kCorruptData, "corrupt_journal", "out",
                  "{}: line {} is damaged: {}; remove it and what follows to go on from there",
                  path_, number, line.error().message);
    }
    if (number == 1) {
      VIVACE_RETURN_IF_ERROR(CheckHeader(path_, *line, header));
      resumed_ = true;
    } else {
      entries_.push_back(std::move(*line));
    }
    size_ = end + 1;
  }
  if (dropped_line_ && ftruncate(file_.fd(), static_cast<off_t>(size_)) != 0) return IoFault(path_);
  return {};
}

Status Journal::WriteLine(const json::object& line) {
  const std::string text = json::serialize(line) + "\n";
  if (size_ + text.size() > limits::kMaxJournalBytes) {
    return Fail(ErrorCode::kResourceExhausted, "journal_too_large", "out",
                "{} would be larger than {} bytes", path_, limits::kMaxJournalBytes);
  }
  if (!WriteAll(file_.fd(), std::as_bytes(std::span(text)), size_)) return IoFault(path_);
  if (fsync(file_.fd()) != 0) return IoFault(path_);
  size_ += text.size();
  return {};
}

Status Journal::Append(std::string_view kind, json::object entry) {
  json::object line = {{"kind", kind}};
  for (auto& [name, value] : entry) line[name] = std::move(value);
  return WriteLine(line);
}

}  // namespace vivace::tune
