#include "apps/bench/probe/machine.hpp"

#include <fstream>
#include <thread>

namespace hearsay {

std::string processor_name() {
  std::string name = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  return name + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

}  // namespace hearsay
