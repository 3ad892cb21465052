#include "server/service/admission.h"

#include <gtest/gtest.h>

#include <utility>

namespace vivace::server {
namespace {

TEST(Admission, PlacesComeBackOnEveryWayOut) {
  Admission admission({.max_requests = 2, .max_prep_bytes = 100});
  {
    auto first = admission.Admit(10);
    ASSERT_TRUE(first);
    Admission::Ticket moved = std::move(*first);
    auto second = admission.Admit(10);
    ASSERT_TRUE(second);
    EXPECT_EQ(admission.Admit(0).error().code, ErrorCode::kResourceExhausted);
    second->Release();
    second->Release();
    EXPECT_EQ(admission.requests(), 1);
    moved.EndPrep();
    EXPECT_EQ(admission.prep_bytes(), 0u);
    moved = Admission::Ticket();
    EXPECT_EQ(admission.requests(), 0);
    EXPECT_TRUE(admission.Admit(0));
  }
  EXPECT_EQ(admission.requests(), 0);
}

TEST(Admission, BytesAreBoundedUnlessAlone) {
  Admission admission({.max_requests = 9, .max_prep_bytes = 100});
  auto large = admission.Admit(1000);
  ASSERT_TRUE(large);
  EXPECT_FALSE(admission.Admit(1));
  large->EndPrep();
  auto most = admission.Admit(99);
  EXPECT_TRUE(admission.Check(1));
  EXPECT_FALSE(admission.Check(2));
  most->EndPrep();
  EXPECT_TRUE(admission.Check(100));
}

TEST(Admission, GrowsWithinTheLimitUnlessAlone) {
  Admission admission({.max_requests = 4, .max_prep_bytes = 100});
  auto first = admission.Admit(0);
  EXPECT_TRUE(first->Grow(9));  // alone
  EXPECT_EQ(admission.requests(), 10);
  first->Release();
  auto second = admission.Admit(0);
  auto third = admission.Admit(0);
  EXPECT_TRUE(second->Grow(2));
  EXPECT_FALSE(third->Grow(1));
  EXPECT_EQ(admission.requests(), 4);
}

TEST(Admission, DrainRefusesEverything) {
  Admission admission({.max_requests = 4, .max_prep_bytes = 100});
  admission.BeginDrain();
  EXPECT_EQ(admission.Check(0).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace vivace::server
