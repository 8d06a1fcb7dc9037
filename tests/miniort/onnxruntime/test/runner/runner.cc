#include "gtest/gtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <exception>

namespace testing {

namespace {

// One setting of the protocol: `--gtest_<name>` with or without a value, else GTEST_<NAME>.
struct Setting {
  const char* name;
  std::string value;
};

Setting settings[] = {
    {"filter", "*"},      {"list_tests", "0"},   {"output", ""},
    {"repeat", "1"},      {"fail_fast", "0"},    {"also_run_disabled_tests", "0"},
    {"brief", "0"},
};

Setting& Find(const char* name) {
  Setting* found = settings;
  while (strcmp(found->name, name) != 0) ++found;
  return *found;
}

bool IsOn(const char* name) {
  const std::string& value = Find(name).value;
  return value.empty() || (value[0] != '0' && value[0] != 'f' && value[0] != 'F');
}

// A line that --gtest_brief leaves out.
#define SAY(...)                             \
  do {                                       \
    if (!IsOn("brief")) printf(__VA_ARGS__); \
  } while (false)

long Milliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

// `*` is any text, `?` any one character.
bool Matches(const char* pattern, const char* pattern_end, const char* name) {
  if (pattern == pattern_end) return *name == '\0';
  if (*pattern == '*')
    return Matches(pattern + 1, pattern_end, name) || (*name != '\0' && Matches(pattern, pattern_end, name + 1));
  return *name != '\0' && (*pattern == '?' || *pattern == *name) && Matches(pattern + 1, pattern_end, name + 1);
}

bool MatchesAny(const std::string& patterns, const std::string& name) {
  for (size_t start = 0; start <= patterns.size();) {
    size_t end = patterns.find(':', start);
    if (end == std::string::npos) end = patterns.size();
    if (end > start && Matches(&patterns[start], patterns.data() + end, name.c_str())) return true;
    start = end + 1;
  }
  return false;
}

// Positive patterns, then after the first `-` negative ones.
bool IsSelected(const std::string& filter, const std::string& name) {
  const size_t dash = filter.find('-');
  const std::string wanted = filter.substr(0, dash);
  if (!MatchesAny(wanted.empty() ? "*" : wanted, name)) return false;
  return dash == std::string::npos || !MatchesAny(filter.substr(dash + 1), name);
}

std::string Number(const char* name, size_t count) {
  return std::to_string(count) + " " + name + (count == 1 ? "" : "s");
}

std::string Escaped(const std::string& text, bool json) {
  std::string out;
  for (const char c : text) {
    char code[8];
    const unsigned byte = static_cast<unsigned char>(c);
    if (json && (c == '"' || c == '\\')) {
      out += std::string("\\") + c;
    } else if (json && c == '\n') {
      out += "\\n";
    } else if (json && byte < 0x20) {
      snprintf(code, sizeof(code), "\\u%04x", byte);
      out += code;
    } else if (!json && (byte < 0x20 || strchr("<>&\"'", c) != nullptr)) {
      snprintf(code, sizeof(code), "&#x%02X;", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

bool TestInfo::Failed() const {
  for (const Part& part : parts_)
    if (part.type != TestPartResult::kSkip) return true;
  return false;
}

bool TestInfo::Skipped() const { return !Failed() && !parts_.empty(); }

UnitTest* UnitTest::GetInstance() {
  static UnitTest instance;
  return &instance;
}

struct Runner {
  static void Register(const char* suite, const char* name, const char* file, int line, void (*body)()) {
    TestInfo* test = new TestInfo;
    test->suite_ = suite;
    test->name_ = name;
    test->file_ = file;
    test->line_ = line;
    test->body_ = body;
    UnitTest::GetInstance()->tests_.push_back(test);
  }

  static void Report(TestPartResult::Type type, const std::string& text) {
    UnitTest::GetInstance()->current_->parts_.push_back({type, text});
  }

  static std::string FullName(const TestInfo& test) { return std::string(test.suite_) + "." + test.name_; }

  // The tests that the filter selects, suite by suite, before sharding.
  static std::vector<TestInfo*> Selected() {
    std::vector<TestInfo*> all = UnitTest::GetInstance()->tests_;
    std::vector<TestInfo*> selected;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] == nullptr) continue;
      for (size_t j = i; j < all.size(); ++j) {
        if (all[j] == nullptr || (j > i && strcmp(all[i]->suite_, all[j]->suite_) != 0)) continue;
        if (IsSelected(Find("filter").value, FullName(*all[j]))) selected.push_back(all[j]);
        if (j > i) all[j] = nullptr;
      }
    }
    return selected;
  }

  static bool IsDisabled(const TestInfo& test) {
    return strncmp(test.name_, "DISABLED_", 9) == 0 || strncmp(test.suite_, "DISABLED_", 9) == 0;
  }

  // Drops disabled tests and those of other shards.
  static std::vector<TestInfo*> Runnable(const std::vector<TestInfo*>& selected, size_t* disabled) {
    const char* total = getenv("GTEST_TOTAL_SHARDS");
    const char* index = getenv("GTEST_SHARD_INDEX");
    const long shards = total != nullptr && index != nullptr ? atol(total) : 1;
    const long shard = shards > 1 ? atol(index) : 0;
    if (shards > 1) printf("Note: This is test shard %ld of %ld.\n", shard + 1, shards);
    if (const char* status = total != nullptr ? getenv("GTEST_SHARD_STATUS_FILE") : nullptr)
      if (FILE* file = fopen(status, "w")) fclose(file);
    std::vector<TestInfo*> runnable;
    long number = 0;
    *disabled = 0;
    for (TestInfo* test : selected) {
      if (IsDisabled(*test) && !IsOn("also_run_disabled_tests")) {
        ++*disabled;
      } else if (number++ % shards == shard) {
        runnable.push_back(test);
      }
    }
    return runnable;
  }

  // With `skip` (an earlier test failed, and --gtest_fail_fast) only its lines appear.
  static void RunTest(TestInfo* test, bool skip) {
    UnitTest::GetInstance()->current_ = test;
    test->parts_.clear();
    SAY("[ RUN      ] %s\n", FullName(*test).c_str());
    fflush(stdout);
    const long start = Milliseconds();
    try {
      if (skip) {
        internal::Reporter(TestPartResult::kSkip, test->file_, test->line_, "") = internal::Message();
      } else {
        test->body_();
      }
    } catch (const std::exception& error) {
      const std::string text = std::string("unknown file: Failure\nC++ exception with description \"") + error.what() +
                               "\" thrown in the test body.";
      printf("%s\n", text.c_str());
      Report(TestPartResult::kFatalFailure, text);
    }
    test->milliseconds_ = Milliseconds() - start;
    const char* result = test->Failed() ? "[  FAILED  ]" : test->Skipped() ? "[  SKIPPED ]" : "[       OK ]";
    if (!IsOn("brief") || test->Failed())
      printf("%s %s (%ld ms)\n", result, FullName(*test).c_str(), test->milliseconds_);
    fflush(stdout);
    UnitTest::GetInstance()->current_ = nullptr;
  }

  template <typename Predicate>
  static std::vector<TestInfo*> Those(const std::vector<TestInfo*>& tests, Predicate predicate) {
    std::vector<TestInfo*> those;
    for (TestInfo* test : tests)
      if (predicate(test)) those.push_back(test);
    return those;
  }

  static size_t Suites(const std::vector<TestInfo*>& tests) {
    size_t suites = 0;
    for (size_t i = 0; i < tests.size(); ++i)
      if (i == 0 || strcmp(tests[i]->suite_, tests[i - 1]->suite_) != 0) ++suites;
    return suites;
  }

  static std::vector<TestInfo*> OfSuite(const std::vector<TestInfo*>& tests, const char* suite) {
    return Those(tests, [suite](const TestInfo* test) { return strcmp(test->suite_, suite) == 0; });
  }

  // One iteration; whether all went well.
  static bool RunOnce() {
    const std::string& filter = Find("filter").value;
    if (filter != "*") printf("Note: Google Test filter = %s\n", filter.c_str());
    size_t disabled = 0;
    const std::vector<TestInfo*> tests = Runnable(Selected(), &disabled);
    const std::string counts = Number("test", tests.size()) + " from " + Number("test suite", Suites(tests));
    SAY("[==========] Running %s.\n", counts.c_str());
    if (!tests.empty()) SAY("[----------] Global test environment set-up.\n");
    const long start = Milliseconds();
    bool failed = false;
    long suite_start = start;
    for (size_t i = 0; i < tests.size(); ++i) {
      const std::string suite = Number("test", OfSuite(tests, tests[i]->suite_).size()) + " from " + tests[i]->suite_;
      if (i == 0 || strcmp(tests[i]->suite_, tests[i - 1]->suite_) != 0) {
        suite_start = Milliseconds();
        SAY("[----------] %s\n", suite.c_str());
      }
      RunTest(tests[i], failed && IsOn("fail_fast"));
      failed = failed || tests[i]->Failed();
      if (i + 1 == tests.size() || strcmp(tests[i]->suite_, tests[i + 1]->suite_) != 0)
        SAY("[----------] %s (%ld ms total)\n\n", suite.c_str(), Milliseconds() - suite_start);
    }
    if (!tests.empty()) SAY("[----------] Global test environment tear-down\n");
    printf("[==========] %s ran. (%ld ms total)\n", counts.c_str(), Milliseconds() - start);
    Summarize(tests, disabled);
    WriteReport(tests, disabled, Milliseconds() - start);
    return !failed;
  }

  static void Summarize(const std::vector<TestInfo*>& ran, size_t disabled) {
    const std::vector<TestInfo*> failed = Those(ran, [](const TestInfo* test) { return test->Failed(); });
    const std::vector<TestInfo*> skipped = Those(ran, [](const TestInfo* test) { return test->Skipped(); });
    printf("[  PASSED  ] %s.\n", Number("test", ran.size() - failed.size() - skipped.size()).c_str());
    if (!skipped.empty()) {
      printf("[  SKIPPED ] %s%s\n", Number("test", skipped.size()).c_str(), IsOn("brief") ? "." : ", listed below:");
      for (const TestInfo* test : skipped) SAY("[  SKIPPED ] %s\n", FullName(*test).c_str());
    }
    if (!failed.empty()) {
      printf("[  FAILED  ] %s, listed below:\n", Number("test", failed.size()).c_str());
      for (const TestInfo* test : failed) printf("[  FAILED  ] %s\n", FullName(*test).c_str());
      printf("\n%2zu FAILED %s\n", failed.size(), failed.size() == 1 ? "TEST" : "TESTS");
    }
    if (disabled > 0) printf("\n  YOU HAVE %s\n\n", Number("DISABLED TEST", disabled).c_str());
    fflush(stdout);
  }

  static void List() {
    std::string suite;
    for (const TestInfo* test : Selected()) {
      if (suite != test->suite_) printf("%s.\n", (suite = test->suite_).c_str());
      printf("  %s\n", test->name_);
    }
    fflush(stdout);
  }

  // `json:PATH` or `xml:PATH`; the format alone writes test_detail.<format> here.
  static void WriteReport(const std::vector<TestInfo*>& ran, size_t disabled, long milliseconds) {
    const std::string output = Find("output").value;
    if (output.empty()) return;
    const size_t colon = output.find(':');
    const std::string format = output.substr(0, colon);
    if (format != "json" && format != "xml") {
      fprintf(stderr, "WARNING: unrecognized output format \"%s\" ignored.\n", format.c_str());
      return;
    }
    std::string path = colon == std::string::npos ? "" : output.substr(colon + 1);
    if (path.empty() || path.back() == '/') path += "test_detail." + format;
    FILE* file = fopen(path.c_str(), "w");
    if (file == nullptr) {
      fprintf(stderr, "Unable to open file \"%s\"\n", path.c_str());
      exit(EXIT_FAILURE);
    }
    const std::string text = format == "json" ? Json(ran, disabled, milliseconds) : Xml(ran, disabled, milliseconds);
    fwrite(text.data(), 1, text.size(), file);
    fclose(file);
  }

  static std::string Seconds(long milliseconds) {
    char text[32];
    snprintf(text, sizeof(text), "%.3g", static_cast<double>(milliseconds) / 1000.0);
    return text;
  }

  static std::string Now() {
    const time_t now = time(nullptr);
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return text;
  }

  static size_t Failures(const std::vector<TestInfo*>& tests) {
    return Those(tests, [](const TestInfo* test) { return test->Failed(); }).size();
  }

  static std::string Json(const std::vector<TestInfo*>& ran, size_t disabled, long milliseconds) {
    const auto head = [](const std::string& indent, const char* name, const std::vector<TestInfo*>& tests,
                         size_t off, long time) {
      return indent + "\"name\": \"" + name + "\",\n" + indent + "\"tests\": " + std::to_string(tests.size()) + ",\n" +
             indent + "\"failures\": " + std::to_string(Failures(tests)) + ",\n" + indent +
             "\"disabled\": " + std::to_string(off) + ",\n" + indent + "\"errors\": 0,\n" + indent +
             "\"timestamp\": \"" + Now() + "\",\n" + indent + "\"time\": \"" + Seconds(time) + "s\",\n";
    };
    std::string text = "{\n" + head("  ", "AllTests", ran, disabled, milliseconds) + "  \"testsuites\": [";
    for (size_t i = 0; i < ran.size();) {
      const std::vector<TestInfo*> tests = OfSuite(ran, ran[i]->suite_);
      long time = 0;
      for (const TestInfo* test : tests) time += test->milliseconds_;
      text += std::string(i == 0 ? "\n" : ",\n") + "    {\n" + head("      ", ran[i]->suite_, tests, 0, time) +
              "      \"testsuite\": [";
      for (size_t j = 0; j < tests.size(); ++j) text += (j == 0 ? "\n" : ",\n") + JsonTest(*tests[j]);
      text += "\n      ]\n    }";
      i += tests.size();
    }
    return text + "\n  ]\n}\n";
  }

  static std::string JsonTest(const TestInfo& test) {
    const std::string indent = "          ";
    std::string text = "        {\n" + indent + "\"name\": \"" + test.name_ + "\",\n" + indent + "\"file\": \"" +
                       Escaped(test.file_, true) + "\",\n" + indent + "\"line\": " + std::to_string(test.line_) +
                       ",\n" + indent + "\"status\": \"RUN\",\n" + indent + "\"result\": \"" +
                       (test.Skipped() ? "SKIPPED" : "COMPLETED") + "\",\n" + indent + "\"timestamp\": \"" + Now() +
                       "\",\n" + indent + "\"time\": \"" + Seconds(test.milliseconds_) + "s\",\n" + indent +
                       "\"classname\": \"" + test.suite_ + "\"";
    for (const bool skips : {false, true}) {
      std::string list;
      for (const auto& part : test.parts_)
        if ((part.type == TestPartResult::kSkip) == skips)
          list += std::string(list.empty() ? "" : ", ") + (skips ? "{\"message\": \"" : "{\"failure\": \"") +
                  Escaped(part.text, true) + (skips ? "\"}" : "\", \"type\": \"\"}");
      if (!list.empty()) text += ",\n" + indent + (skips ? "\"skipped\": [" : "\"failures\": [") + list + "]";
    }
    return text + "\n        }";
  }

  static std::string Xml(const std::vector<TestInfo*>& ran, size_t disabled, long milliseconds) {
    std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"" +
                       std::to_string(ran.size()) + "\" failures=\"" + std::to_string(Failures(ran)) +
                       "\" disabled=\"" + std::to_string(disabled) + "\" errors=\"0\" time=\"" +
                       Seconds(milliseconds) + "\" timestamp=\"" + Now() + "\" name=\"AllTests\">\n";
    for (size_t i = 0; i < ran.size();) {
      const std::vector<TestInfo*> tests = OfSuite(ran, ran[i]->suite_);
      text += std::string("  <testsuite name=\"") + ran[i]->suite_ + "\" tests=\"" + std::to_string(tests.size()) +
              "\" failures=\"" + std::to_string(Failures(tests)) + "\" disabled=\"0\" errors=\"0\">\n";
      for (const TestInfo* test : tests) {
        text += std::string("    <testcase name=\"") + test->name_ + "\" status=\"run\" result=\"" +
                (test->Skipped() ? "skipped" : "completed") + "\" time=\"" + Seconds(test->milliseconds_) +
                "\" classname=\"" + test->suite_ + "\">";
        for (const auto& part : test->parts_) {
          const std::string element = part.type == TestPartResult::kSkip ? "skipped" : "failure";
          text += "<" + element + " message=\"" + Escaped(part.text, false) + "\"/>";
        }
        text += "</testcase>\n";
      }
      text += "  </testsuite>\n";
      i += tests.size();
    }
    return text + "</testsuites>\n";
  }
};

namespace internal {

bool Register(const char* suite, const char* name, const char* file, int line, void (*body)()) {
  Runner::Register(suite, name, file, line, body);
  return true;
}

void Reporter::operator=(const Message& message) const {
  const std::string place = std::string(file_) + ":" + std::to_string(line_);
  std::string text = summary_;
  if (!message.Text().empty()) text += (text.empty() ? "" : "\n") + message.Text();
  printf("%s: %s\n%s\n", place.c_str(), type_ == TestPartResult::kSkip ? "Skipped" : "Failure", text.c_str());
  Runner::Report(type_, place + "\n" + text);
}

int RunAllTests() {
  if (IsOn("list_tests")) {
    Runner::List();
    return 0;
  }
  bool passed = true;
  const long repeat = atol(Find("repeat").value.c_str());
  for (long i = 0; i < repeat || repeat < 0; ++i) {
    if (repeat != 1) printf("\nRepeating all tests (iteration %ld) . . .\n\n", i + 1);
    passed = Runner::RunOnce() && passed;
  }
  return passed ? 0 : 1;
}

}  // namespace internal

void InitGoogleTest(int* argc, char** argv) {
  for (Setting& setting : settings) {
    std::string variable = "GTEST_";
    for (const char* c = setting.name; *c != '\0'; ++c) variable += *c == '_' ? '_' : static_cast<char>(*c - 'a' + 'A');
    if (const char* value = getenv(variable.c_str())) setting.value = value;
  }
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    bool taken = false;
    for (Setting& setting : settings) {
      const std::string flag = std::string("--gtest_") + setting.name;
      if (argv[i] == flag) {
        setting.value = "1";
        taken = true;
      } else if (strncmp(argv[i], (flag + "=").c_str(), flag.size() + 1) == 0) {
        setting.value = argv[i] + flag.size() + 1;
        taken = true;
      }
    }
    if (!taken) argv[kept++] = argv[i];
  }
  argv[*argc = kept] = nullptr;
}

}  // namespace testing
