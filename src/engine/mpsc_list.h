// A list between threads, lock-free and allocation-free: any thread pushes, one thread takes
// everything at once, oldest first. The list keeps its nodes alive.
//
// A node stands on a list at most once: pushing it again while it waits is a no-op, and whoever
// takes it sees everything written before that push. So a list coalesces news instead of queueing
// it.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace vivace {

template <typename Node>
struct MpscHook {
  std::atomic<bool> queued{false};
  std::shared_ptr<Node> ref;  // set by the pusher that claimed `queued`, moved out by the taker
  Node* next = nullptr;
};

template <typename Node, MpscHook<Node> Node::*kHook>
class MpscList {
 public:
  ~MpscList() {
    TakeAll([](std::shared_ptr<Node>) {});
  }

  // True if the list was empty: the taker may be asleep and wants waking.
  bool Push(const std::shared_ptr<Node>& node) {
    MpscHook<Node>& hook = node.get()->*kHook;
    if (hook.queued.exchange(true, std::memory_order_acq_rel)) return false;
    hook.ref = node;
    Node* head = head_.load(std::memory_order_relaxed);
    do {
      hook.next = head;
    } while (!head_.compare_exchange_weak(head, node.get(), std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    return head == nullptr;
  }

  bool empty() const { return head_.load(std::memory_order_acquire) == nullptr; }

  // Calls visit(std::shared_ptr<Node>) for every node, oldest first. A node may be pushed again as
  // soon as its visit begins.
  template <typename Visit>
  void TakeAll(Visit&& visit) {
    Node* node = Reversed(head_.exchange(nullptr, std::memory_order_acq_rel));
    while (node != nullptr) {
      MpscHook<Node>& hook = node->*kHook;
      Node* next = hook.next;
      std::shared_ptr<Node> ref = std::move(hook.ref);
      hook.queued.exchange(false, std::memory_order_acq_rel);  // acquires what no-op pushers wrote
      visit(std::move(ref));
      node = next;
    }
  }

 private:
  static Node* Reversed(Node* newest) {
    Node* oldest = nullptr;
    while (newest != nullptr) {
      Node* older = (newest->*kHook).next;
      (newest->*kHook).next = oldest;
      oldest = std::exchange(newest, older);
    }
    return oldest;
  }

  std::atomic<Node*> head_{nullptr};
};

}  // namespace vivace
