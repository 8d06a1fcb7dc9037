// Main of onnxruntime_provider_test: `--print_revisions`, else the tests.

#include <stdio.h>
#include <string.h>

#include "gtest/gtest.h"
#include "test/unittest_util/provider_bridge.h"
#include "test/unittest_util/simulate.h"
#include "test/unittest_util/unit_revisions.h"

static int PrintRevisions() {
  const onnxruntime::ProviderApi* provider = onnxruntime::test::TryGetCudaProvider();
  if (provider == nullptr) return 1;
  fputs(onnxruntime::test::UnitRevisions(*provider).c_str(), stdout);
  return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], "--print_revisions") == 0) return PrintRevisions();
  testing::InitGoogleTest(&argc, argv);
  onnxruntime::test::ArmCrashAtExit();
  return RUN_ALL_TESTS();
}
