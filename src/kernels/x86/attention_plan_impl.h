// How a step's sequences become items of work for attention. Included by attention_impl.h only.
//
// A bundle is one sequence, or a few that begin with the same blocks and have few rows each. Its
// (row, head) pairs are cut into chunks, and each chunk is a unit for every kv head; a bundle of
// several sequences is one chunk. With few units (decoding a few sequences) every split of a unit
// is an item of its own and whoever finishes last merges; with many, one item runs a unit's splits
// one after the other. All of it is the same arithmetic in the same order.
#pragma once

#include "kernels/attention.h"

namespace vivace::kernels {
namespace {

constexpr int kMaxTileRows = 24;  // pairs of a unit: K, V, q, scores and output tiles stay near L1
constexpr int kItemsPerThread = 4;        // below this many units a thread, splits are items
constexpr int kSharedItemsPerThread = 2;  // sequences are not bundled below this many items
constexpr size_t kPartialBytesPerThread = 1 << 20;

// Lives in the workspace.
struct Bundle {
  int32_t first_item = 0;
  int32_t first_member = 0, members = 0;  // of AttentionPlan::members
  int32_t shared_positions = 0;           // all members have the same blocks up to here
  int32_t chunks = 0;
  int32_t splits = 0;      // items per unit
  int32_t first_unit = 0;  // counter index; splits > 1 only
  int64_t partials = 0;    // floats into the partial area; splits > 1 only
};

// The workspace of one attention call.
struct AttentionPlan {
  int64_t slot_floats;
  int32_t items;
  int32_t num_bundles;
  Bundle* bundles;   // [max_sequences]
  int32_t* members;  // [max_sequences] indices of sequences
  int32_t* counters;
  float* partials;
  int64_t partial_floats;  // room
  int32_t max_units;       // room for counters
};

constexpr size_t Align64(size_t n) { return (n + 63) / 64 * 64; }

[[maybe_unused]] inline size_t AttentionListBytes(int32_t sequences, int threads) {
  const auto count = static_cast<size_t>(sequences);
  return Align64(count * sizeof(Bundle)) + Align64(count * sizeof(int32_t)) +
         Align64(kItemsPerThread * static_cast<size_t>(threads) * sizeof(int32_t));
}

[[maybe_unused]] inline AttentionPlan CarveAttention(int32_t sequences, int value_dim, int threads,
                                                     Workspace workspace) {
  const auto count = static_cast<size_t>(sequences);
  AttentionPlan plan = {};
  plan.slot_floats = int64_t{kMaxTileRows} * (2 + value_dim);
  plan.max_units = kItemsPerThread * threads;
  std::byte* data = workspace.data;
  plan.bundles = reinterpret_cast<Bundle*>(data);
  plan.members = reinterpret_cast<int32_t*>(data + Align64(count * sizeof(Bundle)));
  plan.counters = reinterpret_cast<int32_t*>(reinterpret_cast<std::byte*>(plan.members) +
                                             Align64(count * sizeof(int32_t)));
  const size_t lists = AttentionListBytes(sequences, threads);
  plan.partials = reinterpret_cast<float*>(data + lists);
  plan.partial_floats = static_cast<int64_t>((workspace.bytes - lists) / sizeof(float));
  return plan;
}

class AttentionPlanner {
 public:
  AttentionPlanner(const AttentionArgs& args, int threads, AttentionPlan* plan)
      : step_(args.step),
        kv_heads_(args.kv.geometry.kv_heads),
        group_(args.heads / kv_heads_),
        threads_(threads),
        plan_(*plan) {}

  void Run() {
    // Until the bundles are made, members[i] says whether sequence i is bundled with others: the
    // list proper grows from the end of what has been looked at.
    MarkShared();
    int32_t singles = 0;
    for (int32_t i = 0; i < count(); ++i) {
      if (plan_.members[i] == 0) plan_.members[singles++] = i;
    }
    for (int32_t i = 0; i < singles; ++i) {
      const int32_t pairs = Pairs(plan_.members[i]);
      plan_.bundles[plan_.num_bundles++] = {
          .first_member = i, .members = 1, .chunks = (pairs + kMaxTileRows - 1) / kMaxTileRows};
    }
    next_member_ = singles;
    for (const PrefixGroup& group : step_.prefix_groups) BundleGroup(group);
    CountItems();
  }

