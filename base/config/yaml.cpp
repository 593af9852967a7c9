#include "base/config/yaml.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <yaml-cpp/yaml.h>

namespace hearsay {
namespace {

std::string joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

/// yaml-cpp's nodes to ours. Aliases are copied; a document whose aliases unfold without end is refused.
class Converter {
 public:
  Converter(int source, std::vector<YamlProblem>& problems) : source_(source), problems_(problems) {}

  YamlValue convert(const YAML::Node& node, const std::string& path, int depth = 0) {
    YamlValue value;
    value.position = position(node.Mark());
    if (--values_left_ < 0 || depth > deepest)
      throw YamlProblem{value.position, "", "too many or too deeply nested values"};
    if (node.IsScalar()) {
      value.kind = YamlValue::Kind::scalar;
      value.scalar = node.Scalar();
      value.quoted = node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
    } else if (node.IsSequence()) {
      value.kind = YamlValue::Kind::sequence;
      for (const YAML::Node& item : node)
        value.items.push_back(convert(item, path + "[" + std::to_string(value.items.size()) + "]", depth + 1));
    } else if (node.IsMap()) {
      value.kind = YamlValue::Kind::mapping;
      for (const auto& member : node) add_member(value, member.first, member.second, path, depth + 1);
    }
    return value;
  }

  Position position(const YAML::Mark& mark) const {
    return {source_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
  }

 private:
  void add_member(YamlValue& mapping, const YAML::Node& key, const YAML::Node& value, const std::string& path,
                  int depth) {
    const Position place = position(key.Mark());
    if (!key.IsScalar()) {
      problems_.push_back({place, path, "a key must be a word"});
      return;
    }
    const std::string full = joined(path, key.Scalar());
    if (const YamlMember* first = std::as_const(mapping).find(key.Scalar())) {
      problems_.push_back({place, full, "duplicate key, first given in line " + std::to_string(first->position.line)});
      return;
    }
    YamlValue converted = convert(value, full, depth);
    mapping.members.push_back({key.Scalar(), place, std::move(converted)});
  }

  static constexpr int deepest = 64;
  int source_;
  std::vector<YamlProblem>& problems_;
  int values_left_ = 100'000;
};

bool looks_like_a_word(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/'; };
  return !text.empty() && (letter(text.front()) || text.front() == '/') && std::all_of(text.begin(), text.end(), inner);
}

/// Words that some YAML reader takes for a boolean or null.
bool has_a_meaning_in_yaml(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  static constexpr std::array<std::string_view, 9> words{"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  return std::find(words.begin(), words.end(), lower) != words.end();
}

template <class Value>
auto* find_member(Value& value, std::string_view key) {
  const auto found =
      std::find_if(value.members.begin(), value.members.end(), [&](const YamlMember& m) { return m.key == key; });
  return found == value.members.end() ? nullptr : &*found;
}

}  // namespace

const YamlMember* YamlValue::find(std::string_view key) const { return find_member(*this, key); }
YamlMember* YamlValue::find(std::string_view key) { return find_member(*this, key); }

std::string YamlValue::shown() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::sequence:
      return "a list";
    case Kind::mapping:
      return "a mapping";
    case Kind::scalar:
      break;
  }
  return quoted ? "the text '" + scalar + "'" : "'" + scalar + "'";
}

YamlValue parse_yaml(const std::string& text, int source, std::vector<YamlProblem>& problems) {
  Converter converter(source, problems);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty()) return {.position = {.source = source}};
    if (documents.size() > 1)
      throw YamlProblem{converter.position(documents[1].Mark()), "", "a second document starts here; give one only"};
    return converter.convert(documents.front(), "");
  } catch (const YAML::Exception& error) {
    throw YamlProblem{converter.position(error.mark), "", "not YAML: " + error.msg};
  }
}

std::string yaml_real(double x) {
  if (std::isnan(x)) return ".nan";
  if (std::isinf(x)) return x > 0 ? ".inf" : "-.inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
  std::string digits(buffer.data(), end);
  // YAML 1.1 readers take 1e-05 for text: they want a point.
  const std::size_t exponent = digits.find('e');
  if (exponent != std::string::npos && digits.find('.') == std::string::npos) digits.insert(exponent, ".0");
  return digits;
}

std::string yaml_text(std::string_view text) {
  if (looks_like_a_word(text) && !has_a_meaning_in_yaml(text)) return std::string(text);
  YAML::Emitter emitter;
  emitter << YAML::DoubleQuoted << std::string(text);
  return {emitter.c_str(), emitter.size()};
}

}  // namespace hearsay
