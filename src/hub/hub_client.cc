#include "hub/hub_client.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "hub/model_name.h"

namespace vivace::hub {
namespace {

constexpr int kMostTries = 5;
constexpr int kLongestWaitS = 30;  // a hub that asks for more is answered with its sentence
constexpr auto kFirstWait = std::chrono::milliseconds(500);

// Percent-encodes all but unreserved characters and `keep`.
std::string Encoded(std::string_view text, std::string_view keep = "") {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' ||
                       keep.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

tl::unexpected<Error> BadListing(const std::string& repo) {
  return Fail(ErrorCode::kCorruptData, "bad_answer", "",
              "the hub's list of {} is not what a hub answers (is HF_ENDPOINT right?)", repo);
}

Result<RepoListing> ParseListing(const std::string& text, const std::string& repo) {
  boost::system::error_code failed;
  const boost::json::value value = boost::json::parse(text, failed);
  if (failed || !value.is_object()) return BadListing(repo);
  const boost::json::value* sha = value.get_object().if_contains("sha");
  const boost::json::value* siblings = value.get_object().if_contains("siblings");
  if (sha == nullptr || !sha->is_string() || !IsCommit(sha->get_string()) || siblings == nullptr ||
      !siblings->is_array()) {
    return BadListing(repo);
  }
  if (siblings->get_array().size() > limits::kHubFiles) {
    return Fail(ErrorCode::kCorruptData, "too_many_files", "", "{} has more than {} files", repo,
                limits::kHubFiles);
  }
  RepoListing listing{.commit = std::string(sha->get_string()), .files = {}};
  for (const boost::json::value& sibling : siblings->get_array()) {
    const boost::json::value* name =
        sibling.is_object() ? sibling.get_object().if_contains("rfilename") : nullptr;
    if (name == nullptr || !name->is_string()) return BadListing(repo);
    std::string file(name->get_string());
    if (IsHostileFileName(file)) {
      return Fail(ErrorCode::kCorruptData, "hostile_name", "",
                  "the hub's list of {} has a file name that leads out of its folder", repo);
    }
    listing.files.push_back(std::move(file));
  }
  return listing;
}

// "bytes 100-199/200"
struct ContentRange {
  uint64_t begin = 0;
  uint64_t total = 0;
};

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) {
    return std::nullopt;
  }
  const auto begin = ParseNumber<uint64_t>(text.substr(0, dash));
  const auto total = ParseNumber<uint64_t>(text.substr(slash + 1));
  if (!begin || !total) return std::nullopt;
  return ContentRange{*begin, *total};
}

bool HasFacts(const HttpAnswer& answer) {
  return !answer.Header("x-linked-etag").empty() || !answer.Header("etag").empty();
}

Result<FileFacts> FactsOf(const HttpAnswer& answer) {
  const bool redirected = !answer.redirect_url.empty();
  const std::string_view linked = answer.Header("x-linked-etag"), etag = answer.Header("etag");
  FileFacts facts;
  VIVACE_ASSIGN(facts.blob, BlobName(linked.empty() ? etag : linked));
  std::string_view size = answer.Header("x-linked-size");
  if (size.empty() && !redirected) size = answer.Header("content-length");
  facts.size = ParseNumber<uint64_t>(size);
  if (facts.size && *facts.size > limits::kHubFileBytes) {
    return Fail(ErrorCode::kCorruptData, "file_too_large", "", "a file of {} bytes: too large",
                *facts.size);
  }
  if (!redirected && etag.starts_with('"')) facts.if_range = etag;
  return facts;
}

}  // namespace

HubClient::HubClient(const HubConfig& config, std::function<bool()> stop)
    : config_(config), http_(config.timeout_s, std::move(stop)), origin_(Origin(config.endpoint)) {}

std::string HubClient::FileUrl(const std::string& repo, const std::string& commit,
                               const std::string& file) const {
  return fmt::format("{}/{}/resolve/{}/{}", config_.endpoint, repo, commit, Encoded(file, "/"));
}

