// A GoogleTest program whose tests are written in the environment: FAKE_TESTS holds one test a line,
// `Suite.Test: action argument; action argument`. So every Python test shows its whole input.
// A line `main: ...` is done after the last test; `exit: ...` when the process ends.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

static std::string g_program, g_exit, g_report;

static std::string Text(std::string text) {
  for (size_t at; (at = text.find("\\n")) != std::string::npos;) text.replace(at, 2, "\n");
  return text;
}

static std::string Beside(const std::string& name) {
  return g_program.substr(0, g_program.rfind('/') + 1) + name;
}

static void Open(std::string path) {
  if (path.empty()) path = Beside("libonnxruntime_providers_cuda.so");
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    fprintf(stderr, "Failed to load library %s with error: %s\n", path.c_str(), dlerror());
}

static void Say(FILE* file, const std::string& text) {
  fputs(Text(text).c_str(), file);
  fflush(file);
}

static void Do(const std::string& action, const std::string& argument) {
  if (action == "open") Open(argument);
  else if (action == "mea") Say(stderr, "2026-01-01 10:00:00.1 [V:onnxruntime:Default, attention.cc:1451 ComputeInternal] ONNX Attention: using Memory Efficient Attention (batch=1, q_seq=4)\n");
  else if (action == "flash") Say(stderr, "ONNX Attention: using Flash Attention (batch=1)\n");
  else if (action == "unfused") Say(stderr, "Attention: using unified unfused path (batch=1)\n");
  else if (action == "sdpa") Say(stdout, "\x1B[36mOperator=MultiHeadAttention Node=n DataType=fp16 SdpaKernel=" + argument + "\x1B[0m\n");
  else if (action == "err") Say(stderr, argument);
  else if (action == "out") Say(stdout, argument);
  else if (action == "log") Say(stderr, argument + "\n");
  else if (action == "env") { const char* value = getenv(argument.c_str()); printf("%s=%s\n", argument.c_str(), value ? value : "(unset)"); }
  else if (action == "skip") { [&] { GTEST_SKIP() << Text(argument); }(); }
  else if (action == "fail") ADD_FAILURE() << Text(argument);
  else if (action == "segv") { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
  else if (action == "abort") abort();
  else if (action == "_exit") _exit(atoi(argument.c_str()));
  else if (action == "hang") for (;;) pause();
  else if (action == "deaf") signal(SIGTERM, SIG_IGN);
  else if (action == "sleep") usleep(1000 * atoi(argument.c_str()));
  else if (action == "daemon") {  // holds the pipe, in a session of its own
    if (fork() == 0) { setsid(); if (fork() == 0) { std::ofstream(argument) << getpid() << std::endl; for (;;) pause(); } _exit(0); }
    while (access(argument.c_str(), F_OK)) usleep(1000);
  }
  else if (action == "chatter") { if (fork() == 0) for (;;) { Say(stderr, "chatter\n"); usleep(100); } }
  else if (action == "flood") { std::string block(1 << 20, 'x'); block.back() = '\n'; for (int i = atoi(argument.c_str()); i > 0; --i) fputs(block.c_str(), stderr); }
  else if (action == "bytes") { const char raw[] = "\xff\xfe\x80 broken\n"; fwrite(raw, 1, sizeof raw - 1, stderr); ADD_FAILURE() << raw; }
  else if (action == "append") std::ofstream(argument, std::ios::app) << "x";
  else if (action == "shell") { if (system(argument.c_str())) ADD_FAILURE() << argument; }
  else if (action == "touch") chmod(argument.c_str(), 0700);
  else if (action == "truncate") { if (truncate(g_report.c_str(), 60)) perror("truncate"); }
  else if (action == "unlink") unlink(g_report.c_str());
  else if (action == "write") std::ofstream(g_report) << Text(argument);
  else { fprintf(stderr, "no action %s\n", action.c_str()); abort(); }
}

static void DoAll(const std::string& script) {
  std::istringstream actions(script);
  for (std::string one; std::getline(actions, one, ';');) {
    size_t begin = one.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    size_t space = one.find(' ', begin);
    Do(one.substr(begin, space - begin), space == std::string::npos ? "" : one.substr(space + 1));
  }
}

struct Scripted : testing::Test {
  explicit Scripted(std::string script) : script_(std::move(script)) {}
  void TestBody() override { DoAll(script_); }
  std::string script_;
};

int main(int argc, char** argv) {
  g_program = argv[0];
  std::string main_script;
  const char* tests = getenv("FAKE_TESTS");
  std::istringstream lines(tests ? tests : "");
  for (std::string line; std::getline(lines, line);) {
    size_t begin = line.find_first_not_of(' '), colon = line.find(": ");
    if (begin == std::string::npos) continue;
    if (colon == std::string::npos) colon = line.size();
    std::string name = line.substr(begin, colon - begin), script = line.substr(std::min(line.size(), colon + 2));
    if (name == "main") main_script = script;
    else if (name == "exit") g_exit = script;
    else if (name == "list") { for (int i = 1; i < argc; ++i) if (!strcmp(argv[i], "--gtest_list_tests")) DoAll(script); }
    else {
      size_t dot = name.find('.');
      testing::RegisterTest(name.substr(0, dot).c_str(), name.substr(dot + 1).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [script]() -> Scripted* { return new Scripted(script); });
    }
  }
  for (int i = 1; i < argc; ++i)
    if (!strncmp(argv[i], "--gtest_output=json:", 20)) g_report = argv[i] + 20;
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  int status = RUN_ALL_TESTS();
  fflush(stdout);
  DoAll(main_script);
  atexit([] { DoAll(g_exit); });
  return status;
}
