#pragma once
// A rendezvous that is a Python object: torch's store, by python/hearsay/_store.py.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/sockets/rendezvous.hpp"

namespace hearsay::python {

/// Takes the interpreter's lock wherever it asks. `store` has put, put_if_absent, get, list, remove and a name.
class Store final : public sockets::Rendezvous {
 public:
  explicit Store(pybind11::object store) : store_(std::move(store)) {}
  ~Store() override {
    const pybind11::gil_scoped_acquire locked;
    store_ = {};
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void put(const std::string& key, const std::string& text) override { ask<pybind11::object>("put", key, text); }
  std::string put_if_absent(const std::string& key, const std::string& text) override {
    return ask<std::string>("put_if_absent", key, text);
  }
  std::optional<std::string> get(const std::string& key) override {
    return ask<std::optional<std::string>>("get", key);
  }
  std::vector<std::string> list(const std::string& prefix) override {
    return ask<std::vector<std::string>>("list", prefix);
  }
  void remove(const std::string& key) override { ask<pybind11::object>("remove", key); }
  void watch(std::chrono::milliseconds longest) override { std::this_thread::sleep_for(longest); }
  std::string name() const override {
    const pybind11::gil_scoped_acquire locked;
    return store_.attr("name").cast<std::string>();
  }

 private:
  template <class Answer, class... Words>
  Answer ask(const char* what, const Words&... words) {
    const pybind11::gil_scoped_acquire locked;
    if constexpr (std::is_same_v<Answer, pybind11::object>)
      return static_cast<void>(store_.attr(what)(words...)), Answer{};
    else
      return store_.attr(what)(words...).template cast<Answer>();
  }

  pybind11::object store_;
};

}  // namespace hearsay::python