 private:
  int32_t count() const { return static_cast<int32_t>(step_.sequences.size()); }
  int32_t Pairs(int32_t sequence) const { return step_.sequences[sequence].num_rows * group_; }
  int32_t Splits(int32_t sequence) const {
    const SequenceRows& s = step_.sequences[sequence];
    return (s.first_position + s.num_rows + kPositionSplit - 1) / kPositionSplit;
  }
  // Two must fit into a unit for a bundle to make sense.
  bool MayBundle(int32_t sequence) const { return 2 * Pairs(sequence) <= kMaxTileRows; }

  void MarkShared() {
    for (int32_t i = 0; i < count(); ++i) plan_.members[i] = 0;
    for (const PrefixGroup& group : step_.prefix_groups) {
      for (const int32_t i : group.sequences) plan_.members[i] = MayBundle(i) ? 1 : 0;
    }
  }

  // Fills bundles with the group's sequences, in order. Where that would leave threads without
  // work, bundles are smaller.
  void BundleGroup(const PrefixGroup& group) {
    int64_t pairs = 0, splits = 1;
    for (const int32_t i : group.sequences) {
      if (!MayBundle(i)) continue;
      pairs += Pairs(i);
      splits = Splits(i) > splits ? Splits(i) : splits;
    }
    const int64_t spread = pairs * kv_heads_ * splits / (kSharedItemsPerThread * threads_);
    const int64_t most = spread < kMaxTileRows ? spread : kMaxTileRows;
    int64_t room = 0;
    for (const int32_t i : group.sequences) {
      if (!MayBundle(i)) continue;
      if (room < Pairs(i)) {
        plan_.bundles[plan_.num_bundles++] = {
            .first_member = next_member_, .shared_positions = group.shared_positions, .chunks = 1};
        room = most;
      }
      room -= Pairs(i);
      plan_.members[next_member_++] = i;
      ++plan_.bundles[plan_.num_bundles - 1].members;
    }
  }

  void CountItems() {
    int64_t units = 0;
    for (int32_t i = 0; i < plan_.num_bundles; ++i) {
      units += int64_t{plan_.bundles[i].chunks} * kv_heads_;
    }
    const bool split = threads_ > 1 && units < plan_.max_units;
    int32_t split_units = 0;
    int64_t partials = 0;
    for (int32_t i = 0; i < plan_.num_bundles; ++i) {
      Bundle& b = plan_.bundles[i];
      const int32_t own_units = b.chunks * kv_heads_;
      b.first_item = plan_.items;
      b.splits = 1;
      int32_t splits = 1;
      for (int32_t m = 0; m < b.members; ++m) {
        const int32_t own = Splits(plan_.members[b.first_member + m]);
        splits = own > splits ? own : splits;
      }
      const int64_t need = int64_t{own_units} * splits * plan_.slot_floats;
      if (split && splits > 1 && partials + need <= plan_.partial_floats) {
        b.splits = splits;
        b.first_unit = split_units;
        b.partials = partials;
        for (int u = 0; u < own_units; ++u) plan_.counters[split_units + u] = 0;
        split_units += own_units;
        partials += need;
      }
      plan_.items += own_units * b.splits;
    }
  }

  const StepRows& step_;
  const int kv_heads_;
  const int group_;
  const int threads_;
  AttentionPlan& plan_;
  int32_t next_member_ = 0;
};

[[maybe_unused]] inline AttentionPlan PlanAttention(const AttentionArgs& args, int value_dim,
                                                    int threads, Workspace workspace) {
  AttentionPlan plan = CarveAttention(static_cast<int32_t>(args.step.sequences.size()), value_dim,
                                      threads, workspace);
  AttentionPlanner(args, threads, &plan).Run();
  return plan;
}

struct ItemPlace {
  const Bundle* bundle;
  int32_t split;
  int32_t unit;  // of the bundle
  int32_t kv_head;
  int32_t chunk;
};

[[maybe_unused]] inline ItemPlace FindItem(const AttentionArgs& args, const AttentionPlan& plan,
                                           int32_t item) {
  int32_t low = 0, high = plan.num_bundles - 1;
  while (low < high) {  // the last bundle that starts at or before the item
    const int32_t middle = (low + high + 1) / 2;
    if (plan.bundles[middle].first_item <= item) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const Bundle& bundle = plan.bundles[low];
  const int32_t index = item - bundle.first_item;
  const int32_t unit = index / bundle.splits;
  const int32_t kv_heads = args.kv.geometry.kv_heads;
  return {&bundle, index % bundle.splits, unit, unit % kv_heads, unit / kv_heads};
}

}  // namespace
}  // namespace vivace::kernels
