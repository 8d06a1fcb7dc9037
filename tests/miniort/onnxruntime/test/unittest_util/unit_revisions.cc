#include "test/unittest_util/unit_revisions.h"

#include <map>
#include <vector>

namespace onnxruntime {
namespace test {

namespace {

std::vector<std::string> Parts(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t start = 0; start < path.size();) {
    size_t end = path.find('/', start);
    if (end == std::string::npos) end = path.size();
    if (end > start) parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string Stem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == 0 || dot == std::string::npos ? name : name.substr(0, dot);
}

std::string Tail(const std::vector<std::string>& parts, size_t count) {
  std::string tail;
  for (size_t i = count < parts.size() ? parts.size() - count : 0; i < parts.size(); ++i)
    tail += (tail.empty() ? "" : "/") + parts[i];
  return tail;
}

std::string UnitName(const std::string& source, const std::vector<std::string>& sources) {
  std::vector<std::vector<std::string>> rivals;
  for (const std::string& other : sources)
    if (other != source && Stem(other) == Stem(source)) rivals.push_back(Parts(other));
  if (rivals.empty()) return Stem(source);
  const std::vector<std::string> parts = Parts(source);
  for (size_t count = 1; count < parts.size(); ++count) {
    bool unique = true;
    for (const auto& rival : rivals) unique = unique && Tail(rival, count) != Tail(parts, count);
    if (unique) return Tail(parts, count);
  }
  return source;
}

}  // namespace

std::string UnitRevisions(const ProviderApi& provider) {
  // Source -> header -> revision; short names first, so that the innermost header leads.
  struct ByLength {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };
  std::map<std::string, std::map<std::string, std::string, ByLength>> units;
  for (const char* const* record = provider.units_begin; record != provider.units_end; ++record) {
    const std::string source = *record;
    const std::string header = *record + source.size() + 1;
    auto& headers = units[source];
    if (!header.empty()) headers[header] = *record + source.size() + header.size() + 2;
  }
  std::vector<std::string> sources;
  for (const auto& unit : units) sources.push_back(unit.first);
  std::map<std::string, std::string> lines;
  for (const auto& [source, headers] : units) {
    std::string& line = lines[UnitName(source, sources)];
    for (const auto& [header, revision] : headers) line += " " + header + "=" + revision;
  }
  std::string text;
  for (const auto& [name, rest] : lines) text += name + rest + "\n";
  return text;
}

}  // namespace test
}  // namespace onnxruntime
