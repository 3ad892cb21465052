// Scheduler::CheckInvariants: everything the scheduler counts, counted again from the sequences.
#include <fmt/format.h>

#include <algorithm>

#include "sched/scheduler.h"

namespace vivace {
namespace {

// Blocks from the first one that is still written to must belong to this sequence alone.
std::string CheckTail(const Sequence& sequence, const BlockPool& pool, int32_t block_size) {
  const auto blocks = sequence.kv.blocks();
  for (size_t i = static_cast<size_t>(sequence.computed / block_size); i < blocks.size(); ++i) {
    if (pool.ref_count(blocks[i]) != 1) {
      return fmt::format("sequence {} writes block {}, which has {} references", sequence.key,
                         blocks[i].value, pool.ref_count(blocks[i]));
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
    if (static_cast<int64_t>(sequence->kv.blocks().size()) < kv_.BlocksFor(sequence->computed)) {
      return fmt::format("sequence {} has fewer blocks than tokens computed", sequence->key);
    }
    if (auto broken = CheckTail(*sequence, kv_.pool(), config_.kv.block_size); !broken.empty()) {
      return broken;
    }
    for (const BlockId block : sequence->kv.blocks()) ++(*refs)[block.value];
  }
  return {};
}

std::string Scheduler::CheckWaiting() const {
  for (const Sequence* sequence : waiting_) {
    if (sequence->slot.valid() || sequence->computed != 0 || !sequence->kv.blocks().empty()) {
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
  if (!kv_.Consistent()) return "the free list, the index and their counts disagree";
  return {};
}

}  // namespace vivace
