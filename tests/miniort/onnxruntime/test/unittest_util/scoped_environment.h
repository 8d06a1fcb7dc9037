// Sets one environment variable for the time of a test.
#pragma once

#include <stdlib.h>

#include <string>

namespace onnxruntime {
namespace test {

class ScopedEnvironmentVariable {
 public:
  // An empty name changes nothing.
  ScopedEnvironmentVariable(const char* name, const char* value) : name_(name) {
    if (name_.empty()) return;
    const char* old = getenv(name);
    had_value_ = old != nullptr;
    if (had_value_) old_value_ = old;
    setenv(name, value, 1);
  }
  ~ScopedEnvironmentVariable() {
    if (name_.empty()) return;
    if (had_value_)
      setenv(name_.c_str(), old_value_.c_str(), 1);
    else
      unsetenv(name_.c_str());
  }
  ScopedEnvironmentVariable(const ScopedEnvironmentVariable&) = delete;
  ScopedEnvironmentVariable& operator=(const ScopedEnvironmentVariable&) = delete;

 private:
  std::string name_;
  std::string old_value_;
  bool had_value_ = false;
};

}  // namespace test
}  // namespace onnxruntime
