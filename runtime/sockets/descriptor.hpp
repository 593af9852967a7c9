#pragma once
// An open file of this process, closed when it goes. Included in runtime/sockets/ only.
#include <unistd.h>

#include <utility>

namespace hearsay::sockets {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, none)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ != none) ::close(number_);
  }

  explicit operator bool() const { return number_ != none; }
  int number() const { return number_; }

 private:
  static constexpr int none = -1;
  int number_ = none;
};

}  // namespace hearsay::sockets
