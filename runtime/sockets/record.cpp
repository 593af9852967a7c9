#include "runtime/sockets/record.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hearsay::sockets {
namespace {

constexpr const char* first_line = "hearsay member 1";  // the number is that of the protocol
constexpr const char* purpose = "record";
constexpr std::string_view proof_key = "\nproof ";

/// A line of a record holds one value.
std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool read_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_line(const std::string& key, const std::string& value, MemberRecord& record) {
  if (key == "rank") return read_number(value, record.rank);
  if (key == "ranks") return read_number(value, record.ranks);
  if (key == "incarnation") return read_hexadecimal(value, record.incarnation);
  if (key == "address") {
    record.addresses.push_back(value);
    return true;
  }
  const std::array texts{std::pair{"host", &record.host}, std::pair{"host_name", &record.host_name},
                         std::pair{"local_name", &record.local_name}, std::pair{"build", &record.identity.build},
                         std::pair{"configuration", &record.identity.configuration}};
  for (const auto& [name, text] : texts)
    if (key == name) *text = value;
  return true;
}

}  // namespace

std::string sealed(const MemberRecord& record, const Secret& secret) {
  std::ostringstream text;
  text << first_line << "\nrank " << record.rank << "\nranks " << record.ranks << "\nincarnation "
       << hexadecimal(record.incarnation) << "\nhost " << on_one_line(record.host) << "\nhost_name "
       << on_one_line(record.host_name) << "\nlocal_name " << on_one_line(record.local_name);
  for (const std::string& address : record.addresses) text << "\naddress " << on_one_line(address);
  text << "\nbuild " << on_one_line(record.identity.build) << "\nconfiguration "
       << on_one_line(record.identity.configuration);
  const std::string said = text.str();
  return said + std::string(proof_key) + hexadecimal(secret.proof(purpose, std::as_bytes(std::span(said)))) + "\n";
}

std::optional<FoundRecord> read_record(const std::string& text, const Secret& secret) {
  const auto end = text.rfind(proof_key);
  if (!text.starts_with(first_line) || end == std::string::npos || text.back() != '\n') return std::nullopt;
  const std::string said = text.substr(0, end);
  FoundRecord found;
  Proof proof{};
  const auto digits = std::string_view(text).substr(end + proof_key.size());
  found.is_sealed = read_hexadecimal(digits.substr(0, digits.size() - 1), proof) &&
                    secret.agrees(proof, purpose, std::as_bytes(std::span(said)));
  std::istringstream lines(said);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const auto space = line.find(' ');
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    if (!read_line(line.substr(0, space), value, found.record)) return std::nullopt;
  }
  return found;
}

std::string own_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

std::string own_host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace hearsay::sockets
