#pragma once
// A rendezvous in a folder that all members see: of one host, or of a file system that their hosts share.
#include <filesystem>

#include "runtime/sockets/rendezvous.hpp"

namespace hearsay::sockets {

/// Makes a folder of this user alone (0700) where it is missing. Throws ConfigError where it is somebody else's, or
/// others may look into it; DataError where it cannot be made.
void require_private_folder(const std::filesystem::path& folder);

/// A key is a file in FOLDER/JOB, which is made where it is missing and belongs to this user alone (0700). A text
/// appears by `rename` or `link`, so it is whole, on network file systems too.
class SharedFolder final : public Rendezvous {
 public:
  /// Throws ConfigError where `job` is no name, or where other users may look into the folder; DataError where it
  /// cannot be made or written.
  SharedFolder(const std::filesystem::path& folder, const std::string& job);
  /// Removes the folder of the job, if nothing is in it any more.
  ~SharedFolder() override;
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  void put(const std::string& key, const std::string& text) override;
  std::string put_if_absent(const std::string& key, const std::string& text) override;
  std::optional<std::string> get(const std::string& key) override;
  std::vector<std::string> list(const std::string& prefix) override;
  void remove(const std::string& key) override;
  void watch(std::chrono::milliseconds longest) override;
  std::string name() const override { return "the folder " + folder_.string(); }

 private:
  std::filesystem::path write(const std::string& key, const std::string& text);

  std::filesystem::path folder_;
  std::chrono::milliseconds nap_{1};
  int written_ = 0;
};

}  // namespace hearsay::sockets