// Walks redirects by hand, since each hop decides anew whether it may see the token.
Result<HttpAnswer> HubClient::Follow(HttpRequest request, bool stop_at_facts,
                                     const BodySink& sink) {
  retry_after_s_.reset();
  if (origin_.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_endpoint", "HF_ENDPOINT",
                "HF_ENDPOINT is not an http or https URL");
  }
  const std::vector<std::string> headers = request.headers;
  for (int hop = 0; hop <= limits::kHubRedirects; ++hop) {
    const std::string origin = Origin(request.url);
    if (origin == origin_) {
      request.headers = headers;
      if (!config_.token.empty()) {
        request.headers.push_back("Authorization: Bearer " + config_.token);
      }
    } else {
      request.headers.clear();
      std::copy_if(headers.begin(), headers.end(), std::back_inserter(request.headers),
                   [](const std::string& header) { return header.starts_with("Range:"); });
    }
    VIVACE_ASSIGN(HttpAnswer answer, http_.Send(request, sink));
    if (answer.status / 100 != 3 || answer.redirect_url.empty()) return answer;
    const std::string next = Origin(answer.redirect_url);
    if (stop_at_facts && next != origin_ && HasFacts(answer)) return answer;
    if (next.empty() || (origin.starts_with("https:") && next.starts_with("http:"))) {
      return Fail(ErrorCode::kCorruptData, "bad_redirect", "",
                  "{} redirects to what is no https URL", origin);
    }
    request.url = answer.redirect_url;
  }
  return Fail(ErrorCode::kCorruptData, "bad_redirect", "", "{} redirects without end", origin_);
}

tl::unexpected<Error> HubClient::Refused(const HttpAnswer& answer, const std::string& repo) const {
  const std::string_view code = answer.Header("x-error-code");
  const bool token = !config_.token.empty();
  if (code == "GatedRepo") {
    return Fail(ErrorCode::kNotFound, "gated_model", repo,
                "{} is gated: accept its terms at {}/{} and {}", repo, config_.endpoint, repo,
                token ? "use a token (HF_TOKEN) of the account that did"
                      : "set HF_TOKEN to a token of the account that did");
  }
  if (answer.status == 401 || code == "RepoNotFound") {
    return Fail(ErrorCode::kNotFound, "no_such_model", repo,
                "{} has no model {}, or it is private: check the name, and {}", config_.endpoint,
                repo,
                token ? "whether the token (HF_TOKEN) may read it"
                      : "set HF_TOKEN to a token that may read it");
  }
  if (answer.status == 403) {
    return Fail(ErrorCode::kNotFound, "no_access", repo, "no access to {}: {} ({}/{})", repo,
                token ? "the token (HF_TOKEN) may not read it; ask for access on its page"
                      : "it needs a token in HF_TOKEN",
                config_.endpoint, repo);
  }
  return Fail(ErrorCode::kIo, "bad_answer", repo, "{} answered {} for {}", config_.endpoint,
              answer.status, repo);
}

Status HubClient::Check(const HttpAnswer& answer, const std::string& repo, std::string_view what) {
  const int status = answer.status;
  if (status / 100 == 2 || status / 100 == 3) return {};
  if (status == 404 && answer.Header("x-error-code") != "RepoNotFound") {
    return Fail(ErrorCode::kNotFound, "not_on_hub", repo, "{} has no {} (HTTP 404)", repo, what);
  }
  if (status == 429 || status == 408 || status >= 500) {
    retry_after_s_ = ParseNumber<int>(answer.Header("retry-after"));
    if (status != 429) {
      return Fail(ErrorCode::kIo, "busy", "", "{} answered {}; try again later", config_.endpoint,
                  status);
    }
    return Fail(ErrorCode::kIo, "busy", "", "{} asks for fewer requests (HTTP 429): wait{}{}",
                config_.endpoint,
                retry_after_s_ ? fmt::format(" {} s", *retry_after_s_) : std::string(" a while"),
                config_.token.empty() ? ", or set HF_TOKEN, which has a higher limit" : "");
  }
  return Refused(answer, repo);
}

