#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "base/log.h"
#include "grammar/backend.h"
#include "grammar/compiled.h"
#include "grammar/grammar.h"
#include "grammar/lower.h"
#include "grammar/vocabulary.h"
#include "grammar/worker.h"

namespace vivace {
namespace {

using grammar::Lowered;
using grammar::TokenGrammar;
using grammar::Vocabulary;
using GrammarPtr = std::shared_ptr<const TokenGrammar>;

// Kept grammars, the least recently used go first; also verdicts that a text was too complex, so
// that sending it again costs nothing.
class Cache {
 public:
  using Entry = std::variant<GrammarPtr, Error>;

  std::optional<Entry> Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->second;
  }

  void Keep(const std::string& key, Entry entry) {
    const std::lock_guard lock(mutex_);
    if (index_.contains(key)) return;
    bytes_ += Size(key, entry);
    entries_.emplace_front(key, std::move(entry));
    index_.emplace(key, entries_.begin());
    while (entries_.size() > limits::kGrammarCacheEntries ||
           (bytes_ > limits::kGrammarCacheBytes && entries_.size() > 1)) {
      bytes_ -= Size(entries_.back().first, entries_.back().second);
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
  }

 private:
  static size_t Size(const std::string& key, const Entry& entry) {
    const auto* grammar = std::get_if<GrammarPtr>(&entry);
    return key.size() + (grammar == nullptr ? 512 : (*grammar)->bytes());
  }

  std::mutex mutex_;
  std::list<std::pair<std::string, Entry>> entries_;
  std::unordered_map<std::string, std::list<std::pair<std::string, Entry>>::iterator> index_;
  size_t bytes_ = 0;
};

// One compile at a time, by waiting at most so long for the ones before.
class Turn {
 public:
  bool Take(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    if (!free_.wait_for(lock, most, [&] { return !taken_; })) return false;
    taken_ = true;
    return true;
  }
  void Give() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
};

class Compiler final : public GrammarCompiler {
 public:
  Compiler(std::shared_ptr<const Tokenizer> tokenizer, int32_t vocab_size,
           GrammarCompilerConfig config)
      : tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size), config_(std::move(config)) {}

  ~Compiler() override {
    if (preparing_.joinable()) preparing_.join();
  }

  void Prepare() override {
    if (preparing_.joinable()) return;
    preparing_ = std::thread([this] {
      if (!turn_.Take(std::chrono::milliseconds::zero())) return;
      if (const Status status = GetReady(); !status) {
        log::Warn("grammars cannot be compiled yet", {{"why", status.error().message}});
      }
      turn_.Give();
    });
  }

  Result<std::shared_ptr<const CompiledGrammar>> Compile(const GrammarSpec& spec) override {
    const std::string key = grammar::KeyOf(spec);
    if (auto kept = cache_.Find(key)) return Kept(std::move(*kept), spec);
    VIVACE_ASSIGN(const Lowered text, grammar::Lower(spec));
    // As long as one that takes its whole time on a busy machine.
    if (!turn_.Take(std::chrono::milliseconds(6 * config_.max_compile_ms))) {
      return Fail(ErrorCode::kResourceExhausted, "grammar_queue_full", spec.field,
                  "other grammars are being compiled; try again");
    }
    auto kept = cache_.Find(key);  // somebody else may have had the same
    if (!kept) {
      auto made = Make(text, spec.field);
      if (made) {
        kept = Cache::Entry(*made);
      } else {
        kept = Cache::Entry(made.error());
      }
      if (made || made.error().reason == "grammar_too_complex") cache_.Keep(key, *kept);
    }
    turn_.Give();
    return Kept(std::move(*kept), spec);
  }

  Result<std::shared_ptr<const CompiledGrammar>> Find(const GrammarSpec& spec) override {
    if (auto kept = cache_.Find(grammar::KeyOf(spec))) return Kept(std::move(*kept), spec);
    return Fail(ErrorCode::kUnavailable, std::string(kGrammarNotReady), spec.field,
                "the grammar must be compiled first");
  }

