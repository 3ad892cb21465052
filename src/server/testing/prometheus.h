// A strict reader of Prometheus text format 0.0.4, for tests. It knows what the format demands and
// what a scrape would drop.
#pragma once

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vivace::server::testing {

class PrometheusPage {
 public:
  using LabelSet = std::map<std::string, std::string>;
  struct Sample {
    std::string name;
    LabelSet labels;
    double value = 0;
  };

  explicit PrometheusPage(std::string_view text) { Read(text); }

  // What is wrong with the page; empty if nothing is.
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<Sample>& samples() const { return samples_; }

  // The sample with this name whose labels include `labels`.
  std::optional<double> Value(std::string_view name, const LabelSet& labels = {}) const {
    for (const Sample& sample : samples_) {
      if (sample.name != name) continue;
      bool all = true;
      for (const auto& [key, value] : labels) {
        const auto found = sample.labels.find(key);
        all = all && found != sample.labels.end() && found->second == value;
      }
      if (all) return sample.value;
    }
    return std::nullopt;
  }

 private:
  void Complain(std::string_view what, std::string_view line) {
    problems_.push_back(std::string(what) + ": " + std::string(line));
  }

  static bool IsName(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    for (const char c : name) {
      const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == ':';
      if (!good) return false;
    }
    return true;
  }

  void Read(std::string_view text) {
    if (text.empty() || text.back() != '\n') problems_.push_back("no final line feed");
    while (!text.empty()) {
      const size_t end = text.find('\n');
      ReadLine(text.substr(0, end));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    CheckHistograms();
  }

  void ReadLine(std::string_view line) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      const bool help = line[2] == 'H';
      const std::string_view rest = line.substr(7);
      const size_t space = rest.find(' ');
      if (space == std::string_view::npos) return Complain("bad comment", line);
      const std::string name(rest.substr(0, space));
      if (help) {
        if (!helped_.insert(name).second) Complain("second HELP", line);
      } else {
        if (!types_.emplace(name, rest.substr(space + 1)).second) Complain("second TYPE", line);
        if (!helped_.contains(name)) Complain("TYPE before HELP", line);
        current_ = name;
      }
      return;
    }
    if (line.empty() || line[0] == '#') return Complain("stray line", line);
    ReadSample(line);
  }

  void ReadSample(std::string_view line) {
    Sample sample;
    const size_t name_end = line.find_first_of("{ ");
    if (name_end == std::string_view::npos) return Complain("no value", line);
    sample.name = line.substr(0, name_end);
    if (!IsName(sample.name)) Complain("bad name", line);
    size_t at = name_end;
    if (line[at] == '{' && !ReadLabels(line, &at, &sample.labels)) {
      return Complain("bad labels", line);
    }
    if (at >= line.size() || line[at] != ' ') return Complain("no space", line);
    const std::string_view number = line.substr(at + 1);
    const auto [stop, ec] =
        std::from_chars(number.data(), number.data() + number.size(), sample.value);
    if (ec != std::errc() || stop != number.data() + number.size()) Complain("bad number", line);
    if (std::isnan(sample.value)) Complain("NaN", line);
    CheckFamily(sample, line);
    samples_.push_back(std::move(sample));
  }

  static bool ReadLabels(std::string_view line, size_t* at, LabelSet* labels) {
    size_t i = *at + 1;
    while (i < line.size() && line[i] != '}') {
      const size_t equals = line.find('=', i);
      if (equals == std::string_view::npos || line.substr(equals, 2) != "=\"") return false;
      const std::string key(line.substr(i, equals - i));
      std::string value;
      for (i = equals + 2; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] != '\\') {
          value += line[i];
          continue;
        }
        if (++i >= line.size()) return false;
        if (line[i] != '\\' && line[i] != '"' && line[i] != 'n') return false;
        value += line[i] == 'n' ? '\n' : line[i];
      }
      if (i >= line.size() || !IsName(key) || !labels->emplace(key, value).second) return false;
      ++i;
      if (i < line.size() && line[i] == ',') ++i;
    }
    if (i >= line.size()) return false;
    *at = i + 1;
    return true;
  }

  // A sample belongs to the family whose TYPE came last.
  void CheckFamily(const Sample& sample, std::string_view line) {
    const auto type = types_.find(current_);
    if (type == types_.end()) return Complain("sample without TYPE", line);
    if (type->second == "histogram") {
      const bool known = sample.name == current_ + "_bucket" || sample.name == current_ + "_sum" ||
                         sample.name == current_ + "_count";
      if (!known) Complain("not of the family", line);
    } else if (sample.name != current_) {
      Complain("not of the family", line);
    }
    if (type->second == "counter" && (!current_.ends_with("_total") || sample.value < 0)) {
      Complain("bad counter", line);
    }
    if (!seen_.insert({sample.name, sample.labels}).second) Complain("sample twice", line);
  }

  void CheckHistograms() {
    for (const auto& [name, type] : types_) {
      if (type != "histogram") continue;
      double last = 0;
      std::optional<double> infinite;
      for (const Sample& sample : samples_) {
        if (sample.name != name + "_bucket") continue;
        if (sample.value < last) Complain("buckets fall", name);
        last = sample.value;
        if (sample.labels.at("le") == "+Inf") infinite = sample.value;
      }
      if (!infinite || infinite != Value(name + "_count")) Complain("+Inf is not _count", name);
      if (!Value(name + "_sum")) Complain("no _sum", name);
    }
  }

  std::vector<std::string> problems_;
  std::vector<Sample> samples_;
  std::set<std::string> helped_;
  std::map<std::string, std::string> types_;
  std::set<std::pair<std::string, LabelSet>> seen_;
  std::string current_;
};

}  // namespace vivace::server::testing
