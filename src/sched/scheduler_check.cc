// Scheduler::CheckInvariants: everything the scheduler counts, counted again from the sequences.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "sched/scheduler.h"

namespace vivace {
namespace {

std::string CheckTable(const Sequence& sequence, int32_t group, const KvCacheManager& kv) {
  const BlockTable& table = sequence.kv.table(group);
  const int32_t size = kv.config().block_size;
  if (table.size() < kv.BlocksFor(sequence.computed)) {
    return fmt::format("sequence {} has fewer blocks than tokens computed", sequence.key);
  }
  const int32_t window = kv.config().windows[group];
  if (table.first() > FirstVisibleBlock(window, size, sequence.computed)) {
    return fmt::format("sequence {} gave back blocks of group {} that it sees", sequence.key,
                       group);
  }
  if (table.claims() && table.num_held() > table.claim()) {
    return fmt::format("sequence {} holds more of group {} than it claims", sequence.key, group);
  }
  // Blocks from the first one that is still written to must belong to this sequence alone.
  for (int32_t i = sequence.computed / size; i < table.size(); ++i) {
    const BlockId block = table.blocks()[i];
    if (kv.pool().ref_count(block) != 1) {
      return fmt::format("sequence {} writes block {}, which has {} references", sequence.key,
                         block.value, kv.pool().ref_count(block));
    }
  }
  return {};
}

}  // namespace

std::string Scheduler::CheckRunning(std::vector<int32_t>* refs) const {
  for (const Sequence* sequence : running_) {
    if (!sequence->slot.valid() || slots_[sequence->slot.value] != sequence) {
      return fmt::format("running sequence {} is not in its slot", sequence->key);
    }
    if (sequence->remaining() < 1 || sequence->waits_for_leader) {
      return fmt::format("running sequence {} has nothing to compute", sequence->key);
    }
    for (int32_t group = 0; group < sequence->kv.num_groups(); ++group) {
      if (auto broken = CheckTable(*sequence, group, kv_); !broken.empty()) return broken;
      const BlockTable& table = sequence->kv.table(group);
      for (const BlockId block : table.blocks().subspan(static_cast<size_t>(table.first()))) {
        ++(*refs)[block.value];
      }
    }
  }
  return {};
}

std::string Scheduler::CheckWaiting() const {
  for (const Sequence* sequence : waiting_) {
    const auto holds = [sequence](int32_t group) {
      const BlockTable& table = sequence->kv.table(group);
      return table.size() > 0 || table.claim() > 0;
    };
    const auto groups = std::views::iota(0, sequence->kv.num_groups());
    if (sequence->slot.valid() || sequence->computed != 0 || std::ranges::any_of(groups, holds)) {
      return fmt::format("waiting sequence {} holds a slot or blocks", sequence->key);
    }
    if (!sequence->waits_for_leader) continue;
    const auto leads = [sequence](const Sequence* other) {
      return other->group == sequence->group && other->leads_group;
    };
    if (std::none_of(running_.begin(), running_.end(), leads) &&
        std::none_of(waiting_.begin(), waiting_.end(), leads)) {
      return fmt::format("sequence {} waits for a leader that is gone", sequence->key);
    }
  }
  return {};
}

// Counted from the tables; and what is claimed is there.
std::string Scheduler::CheckClaims() const {
  int32_t claimed = 0;
  std::vector<bool> used(static_cast<size_t>(kv_.pool().num_total()));
  for (const Sequence* sequence : running_) {
    for (int32_t group = 0; group < sequence->kv.num_groups(); ++group) {
      const BlockTable& table = sequence->kv.table(group);
      if (!table.claims()) continue;
      claimed += table.claim();
      for (const BlockId block : table.blocks().subspan(static_cast<size_t>(table.first()))) {
        used[static_cast<size_t>(block.value)] = true;
      }
    }
  }
  const auto claimed_used = static_cast<int32_t>(std::count(used.begin(), used.end(), true));
  if (claimed != kv_.pool().num_claimed() || claimed_used != kv_.pool().num_claimed_used()) {
    return fmt::format("{} blocks are claimed and {} of these used, the pool says {} and {}",
                       claimed, claimed_used, kv_.pool().num_claimed(),
                       kv_.pool().num_claimed_used());
  }
  if (kv_.pool().num_available() < 0) return "more is claimed than is free";
  return {};
}

std::string Scheduler::CheckInvariants() const {
  const auto before = [](const Sequence* a, const Sequence* b) { return Before(*a, *b); };
  if (!std::is_sorted(running_.begin(), running_.end(), before) ||
      !std::is_sorted(waiting_.begin(), waiting_.end(), before)) {
    return "a list is out of order";
  }
  if (running_.size() + waiting_.size() != sequences_.size()) return "a sequence is lost";
  if (running_.size() + free_slots_.size() != slots_.size()) return "a slot is lost";

  std::vector<int32_t> refs(static_cast<size_t>(kv_.pool().num_total()));
  if (auto broken = CheckRunning(&refs); !broken.empty()) return broken;
  if (auto broken = CheckWaiting(); !broken.empty()) return broken;
  for (int32_t i = 0; i < kv_.pool().num_total(); ++i) {
    if (refs[i] != kv_.pool().ref_count(BlockId(i))) {
      return fmt::format("block {} counts {} references, tables hold {}", i,
                         kv_.pool().ref_count(BlockId(i)), refs[i]);
    }
  }
  if (auto broken = CheckClaims(); !broken.empty()) return broken;
  if (!kv_.Consistent()) return "the free list, the index and their counts disagree";
  return {};
}

}  // namespace vivace