 private:
  static Result<std::shared_ptr<const CompiledGrammar>> Kept(Cache::Entry entry,
                                                             const GrammarSpec& spec) {
    if (auto* grammar = std::get_if<GrammarPtr>(&entry)) return std::move(*grammar);
    Error error = std::get<Error>(std::move(entry));
    error.field = spec.field;
    return tl::unexpected<Error>(std::move(error));
  }

  // What all grammars need. With the turn only.
  Status GetReady() {
    try {
      if (!tokens_) {
        vocabulary_ =
            Vocabulary::From(*tokenizer_, vocab_size_,
                             config_.eos_ids.empty() ? tokenizer_->eos_ids() : config_.eos_ids);
        if (!config_.worker.empty()) worker_.emplace(config_.worker, vocabulary_);
        tokens_.emplace(vocabulary_);
      }
      if (worker_) VIVACE_RETURN_IF_ERROR(worker_->Prepare());
      tokens_->For({});
      return {};
    } catch (const std::exception&) {
      return Fail(ErrorCode::kResourceExhausted, "grammar_busy", "",
                  "there is too little memory to compile grammars; try again");
    }
  }

  Result<GrammarPtr> Make(const Lowered& text, const std::string& field) {
    VIVACE_RETURN_IF_ERROR(GetReady());
    try {
      auto compiled = worker_ ? InWorker(text) : grammar::CompileText(tokens_->For(text), text);
      if (!compiled) return tl::unexpected<Error>(std::move(compiled.error()));
      return TokenGrammar::Create(std::move(*compiled), vocabulary_, field);
    } catch (const std::exception&) {
      return Fail(ErrorCode::kInvalidArgument, "grammar_too_costly", field,
                  "it takes too much memory");
    }
  }

  Result<xgrammar::CompiledGrammar> InWorker(const Lowered& text) {
    VIVACE_ASSIGN(const std::string bytes,
                  worker_->Compile(text, std::chrono::milliseconds(config_.max_compile_ms)));
    auto read = xgrammar::CompiledGrammar::DeserializeJSON(bytes, tokens_->For(text));
    if (auto* compiled = std::get_if<xgrammar::CompiledGrammar>(&read)) return std::move(*compiled);
    return Fail(ErrorCode::kInternal, "grammar_worker", "", "a compiled grammar cannot be read");
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t vocab_size_;
  GrammarCompilerConfig config_;
  Cache cache_;
  Turn turn_;
  std::thread preparing_;
  // With the turn only; made by the first who has it.
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::optional<grammar::WorkerProcess> worker_;
  std::optional<grammar::TokenizerInfos> tokens_;
};

}  // namespace

Status CheckGrammar(const GrammarSpec& spec) {
  VIVACE_RETURN_IF_ERROR(grammar::Lower(spec));
  return {};
}

std::shared_ptr<GrammarCompiler> WithoutWaiting(std::shared_ptr<GrammarCompiler> compiler) {
  class Finder final : public GrammarCompiler {
   public:
    explicit Finder(std::shared_ptr<GrammarCompiler> inner) : inner_(std::move(inner)) {}
    void Prepare() override { inner_->Prepare(); }
    Result<std::shared_ptr<const CompiledGrammar>> Compile(const GrammarSpec& spec) override {
      return inner_->Find(spec);
    }
    Result<std::shared_ptr<const CompiledGrammar>> Find(const GrammarSpec& spec) override {
      return inner_->Find(spec);
    }

   private:
    const std::shared_ptr<GrammarCompiler> inner_;
  };
  if (compiler == nullptr) return nullptr;
  return std::make_shared<Finder>(std::move(compiler));
}

std::unique_ptr<GrammarCompiler> NewGrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer,
                                                    int32_t vocab_size,
                                                    GrammarCompilerConfig config) {
  return std::make_unique<Compiler>(std::move(tokenizer), vocab_size, std::move(config));
}

}  // namespace vivace