bool HubClient::WaitToRetry(const Error& error, int* tries) {
  constexpr std::string_view kWorthIt[] = {"unreachable", "stalled", "cut", "busy"};
  const bool worth_it = std::ranges::find(kWorthIt, error.reason) != std::end(kWorthIt);
  if (!worth_it || ++*tries >= kMostTries) return false;
  std::chrono::milliseconds wait = kFirstWait * (1 << std::min(*tries - 1, 6));
  if (error.reason == "busy" && retry_after_s_) {
    if (*retry_after_s_ < 0 || *retry_after_s_ > kLongestWaitS) return false;
    wait = std::max<std::chrono::milliseconds>(wait, std::chrono::seconds(*retry_after_s_));
  }
  const auto until = std::chrono::steady_clock::now() + wait;
  while (std::chrono::steady_clock::now() < until) {
    if (http_.stop()()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

template <typename Once>
auto HubClient::Retried(const Once& once) -> decltype(once()) {
  for (int tries = 0;;) {
    auto result = once();
    if (result || !WaitToRetry(result.error(), &tries)) return result;
  }
}

Result<RepoListing> HubClient::List(const std::string& repo, const std::string& revision) {
  const HttpRequest request{
      .url = fmt::format("{}/api/models/{}/revision/{}", config_.endpoint, repo, Encoded(revision)),
      .headers = {"Accept: application/json"},
      .most_s = 4 * config_.timeout_s};
  return Retried([&]() -> Result<RepoListing> {
    std::string text;
    const BodySink sink = [&text, &repo](const HttpAnswer&, std::string_view piece) -> Status {
      if (text.size() + piece.size() > limits::kHubListingBytes) return BadListing(repo);
      text += piece;
      return {};
    };
    VIVACE_ASSIGN(const HttpAnswer answer, Follow(request, false, sink));
    VIVACE_RETURN_IF_ERROR(
        Check(answer, repo, fmt::format("revision {}, or there is no such model", revision)));
    return ParseListing(text, repo);
  });
}

Result<FileFacts> HubClient::Facts(const std::string& repo, const std::string& commit,
                                   const std::string& file) {
  const HttpRequest request{.url = FileUrl(repo, commit, file),
                            .head = true,
                            .headers = {},
                            .most_s = 4 * config_.timeout_s};
  const BodySink nothing = [](const HttpAnswer&, std::string_view) -> Status { return {}; };
  return Retried([&]() -> Result<FileFacts> {
    VIVACE_ASSIGN(const HttpAnswer answer, Follow(request, true, nothing));
    VIVACE_RETURN_IF_ERROR(Check(answer, repo, "file " + file));
    return FactsOf(answer);
  });
}

Status HubClient::Get(const std::string& repo, const std::string& commit, const std::string& file,
                      const FileFacts& facts, uint64_t from, const RangeSink& sink) {
  HttpRequest request{.url = FileUrl(repo, commit, file), .headers = {}};
  if (from > 0) {
    request.headers.push_back(fmt::format("Range: bytes={}-", from));
    // Only the hub itself knows this tag; whoever it redirects to has names of its own, and then
    // the commit in the URL and the checksum are what holds the content fast.
    if (!facts.if_range.empty()) request.headers.push_back("If-Range: " + facts.if_range);
  }
  const auto begin_of = [&](const HttpAnswer& head) -> Result<uint64_t> {
    if (head.status != 206) return 0;
    const auto range = ParseContentRange(head.Header("content-range"));
    if (range && range->begin == from && (!facts.size || range->total == *facts.size)) return from;
    return Fail(ErrorCode::kCorruptData, "bad_range", "",
                "{} of {}: not the range that was asked for", file, repo);
  };
  const BodySink pieces = [&](const HttpAnswer& head, std::string_view piece) -> Status {
    VIVACE_ASSIGN(const uint64_t begin, begin_of(head));
    return sink(begin, piece);
  };
  VIVACE_ASSIGN(const HttpAnswer answer, Follow(request, false, pieces));
  if (answer.status == 416) {
    return Fail(ErrorCode::kCorruptData, "bad_range", "", "{} of {}: no such range", file, repo);
  }
  return Check(answer, repo, "file " + file);
}

}  // namespace vivace::hub
