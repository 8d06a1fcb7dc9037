// A minimal test runner that speaks GoogleTest's protocol, for machines without GoogleTest: TEST, EXPECT_*, ASSERT_*,
// GTEST_SKIP, its command line and environment, its lines on stdout, its reports and exit codes. Only what the tests
// of this checkout and those who run them use.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace testing {

struct TestPartResult {
  enum Type { kSuccess, kNonFatalFailure, kFatalFailure, kSkip };
};

class TestInfo {
 public:
  const char* test_suite_name() const { return suite_; }
  const char* name() const { return name_; }

 private:
  friend class UnitTest;
  friend struct Runner;
  struct Part {
    TestPartResult::Type type;
    std::string text;
  };
  bool Failed() const;
  bool Skipped() const;

  const char* suite_;
  const char* name_;
  const char* file_;
  int line_;
  void (*body_)();
  std::vector<Part> parts_;
  long milliseconds_ = 0;
};

class UnitTest {
 public:
  static UnitTest* GetInstance();
  const TestInfo* current_test_info() const { return current_; }

 private:
  friend struct Runner;
  std::vector<TestInfo*> tests_;
  TestInfo* current_ = nullptr;
};

void InitGoogleTest(int* argc, char** argv);

namespace internal {

bool Register(const char* suite, const char* name, const char* file, int line, void (*body)());
int RunAllTests();

class Message {
 public:
  template <typename T>
  Message& operator<<(const T& value) {
    stream_ << value;
    return *this;
  }
  std::string Text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
};

// Takes what was streamed; assigned to, so that a macro can end in `return ... = Message() << ...`.
class Reporter {
 public:
  Reporter(TestPartResult::Type type, const char* file, int line, std::string summary)
      : type_(type), file_(file), line_(line), summary_(static_cast<std::string&&>(summary)) {}
  void operator=(const Message& message) const;

 private:
  TestPartResult::Type type_;
  const char* file_;
  int line_;
  std::string summary_;
};

template <typename T>
std::string Printed(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

// Empty where the comparison held.
template <typename Compare, typename A, typename B>
std::string Compared(Compare compare, const char* sign, const char* a_text, const char* b_text, const A& a,
                     const B& b) {
  if (compare(a, b)) return "";
  return std::string("Expected: (") + a_text + ") " + sign + " (" + b_text + "), actual: " + Printed(a) + " vs " +
         Printed(b);
}

inline std::string Held(bool holds, bool expected, const char* text) {
  if (holds == expected) return "";
  return std::string("Value of: ") + text + "\n  Actual: " + (holds ? "true" : "false") +
         "\nExpected: " + (expected ? "true" : "false");
}

}  // namespace internal
}  // namespace testing

#define TEST(suite, name)                                                                                            \
  static void suite##_##name##_Test();                                                                               \
  static const bool suite##_##name##_registered [[maybe_unused]] =                                                   \
      ::testing::internal::Register(#suite, #name, __FILE__, __LINE__, suite##_##name##_Test);                       \
  static void suite##_##name##_Test()

#define RUN_ALL_TESTS() ::testing::internal::RunAllTests()

#define MINIORT_REPORT_(type, summary)                                                                  \
  ::testing::internal::Reporter(::testing::TestPartResult::type, __FILE__, __LINE__, summary) =         \
      ::testing::internal::Message()
#define MINIORT_EXPECT_(problem)                                       \
  if (const std::string miniort_problem = problem; miniort_problem.empty()) \
    ;                                                                  \
  else                                                                 \
    MINIORT_REPORT_(kNonFatalFailure, miniort_problem)
#define MINIORT_ASSERT_(problem)                                       \
  if (const std::string miniort_problem = problem; miniort_problem.empty()) \
    ;                                                                  \
  else                                                                 \
    return MINIORT_REPORT_(kFatalFailure, miniort_problem)
#define MINIORT_COMPARED_(a, sign, b) \
  ::testing::internal::Compared([](const auto& x, const auto& y) { return x sign y; }, #sign, #a, #b, a, b)

#define EXPECT_TRUE(value) MINIORT_EXPECT_(::testing::internal::Held(static_cast<bool>(value), true, #value))
#define EXPECT_FALSE(value) MINIORT_EXPECT_(::testing::internal::Held(static_cast<bool>(value), false, #value))
#define EXPECT_EQ(a, b) MINIORT_EXPECT_(MINIORT_COMPARED_(a, ==, b))
#define EXPECT_NE(a, b) MINIORT_EXPECT_(MINIORT_COMPARED_(a, !=, b))
#define EXPECT_LE(a, b) MINIORT_EXPECT_(MINIORT_COMPARED_(a, <=, b))
#define EXPECT_LT(a, b) MINIORT_EXPECT_(MINIORT_COMPARED_(a, <, b))
#define EXPECT_GE(a, b) MINIORT_EXPECT_(MINIORT_COMPARED_(a, >=, b))
#define EXPECT_GT(a, b) MINIORT_EXPECT_(MINIORT_COMPARED_(a, >, b))
#define ASSERT_TRUE(value) MINIORT_ASSERT_(::testing::internal::Held(static_cast<bool>(value), true, #value))
#define ASSERT_FALSE(value) MINIORT_ASSERT_(::testing::internal::Held(static_cast<bool>(value), false, #value))
#define ASSERT_EQ(a, b) MINIORT_ASSERT_(MINIORT_COMPARED_(a, ==, b))
#define ASSERT_NE(a, b) MINIORT_ASSERT_(MINIORT_COMPARED_(a, !=, b))
#define ASSERT_LE(a, b) MINIORT_ASSERT_(MINIORT_COMPARED_(a, <=, b))
#define ASSERT_LT(a, b) MINIORT_ASSERT_(MINIORT_COMPARED_(a, <, b))
#define ASSERT_GE(a, b) MINIORT_ASSERT_(MINIORT_COMPARED_(a, >=, b))
#define ASSERT_GT(a, b) MINIORT_ASSERT_(MINIORT_COMPARED_(a, >, b))
#define FAIL() return MINIORT_REPORT_(kFatalFailure, "Failed")
#define ADD_FAILURE() MINIORT_REPORT_(kNonFatalFailure, "Failed")
#define GTEST_SKIP() return MINIORT_REPORT_(kSkip, "")
