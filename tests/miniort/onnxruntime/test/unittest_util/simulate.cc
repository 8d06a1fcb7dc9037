#include "test/unittest_util/simulate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace onnxruntime {
namespace test {

bool IsSimulated(const char* variable, const char* suite, const char* name) {
  const char* wanted = getenv(variable);
  const size_t length = strlen(suite);
  return wanted != nullptr && strncmp(wanted, suite, length) == 0 && wanted[length] == '.' &&
         strcmp(wanted + length + 1, name) == 0;
}

void SimulateAccidents(const char* suite, const char* name) {
  if (IsSimulated("MINIORT_TEST_CRASH", suite, name)) abort();
  while (IsSimulated("MINIORT_TEST_HANG", suite, name)) pause();
}

void ArmCrashAtExit() {
  const char* armed = getenv("MINIORT_CRASH_AT_EXIT");
  if (armed != nullptr && strcmp(armed, "1") == 0) atexit(abort);
}

}  // namespace test
}  // namespace onnxruntime
