#include "base/config/yaml.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

Position position_of(const YAML::Mark& mark, int source) {
  return {source, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
}

/// yaml-cpp's events to our values, bounded whatever the document is.
///
/// yaml-cpp's parser reads a document by loops of two kinds. Those that take characters end with the text, which is
/// bounded. Those that take none report an event each time round, such as the empty documents, one after the other
/// without end, that it finds in front of a comma. Hence it is enough to bound the events, and to stop at a second
/// document. An alias is a copy of what it names, and what it copies counts as well; a name that is not yet complete
/// (`&a [*a]`) cannot be copied. Depth is bounded here before yaml-cpp's own recursion, which ends at 500, is.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const std::string& text, int source, std::vector<YamlProblem>& problems)
      : text_(text), source_(source), problems_(problems) {}

  YamlValue take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    const auto at = static_cast<std::size_t>(std::max(mark.pos, 0));
    const bool marked = at < text_.size() && text_.compare(at, 3, "---") == 0;
    throw problem(mark, marked ? "a second document starts here; give one only"
                               : "not YAML: what stands here belongs to nothing before it");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { put(mark, anchor, {}); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    put(mark, anchor, {.kind = YamlValue::Kind::scalar, .scalar = text, .quoted = quoted, .members = {}});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) throw problem(mark, "an alias of a value that is not complete yet");
    charge(found->second, mark);
    append(mark, YamlValue(found->second));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlValue::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlValue::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A list or mapping that is not complete.
  struct Open {
    YAML::anchor_t anchor;
    YamlValue value;
    bool key_is_next = true;             // of a mapping
    bool key_is_word = true;             // its last key was one
    bool key_is_new = true;              // and not a duplicate
    YamlMember member{};                 // whose value comes next
    std::map<std::string, int> lines{};  // of the keys
  };

  YamlProblem problem(const YAML::Mark& mark, const std::string& message) const {
    return {position_of(mark, source_), "", message};
  }

  void charge(std::size_t values, std::size_t characters, const YAML::Mark& mark) {
    values_left_ -= static_cast<std::ptrdiff_t>(values);
    characters_left_ -= static_cast<std::ptrdiff_t>(characters);
    if (values_left_ < 0 || characters_left_ < 0)
      throw problem(mark, "too many values: at most " + std::to_string(most_values) + ", and " +
                              std::to_string(most_characters) + " characters, with aliases written out");
  }
  void charge(const YamlValue& copied, const YAML::Mark& mark) {
    charge(1, copied.scalar.size(), mark);
    for (const YamlValue& item : copied.items) charge(item, mark);
    for (const YamlMember& member : copied.members) {
      charge(1, member.key.size(), mark);
      charge(member.value, mark);
    }
  }

  void put(const YAML::Mark& mark, YAML::anchor_t anchor, YamlValue value) {
    charge(1, value.scalar.size(), mark);
    value.position = position_of(mark, source_);
    keep(anchor, value, mark);
    append(mark, std::move(value));
  }

  /// Remembers a value that has a name.
  void keep(YAML::anchor_t anchor, const YamlValue& value, const YAML::Mark& mark) {
    if (anchor == YAML::NullAnchor) return;
    charge(value, mark);
    anchored_.insert_or_assign(anchor, value);
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, YamlValue::Kind kind) {
    charge(1, 0, mark);
    if (open_.size() >= deepest)
      throw problem(mark, "too deeply nested: at most " + std::to_string(deepest) + " levels");
    open_.push_back({.anchor = anchor, .value = {.kind = kind, .position = position_of(mark, source_), .members = {}}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    const Position& at = done.value.position;
    YAML::Mark mark;
    mark.line = at.line - 1;
    mark.column = at.column - 1;
    keep(done.anchor, done.value, mark);
    append(mark, std::move(done.value));
  }

  /// Where the value belongs that has just been completed.
  void append(const YAML::Mark& mark, YamlValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Open& in = open_.back(); in.value.kind == YamlValue::Kind::sequence) {
      in.value.items.push_back(std::move(value));
    } else if (std::exchange(in.key_is_next, !in.key_is_next)) {
      begin_member(in, mark, std::move(value));
    } else if (in.key_is_word && in.key_is_new) {
      in.member.value = std::move(value);
      in.value.members.push_back(std::move(in.member));
    }
  }

  void begin_member(Open& in, const YAML::Mark& mark, YamlValue key) {
    const Position position = position_of(mark, source_);
    in.key_is_word = key.kind == YamlValue::Kind::scalar;
    if (!in.key_is_word) return complain(position, path(), "a key must be a word");
    const auto [first, is_new] = in.lines.try_emplace(key.scalar, position.line);
    in.key_is_new = is_new;
    in.member = {std::move(key.scalar), position, {}};
    if (!is_new) complain(position, path(true), "duplicate key, first given in line " + std::to_string(first->second));
  }

  void complain(const Position& position, std::string path, std::string message) {
    if (problems_.size() >= most_problems) throw YamlProblem{position, std::move(path), std::move(message)};
    problems_.push_back({position, std::move(path), std::move(message)});
  }

  /// Dotted, of the innermost open value; with the key of its next member if `with_key`.
  std::string path(bool with_key = false) const {
    std::string all;
    for (std::size_t depth = 0; depth < open_.size(); ++depth) {
      const Open& in = open_[depth];
      const bool innermost = depth + 1 == open_.size();
      if (innermost && !with_key) break;
      if (in.value.kind == YamlValue::Kind::sequence)
        all += "[" + std::to_string(in.value.items.size()) + "]";
      else
        all += (all.empty() ? "" : ".") + in.member.key;
    }
    return all;
  }

  static constexpr std::size_t deepest = 64, most_problems = 100, most_values = 100'000,
                               most_characters = 8 * most_yaml_bytes;
  const std::string& text_;
  int source_;
  std::vector<YamlProblem>& problems_;
  std::ptrdiff_t values_left_ = most_values;
  std::ptrdiff_t characters_left_ = most_characters;
  int documents_ = 0;
  YamlValue root_{};
  std::vector<Open> open_{};
  std::map<YAML::anchor_t, YamlValue> anchored_{};
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

std::string shortened(const std::string& text) {
  constexpr std::size_t most = 200;
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside of a character
  return text.substr(0, end) + "…";
}

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
  return (quoted ? "the text '" : "'") + hearsay::shown(shortened(scalar)) + "'";
}

YamlValue parse_yaml(const std::string& text, int source, std::vector<YamlProblem>& problems) {
  if (text.size() > most_yaml_bytes)
    throw YamlProblem{{.source = source}, "", "more than " + std::to_string(most_yaml_bytes) + " bytes of YAML"};
  Builder builder(text, source, problems);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw YamlProblem{position_of(error.mark, source), "", "not YAML: " + error.msg};
  }
  YamlValue root = builder.take();
  root.position.source = source;  // of an empty document, too
  return root;
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
