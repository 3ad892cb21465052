#include "server/service/without_throwing.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "server/error_response.h"

namespace vivace::server {
namespace {

TEST(WithoutThrowing, WhatIsThrownBecomesAnError) {
  EXPECT_EQ(*WithoutThrowing([]() -> Result<int> { return 5; }), 5);
  const auto refused =
      WithoutThrowing([]() -> Result<int> { return Fail(ErrorCode::kNotFound, "no", "", "no"); });
  EXPECT_EQ(refused.error().reason, "no");
  const auto memory = WithoutThrowing([]() -> Result<int> { throw std::bad_alloc(); });
  EXPECT_EQ(HttpStatus(memory.error().code), 503);
  const auto other = WithoutThrowing([]() -> Result<int> { throw std::length_error("secret"); });
  EXPECT_EQ(HttpStatus(other.error().code), 500);
  EXPECT_EQ(other.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace vivace::server
